// kafkajs against a broker.
'use strict'
const assert = require('node:assert/strict')
const { randomBytes } = require('node:crypto')
const { spawn } = require('node:child_process')
const lz4 = require('lz4-napi')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, PartitionAssigners, logLevel } = require('kafkajs')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: encoder => lz4.compressFrame(encoder.buffer),
  decompress: buffer => lz4.decompressFrame(buffer),
})

const BOOTSTRAP = process.env.BOOTSTRAP
// Every topic and group of this run begins with this.
const RUN = process.env.RUN
const kafka = new Kafka({ clientId: 'compat', brokers: [BOOTSTRAP], logLevel: logLevel.ERROR, retry: { retries: 8 } })
const admin = kafka.admin()
const open = []
let failed = false

async function check(feature, detail, body) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('not done after 45 s')), 45_000)
  })
  try {
    await Promise.race([body(), late])
    console.log(`PASS ${feature} ${detail}`)
  } catch (wrong) {
    failed = true
    const at = /suite\.js:(\d+)/.exec(String(wrong.stack).replace(/suite\.js:1[0-9]:/g, ''))
    const text = String(wrong).replaceAll('\n', '|').slice(0, 500)
    console.log(`FAIL ${feature} ${detail}: ${text} (suite.js:${at ? at[1] : '?'})`)
  } finally {
    clearTimeout(timer)
    // What a failed check left open must not disturb the next ones.
    await Promise.all(open.splice(0).map(one => one.disconnect().catch(() => {})))
  }
}

const skip = (feature, reason) => console.log(`SKIP ${feature} ${reason}`)

async function until(condition, seconds = 25) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const seen = await condition()
    if (seen) return seen
    if (Date.now() > end) throw new Error(`never came true: ${condition}`)
    await new Promise(done => setTimeout(done, 50))
  }
}

// Repeats a look until what it expects is there: what was changed need not show at once.
async function settle(look, seconds = 10) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    try {
      return await look()
    } catch (wrong) {
      if (Date.now() > end) throw wrong
      await new Promise(done => setTimeout(done, 50))
    }
  }
}

async function topic(name, numPartitions = 1, configs = {}) {
  name = `${RUN}-${name}`
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic: name, numPartitions, replicationFactor: 1, configEntries }] })
  return name
}

async function send(to, messages, { compression, acks, ...settings } = {}) {
  const producer = kafka.producer({ allowAutoTopicCreation: false, ...settings })
  await producer.connect()
  try {
    return await producer.send({ topic: to, messages, compression, acks })
  } finally {
    await producer.disconnect()
  }
}

const texts = (count, first = 0) => Array.from({ length: count }, (_, i) => `record ${i + first} of some text, of some text`)
const plain = (values, partition = 0) => values.map(value => ({ value, partition }))

// A member of a group with what it read and owns.
async function member(from, group, { fromBeginning = true, each, ...settings } = {}) {
  const consumer = kafka.consumer({
    groupId: `${RUN}-g-${group}`, sessionTimeout: 6000, heartbeatInterval: 300, rebalanceTimeout: 10_000,
    allowAutoTopicCreation: false, maxWaitTimeInMs: 300, ...settings,
  })
  const one = { consumer, read: [], owned: [], joins: 0 }
  open.push(consumer)
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    one.joins++
    one.owned = payload.memberAssignment[from] ?? []
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [from], fromBeginning })
  await consumer.run({
    autoCommitInterval: 200,
    eachMessage: async ({ partition, message }) => {
      one.read.push({ partition, ...message })
      if (each) await each(message)
    },
  })
  return one
}

async function readAll(from, count, settings) {
  const one = await member(from, `${from}-${Math.random()}`, settings)
  await until(() => one.read.length >= count)
  await one.consumer.disconnect()
  assert.equal(one.read.length, count)
  return one.read
}

const values = records => records.map(record => record.value.toString())
const balanced = (each, ...members) => until(() =>
  members.every(one => one.owned.length === each) &&
  new Set(members.flatMap(one => one.owned)).size === each * members.length)

