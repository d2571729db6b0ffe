// kafkajs: what it sends is old (Produce 7, Fetch 11, JoinGroup 5), and daily.
'use strict'
const assert = require('node:assert')
const { execFileSync, spawn } = require('node:child_process')
const path = require('node:path')
const kafkajs = require('kafkajs')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = kafkajs

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = new (require('kafkajs-lz4'))().codec

const { BOOTSTRAP, RUN, ROOT } = process.env
const kafka = new Kafka({
  clientId: RUN,
  brokers: [BOOTSTRAP],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 12 },
})
const admin = kafka.admin()
let failed = false

async function check(feature, detail, body, limit = 60) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${limit} s`)), limit * 1000)
  })
  try {
    await Promise.race([body(), late])
    console.log(`PASS ${feature} ${detail}`)
  } catch (error) {
    failed = true
    console.log(`FAIL ${feature} ${detail}: ${String(error && error.message).replace(/\s+/g, ' ').slice(0, 500)}`)
    console.error(error)
  } finally {
    clearTimeout(timer)
  }
}

const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

/** Asks again until the look gives something. */
async function until(what, look, seconds = 30) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const seen = await look()
    if (seen) return seen
    if (Date.now() > end) throw new Error(`never came true: ${what}`)
    await pause(50)
  }
}

async function topic(name, numPartitions = 1, config = {}) {
  const full = `${RUN}-${name}`
  const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }))
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic: full, numPartitions, configEntries }] })
  return full
}

const texts = (count, first = 0) =>
  Array.from({ length: count }, (_, at) => `record ${first + at} of some text, of some text, of some text`)

async function produce(to, messages, { acks = -1, compression, producer: settings = {} } = {}) {
  const producer = kafka.producer(settings)
  await producer.connect()
  try {
    return await producer.send({ topic: to, acks, compression, messages })
  } finally {
    await producer.disconnect()
  }
}

/** Reads `count` records with a group of its own. */
async function read(from, count, { seek, group, each } = {}) {
  const consumer = kafka.consumer({ groupId: group || `${RUN}-${Math.random()}`, sessionTimeout: 10000, maxWaitTimeInMs: 200 })
  await consumer.connect()
  const found = []
  try {
    await consumer.subscribe({ topic: from, fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ message, partition }) => {
        found.push({ ...message, partition })
        if (each) await each(message)
      },
    })
    if (seek) consumer.seek(seek)
    await until(`${count} records, ${found.length} came`, () => found.length >= count)
    assert.strictEqual(found.length, count)
    return found
  } finally {
    await consumer.disconnect()
  }
}

const values = messages => messages.map(message => message.value && message.value.toString())

/** A client may fall back to none without a word, so the log is asked. */
function storedAs(name, codec) {
  const program = path.join(ROOT, 'compat-tests/lib/stored.py')
  const seen = execFileSync('python3', [program, BOOTSTRAP, name], { encoding: 'utf8', timeout: 30000 }).trim()
  assert.strictEqual(seen, codec)
}

const COMPRESSIONS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4 }

async function compression(codec) {
  const name = await topic(`compression-${codec}`)
  await produce(name, texts(500).map(value => ({ value })), { compression: COMPRESSIONS[codec] })
  assert.deepStrictEqual(values(await read(name, 500)), texts(500))
  storedAs(name, codec)
}

async function acks(level) {
  const name = await topic(`acks-${level}`)
  await produce(name, texts(200).map(value => ({ value })), { acks: level })
  assert.deepStrictEqual(values(await read(name, 200)), texts(200))
}

async function idempotence() {
  const name = await topic('idempotence')
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  for (const value of texts(50)) await producer.send({ topic: name, messages: [{ value }] })
  await producer.disconnect()
  assert.deepStrictEqual(values(await read(name, 50)), texts(50))
}

async function keys() {
  const name = await topic('keys')
  await produce(name, [
    { key: 'k', value: 'v', headers: { a: '1', b: Buffer.from([0, 255]) } },
    { key: null, value: 'v' },
    { key: 'k', value: null },
  ])
  const found = await read(name, 3)
  assert.deepStrictEqual(found.map(m => m.key && m.key.toString()), ['k', null, 'k'])
  assert.deepStrictEqual(values(found), ['v', 'v', null])
  assert.strictEqual(found[0].headers.a.toString(), '1')
  assert.deepStrictEqual([...found[0].headers.b], [0, 255])
}

async function offsets() {
  const name = await topic('offsets', 2)
  await produce(name, texts(50).map(value => ({ value, partition: 0 })))
  const seen = await admin.fetchTopicOffsets(name)
  const row = seen.find(one => one.partition === 0)
  assert.deepStrictEqual([row.low, row.high], ['0', '50'])
  const found = await read(name, 10, { seek: { topic: name, partition: 0, offset: '40' } })
  assert.deepStrictEqual(values(found), texts(10, 40))
}

async function timestamps() {
  const name = await topic('timestamps')
  for (const at of [1000, 2000, 3000]) await produce(name, [{ value: `at ${at}`, timestamp: String(at) }])
  const at = async time => (await admin.fetchTopicOffsetsByTimestamp(name, time))[0].offset
  assert.deepStrictEqual([await at(1), await at(1500), await at(3000)], ['0', '1', '2'])
  // kafkajs turns "none that late" into the end of the partition.
  assert.strictEqual(await at(3001), '3')
  assert.deepStrictEqual((await read(name, 3)).map(m => m.timestamp), ['1000', '2000', '3000'])
}

async function groupKeepsOffsets() {
  const name = await topic('committed')
  const group = `${RUN}-committed`
  await produce(name, texts(20).map(value => ({ value })))
  await read(name, 20, { group })
  await produce(name, texts(5, 20).map(value => ({ value })))
  assert.deepStrictEqual(values(await read(name, 5, { group })), texts(5, 20))
  const [kept] = await admin.fetchOffsets({ groupId: group, topics: [name] })
  assert.strictEqual(kept.partitions[0].offset, '25')
}

/** Members share the partitions; when one leaves the other has all of them. */
async function groupShares() {
  const name = await topic('shared', 4)
  const group = `${RUN}-shared`
  const members = []
  for (let at = 0; at < 2; at++) {
    const consumer = kafka.consumer({ groupId: group, sessionTimeout: 6000, heartbeatInterval: 300, rebalanceTimeout: 10000 })
    const member = { consumer, assigned: [] }
    consumer.on(consumer.events.GROUP_JOIN, event => {
      member.assigned = event.payload.memberAssignment[name] || []
    })
    await consumer.connect()
    await consumer.subscribe({ topic: name, fromBeginning: true })
    await consumer.run({ eachMessage: async () => {} })
    members.push(member)
  }
  const spread = () => members.map(member => [...member.assigned].sort())
  try {
    await until('both have two partitions', () => {
      const [one, other] = spread()
      return one.length === 2 && other.length === 2 && new Set([...one, ...other]).size === 4
    })
    const { groups } = await admin.describeGroups([group])
    assert.deepStrictEqual([groups[0].state, groups[0].members.length], ['Stable', 2])
    await members[1].consumer.disconnect()
    await until('the one left has all', () => spread()[0].length === 4)
  } finally {
    for (const member of members) await member.consumer.disconnect()
  }
}

/** A member that is killed is missed after its session, and its partitions go to the other. */
async function groupCrash() {
  const name = await topic('crash', 2)
  const group = `${RUN}-crash`
  const victim = spawn(process.execPath, [__filename, 'member', name, group], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    await new Promise(resolve => victim.stdout.once('data', resolve))
    const consumer = kafka.consumer({ groupId: group, sessionTimeout: 6000, heartbeatInterval: 300, rebalanceTimeout: 10000 })
    let assigned = []
    consumer.on(consumer.events.GROUP_JOIN, event => { assigned = event.payload.memberAssignment[name] || [] })
    await consumer.connect()
    await consumer.subscribe({ topic: name })
    await consumer.run({ eachMessage: async () => {} })
    await until('a partition each', () => assigned.length === 1)
    victim.kill('SIGKILL')
    await until('both partitions', () => assigned.length === 2)
    await consumer.disconnect()
  } finally {
    victim.kill('SIGKILL')
  }
}

async function administration() {
  const name = await topic('admin', 1, { 'retention.ms': '60000' })
  assert.ok((await admin.listTopics()).includes(name))
  await admin.createPartitions({ topicPartitions: [{ topic: name, count: 3 }] })
  const { topics } = await admin.fetchTopicMetadata({ topics: [name] })
  assert.strictEqual(topics[0].partitions.length, 3)
  await produce(name, texts(10).map(value => ({ value, partition: 0 })))
  await admin.deleteTopicRecords({ topic: name, partitions: [{ partition: 0, offset: '4' }] })
  const offsets = await admin.fetchTopicOffsets(name)
  assert.strictEqual(offsets.find(one => one.partition === 0).low, '4')
  await admin.deleteTopics({ topics: [name] })
  await until('the topic to go', async () => !(await admin.listTopics()).includes(name))
}

async function configs() {
  const name = await topic('configs')
  const resource = { type: ConfigResourceTypes.TOPIC, name }
  const value = async () => {
    const { resources } = await admin.describeConfigs({ includeSynonyms: true, resources: [{ ...resource, configNames: ['retention.ms'] }] })
    return resources[0].configEntries[0].configValue
  }
  assert.strictEqual(await value(), '604800000')
  await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '5000' }] }] })
  await until('the new value', async () => (await value()) === '5000')
}

async function groupsAdministered() {
  const name = await topic('groups-admin')
  const group = `${RUN}-administered`
  await produce(name, texts(3).map(value => ({ value })))
  await read(name, 3, { group })
  await until('the group to be listed', async () => (await admin.listGroups()).groups.some(one => one.groupId === group))
  await admin.resetOffsets({ groupId: group, topic: name, earliest: true })
  assert.deepStrictEqual(values(await read(name, 3, { group })), texts(3))
  await admin.deleteGroups([group])
  assert.ok(!(await admin.listGroups()).groups.some(one => one.groupId === group))
}

async function member(name, group) {
  const consumer = kafka.consumer({ groupId: group, sessionTimeout: 6000, heartbeatInterval: 300, rebalanceTimeout: 10000 })
  consumer.on(consumer.events.GROUP_JOIN, () => console.log('joined'))
  await consumer.connect()
  await consumer.subscribe({ topic: name })
  await consumer.run({ eachMessage: async () => {} })
}

async function main() {
  console.log(`client kafkajs ${require('kafkajs/package.json').version}`)
  await admin.connect()
  for (const codec of Object.keys(COMPRESSIONS)) await check('compression', codec, () => compression(codec))
  console.log('SKIP compression zstd is not in kafkajs')
  for (const level of [0, 1, -1]) await check('acks', String(level), () => acks(level))
  await check('idempotence', 'in order, once', idempotence)
  await check('keys', 'and null values', keys)
  await check('headers', 'of text and bytes', headersInOrder)
  await check('offsets', 'ends and seek', offsets)
  await check('timestamps', 'looked up', timestamps)
  await check('groups', 'committed offsets', groupKeepsOffsets)
  await check('groups', 'join and leave', groupShares)
  await check('groups', 'crash', groupCrash)
  await check('groups', 'list, reset, delete', groupsAdministered)
  await check('topics', 'create, grow, delete records, delete', administration)
  await check('configs', 'describe and alter', configs)
  const { brokers } = await admin.describeCluster()
  await check('cluster', 'describe', async () => assert.ok(brokers.length >= 1))
  await admin.disconnect()
  process.exit(failed ? 1 : 0)
}

async function headersInOrder() {
  const name = await topic('headers')
  await produce(name, [{ value: 'v', headers: { many: ['1', '2'], empty: '' } }])
  const [found] = await read(name, 1)
  assert.deepStrictEqual(found.headers.many.map(String), ['1', '2'])
  assert.strictEqual(found.headers.empty.toString(), '')
}

if (process.argv[2] === 'member') member(process.argv[3], process.argv[4])
else main().catch(error => { console.error(error); process.exit(1) })