async function compression(name, type) {
  const to = await topic(`compression-${name}`)
  await send(to, plain(texts(500)), { compression: type })
  assert.deepEqual(values(await readAll(to, 500)), texts(500))
}

async function acks(level) {
  const to = await topic(`acks${level}`)
  await send(to, plain(texts(200)), { acks: level })
  assert.deepEqual(values(await readAll(to, 200)), texts(200))
}

async function idempotence() {
  const to = await topic('idempotence')
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  for (let i = 0; i < 10; i++) await producer.send({ topic: to, messages: plain(texts(50, i * 50)) })
  await producer.disconnect()
  assert.deepEqual(values(await readAll(to, 500)), texts(500))
}

async function keys() {
  const to = await topic('keys')
  const sent = []
  for (const key of ['k', '', null]) for (const value of ['v', '', null]) sent.push({ key, value })
  await send(to, sent)
  const seen = await readAll(to, 9)
  assert.deepEqual(seen.map(({ key, value }) => ({ key: key && key.toString(), value: value && value.toString() })), sent)
}

async function partitioner() {
  const to = await topic('partitioner', 5)
  const places = []
  for (let round = 0; round < 2; round++) {
    places.push(await Promise.all(['alpha', 'beta', 'gamma', 'delta'].map(async key =>
      (await send(to, [{ key, value: 'v' }]))[0].partition)))
  }
  assert.deepEqual(places[0], places[1])
}

async function headers() {
  const to = await topic('headers')
  const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  await send(to, [{ value: 'v', headers: { a: ['1', '2'], b: '', '\u00fc': every } }, { value: 'bare' }])
  const [first, second] = await readAll(to, 2)
  assert.deepEqual(first.headers.a.map(String), ['1', '2'])
  assert.equal(first.headers.b.toString(), '')
  assert.deepEqual(first.headers['\u00fc'], every)
  assert.deepEqual(second.headers, {})
}

async function offsets() {
  const to = await topic('offsets', 2)
  const acked = await send(to, plain(texts(100)))
  assert.equal(acked[0].baseOffset, '0')
  const seen = (await admin.fetchTopicOffsets(to)).sort((a, b) => a.partition - b.partition)
  assert.deepEqual(seen.map(({ low, high }) => [low, high]), [['0', '100'], ['0', '0']])
  const one = await member(to, 'seek')
  await until(() => one.read.length === 100)
  one.consumer.seek({ topic: to, partition: 0, offset: '60' })
  await until(() => one.read.length === 140)
  assert.deepEqual(values(one.read.slice(100)), texts(40, 60))
  await one.consumer.disconnect()
  const late = await member(to, 'late', { fromBeginning: false })
  await balanced(2, late)
  // The end is looked up some time after the join, so records are sent until one arrives.
  await until(async () => { await send(to, plain(['new'])); return late.read.length > 0 })
  assert.equal(late.read[0].value.toString(), 'new')
}

async function outOfRange() {
  const to = await topic('range')
  await send(to, plain(texts(10)))
  const one = await member(to, 'range')
  await until(() => one.read.length === 10)
  one.consumer.seek({ topic: to, partition: 0, offset: '500' })
  await until(() => one.read.length === 20)
  assert.deepEqual(values(one.read.slice(10)), texts(10))
}

async function timestamps() {
  const to = await topic('timestamps')
  for (const timestamp of ['2000', '4000', '6000', '8000']) await send(to, [{ value: 'v', timestamp }])
  assert.deepEqual((await readAll(to, 4)).map(record => record.timestamp), ['2000', '4000', '6000', '8000'])
  // What lies after every record is the end, as this client has it.
  for (const [time, want] of [[1, '0'], [2001, '1'], [8000, '3'], [8001, '4']]) {
    assert.deepEqual(await admin.fetchTopicOffsetsByTimestamp(to, time), [{ partition: 0, offset: want }])
  }
}

async function brokerTimestamps() {
  const to = await topic('logappend', 1, { 'message.timestamp.type': 'LogAppendTime' })
  const [acked] = await send(to, [{ value: 'v', timestamp: '1' }])
  const stamp = Number(acked.logAppendTime)
  assert.ok(Math.abs(stamp - Date.now()) < 60_000, acked.logAppendTime)
}

async function groups(assigner, name) {
  const from = await topic(`group-${name}`, 4)
  const settings = { partitionAssigners: [assigner] }
  const first = await member(from, name, settings)
  await balanced(4, first)
  const second = await member(from, name, settings)
  await balanced(2, first, second)
  for (let partition = 0; partition < 4; partition++) await send(from, plain(texts(50, partition * 50), partition))
  await until(() => first.read.length + second.read.length === 200)
  assert.deepEqual([...values(first.read), ...values(second.read)].sort(), texts(200).sort())
  assert.equal(first.read.length, 100)
  await first.consumer.disconnect()
  await balanced(4, second)
  await send(from, plain(['after'], 0))
  await until(() => values(second.read).includes('after'))
  // The one that left had committed, so nothing comes twice.
  assert.equal(second.read.length, 101)
}

async function crash() {
  const from = await topic('crash', 4)
  const ours = await member(from, 'crash')
  await balanced(4, ours)
  const other = spawn(process.execPath, [__filename, 'member', from], { stdio: 'ignore' })
  try {
    await balanced(2, ours)
    other.kill('SIGKILL')
    await balanced(4, ours)
  } finally {
    other.kill('SIGKILL')
  }
}

async function commits() {
  const from = await topic('commits')
  const groupId = `${RUN}-g-commits`
  const at = async () => (await admin.fetchOffsets({ groupId, topics: [from] }))[0].partitions[0]
  assert.equal((await at()).offset, '-1')
  await admin.setOffsets({ groupId, topic: from, partitions: [{ partition: 0, offset: '4' }] })
  assert.equal((await at()).offset, '4')
  await send(from, plain(texts(10)))
  const one = await member(from, 'commits')
  await until(() => one.read.length === 6)
  assert.deepEqual(values(one.read), texts(6, 4))
  await one.consumer.commitOffsets([{ topic: from, partition: 0, offset: '7', metadata: 'a note' }])
  await one.consumer.disconnect()
  assert.equal((await at()).metadata ?? '', (await at()).offset === '7' ? 'a note' : '')
}

async function groupAdmin() {
  const from = await topic('administered')
  const groupId = `${RUN}-g-administered`
  const one = await member(from, 'administered')
  await balanced(1, one)
  const seen = (await admin.describeGroups([groupId])).groups[0]
  assert.deepEqual([seen.state, seen.protocolType, seen.members.length, seen.members[0].clientId], ['Stable', 'consumer', 1, 'compat'])
  assert.ok((await admin.listGroups()).groups.some(group => group.groupId === groupId))
  await assert.rejects(admin.deleteGroups([groupId]), wrong => wrong.groups[0].error.type === 'NON_EMPTY_GROUP')
  await one.consumer.disconnect()
  await settle(async () => assert.equal((await admin.describeGroups([groupId])).groups[0].state, 'Empty'))
  await admin.deleteGroups([groupId])
  assert.ok(!(await admin.listGroups()).groups.some(group => group.groupId === groupId))
}

async function createAndDescribe() {
  const name = await topic('created', 3)
  const seen = (await admin.fetchTopicMetadata({ topics: [name] })).topics[0]
  assert.deepEqual(seen.partitions.map(one => one.partitionId).sort(), [0, 1, 2])
  assert.ok((await admin.listTopics()).includes(name))
  assert.equal(await admin.createTopics({ topics: [{ topic: name }] }), false)
  const refused = (one, type) => assert.rejects(admin.createTopics({ topics: [one] }),
    wrong => (wrong.errors ? wrong.errors[0].type : wrong.type) === type)
  await refused({ topic: `${name}-rf`, numPartitions: 1, replicationFactor: 9 }, 'INVALID_REPLICATION_FACTOR')
  await refused({ topic: `${name}-np`, numPartitions: 0, replicationFactor: 1 }, 'INVALID_PARTITIONS')
  await refused({ topic: `${name} x`, numPartitions: 1, replicationFactor: 1 }, 'INVALID_TOPIC_EXCEPTION')
}

async function partitions() {
  const name = await topic('grown')
  await admin.createPartitions({ topicPartitions: [{ topic: name, count: 3 }] })
  await settle(async () => assert.equal((await admin.fetchTopicMetadata({ topics: [name] })).topics[0].partitions.length, 3))
  const acked = await send(name, plain(['v'], 2))
  assert.equal(acked[0].partition, 2)
}

async function remove() {
  const name = await topic('deleted')
  await admin.deleteTopics({ topics: [name] })
  await settle(async () => assert.ok(!(await admin.listTopics()).includes(name)))
}

async function removeRecords() {
  const name = await topic('trimmed')
  await send(name, plain(texts(20)))
  // This call does not look the leader up by itself.
  await admin.fetchTopicOffsets(name)
  await admin.deleteTopicRecords({ topic: name, partitions: [{ partition: 0, offset: '8' }] })
  const seen = (await admin.fetchTopicOffsets(name))[0]
  assert.deepEqual([seen.low, seen.high], ['8', '20'])
  assert.deepEqual(values(await readAll(name, 12)), texts(12, 8))
}

async function configs() {
  const name = await topic('configs', 1, { 'retention.ms': '86400000' })
  const seen = async (...configNames) => {
    const found = await admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name, configNames }] })
    return Object.fromEntries(found.resources[0].configEntries.map(one => [one.configName, one.configValue]))
  }
  assert.deepEqual(await seen('retention.ms', 'cleanup.policy'), { 'retention.ms': '86400000', 'cleanup.policy': 'delete' })
  await admin.alterConfigs({ validateOnly: false, resources: [{
    type: ConfigResourceTypes.TOPIC, name, configEntries: [{ name: 'segment.ms', value: '600000' }] }] })
  await settle(async () => assert.deepEqual(await seen('retention.ms', 'segment.ms'), { 'retention.ms': '604800000', 'segment.ms': '600000' }))
}

async function cluster() {
  const seen = await admin.describeCluster()
  assert.ok(seen.clusterId)
  assert.equal(`${seen.brokers[0].port}`, BOOTSTRAP.split(':').pop())
  assert.ok(seen.brokers.some(one => one.nodeId === seen.controller))
}

async function main() {
  console.log(`client kafkajs ${require('kafkajs/package.json').version}`)
  await admin.connect()
  await check('compression', 'none', () => compression('none', CompressionTypes.None))
  await check('compression', 'gzip', () => compression('gzip', CompressionTypes.GZIP))
  await check('compression', 'snappy', () => compression('snappy', CompressionTypes.Snappy))
  await check('compression', 'lz4', () => compression('lz4', CompressionTypes.LZ4))
  skip('compression', 'zstd: this client has none built in')
  for (const level of [0, 1, -1]) await check('acks', String(level), () => acks(level))
  await check('idempotence', 'idempotent producer', idempotence)
  await check('keys', 'null, empty, tombstone', keys)
  await check('keys', 'partitioner', partitioner)
  await check('headers', 'repeated, empty, binary', headers)
  await check('offsets', 'beginning, seek, end', offsets)
  await check('offsets', 'out of range', outOfRange)
  await check('timestamps', 'create time, offsets for times', timestamps)
  await check('timestamps', 'LogAppendTime', brokerTimestamps)
  await check('groups', 'join, leave, commit (roundrobin)', () => groups(PartitionAssigners.roundRobin, 'roundrobin'))
  await check('groups', 'crash', crash)
  await check('groups', 'commits', commits)
  await check('groups', 'administration', groupAdmin)
  skip('groups', 'static members and group.protocol=consumer: this client has neither')
  await check('topics', 'create, describe, refuse', createAndDescribe)
  await check('topics', 'create partitions', partitions)
  await check('topics', 'delete', remove)
  await check('topics', 'delete records', removeRecords)
  await check('configs', 'topic', configs)
  await check('cluster', 'describe', cluster)
  await admin.disconnect()
  process.exit(failed ? 1 : 0)
}

if (process.argv[2] === 'member') member(process.argv[3], 'crash')
else main()
