"""confluent-kafka: librdkafka as most Python, .NET and PHP programs meet it."""
import json
import os
import signal
import subprocess
import sys
import time

import confluent_kafka
from confluent_kafka import (OFFSET_BEGINNING, OFFSET_END, Consumer, ConsumerGroupTopicPartitions,
                             KafkaError, KafkaException, Producer, TopicCollection, TopicPartition)
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource,
                                   NewPartitions, NewTopic, OffsetSpec, ResourceType)

from suite import BOOTSTRAP, RUN, check, finish, same, settle, skip, stored_as, texts, until
from wire import offered

admin = AdminClient({"bootstrap.servers": BOOTSTRAP})


def topic(name, partitions=1, **config):
    name = f"{RUN}-cf-{name}"
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
    admin.create_topics([new])[name].result(20)
    until(lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == partitions)
    return name


def produce(to, values, settings=None, **record):
    """Sends the values and returns what the broker acknowledged of each."""
    acked = []

    def delivered(error, message):
        assert error is None, error
        acked.append(message)

    producer = Producer({"bootstrap.servers": BOOTSTRAP, "linger.ms": 20, **(settings or {})})
    for value in values:
        producer.produce(to, value, on_delivery=delivered, **record)
    same(0, producer.flush(20))
    same(len(values), len(acked))
    return acked


def consumer(**settings):
    return Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": f"{RUN}-cf-none",
                     "enable.auto.commit": False, "auto.offset.reset": "earliest",
                     **{key.replace("_", "."): value for key, value in settings.items()}})


def take(reader, count, seconds=20):
    found = []
    end = time.monotonic() + seconds
    while len(found) < count:
        assert time.monotonic() < end, f"{len(found)} of {count} records came"
        message = reader.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message)
    return found


def read(source, count, offset=OFFSET_BEGINNING, partition=0, **settings):
    reader = consumer(**settings)
    try:
        reader.assign([TopicPartition(source, partition, offset)])
        found = take(reader, count)
        assert reader.poll(0.3) is None, "more records than were sent"
        return found
    finally:
        reader.close()


def compression(codec):
    name = topic(f"compression-{codec}")
    produce(name, texts(500), {"compression.type": codec})
    same(texts(500), [m.value() for m in read(name, 500)])
    stored_as(name, codec)


def acks(level):
    name = topic(f"acks-{level}")
    produce(name, texts(300), {"acks": level})
    same(texts(300), [m.value() for m in read(name, 300)])


def idempotence():
    name = topic("idempotence")
    acked = produce(name, texts(1000), {"enable.idempotence": True, "batch.num.messages": 7})
    same(list(range(1000)), sorted(m.offset() for m in acked))
    same(texts(1000), [m.value() for m in read(name, 1000)])


def keys():
    name = topic("keys")
    for key in (b"k", b"", None):
        produce(name, [b"v", b"", None], key=key)
    same([(k, v) for k in (b"k", b"", None) for v in (b"v", b"", None)],
         [(m.key(), m.value()) for m in read(name, 9)])


def partitioner():
    """The same key goes where Java's producer would send it."""
    name = topic("partitioner", 5)
    places = {}
    for key in ("alpha", "beta", "gamma", "delta"):
        places[key] = produce(name, [b"x"], {"partitioner": "murmur2_random"}, key=key)[0].partition()
    same({key: murmur2(key.encode()) % 5 for key in places}, places)


def murmur2(data):
    mask = 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    for i in range(0, len(data) // 4 * 4, 4):
        k = int.from_bytes(data[i:i + 4], "little") * 0x5BD1E995 & mask
        k = (k ^ k >> 24) * 0x5BD1E995 & mask
        h = (h * 0x5BD1E995 & mask) ^ k
    rest = data[len(data) // 4 * 4:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & mask
    h = (h ^ h >> 13) * 0x5BD1E995 & mask
    return (h ^ h >> 15) & 0x7FFFFFFF


def headers():
    name = topic("headers")
    sent = [("a", b"1"), ("b", b""), ("a", b"2"), ("none", None), ("\u00fc", bytes(range(256)))]
    produce(name, [b"v"], headers=sent)
    produce(name, [b"bare"])
    first, second = read(name, 2)
    same(sent, first.headers())
    same(None, second.headers())


def large():
    """A record near the default limit passes; one above it is refused and leaves no trace."""
    name = topic("large")
    big = os.urandom(1_000_000)
    produce(name, [big], {"message.max.bytes": 1_048_588})
    same([big], [m.value() for m in read(name, 1)])
    refused = []
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "message.max.bytes": 5_000_000})
    producer.produce(name, os.urandom(2_000_000), on_delivery=lambda e, m: refused.append(e))
    producer.flush(20)
    same(KafkaError.MSG_SIZE_TOO_LARGE, refused[0].code())
    same((0, 1), watermarks(name))


def watermarks(name, partition=0):
    reader = consumer()
    try:
        return reader.get_watermark_offsets(TopicPartition(name, partition), timeout=10)
    finally:
        reader.close()


def offsets():
    name = topic("offsets", 2)
    same((0, 0), watermarks(name, 1))
    acked = produce(name, texts(100), partition=0)
    same(list(range(100)), [m.offset() for m in acked])
    same((0, 100), watermarks(name))
    same(texts(40, 60), [m.value() for m in read(name, 40, offset=60)])
    reader = consumer()
    reader.assign([TopicPartition(name, 0, OFFSET_END)])
    # The end is looked up some time after assign, so records are sent until one arrives.
    came = until(lambda: produce(name, [b"new"], partition=0) and reader.poll(0.5))
    same((None, b"new"), (came.error(), came.value()))
    assert came.offset() >= 100, came.offset()
    reader.seek(TopicPartition(name, 0, 7))
    same(texts(3, 7), [m.value() for m in take(reader, 3)])
    same(10, reader.position([TopicPartition(name, 0)])[0].offset)
    reader.close()


def out_of_range():
    name = topic("range")
    produce(name, texts(10))
    same(texts(10), [m.value() for m in read(name, 10, offset=500)])
    reader = consumer(auto_offset_reset="error")
    reader.assign([TopicPartition(name, 0, 500)])
    message = until(lambda: reader.poll(1))
    same(KafkaError._AUTO_OFFSET_RESET, message.error().code())
    reader.close()


def end_of_partition():
    name = topic("eof")
    produce(name, texts(3))
    reader = consumer(enable_partition_eof=True)
    reader.assign([TopicPartition(name, 0, 0)])
    take(reader, 3)
    message = until(lambda: reader.poll(1))
    same((KafkaError._PARTITION_EOF, 3), (message.error().code(), message.offset()))
    reader.close()


def timestamps():
    name = topic("timestamps")
    for time_ms in (2000, 4000, 6000, 8000):
        produce(name, [str(time_ms).encode()], timestamp=time_ms)
    same([(confluent_kafka.TIMESTAMP_CREATE_TIME, t) for t in (2000, 4000, 6000, 8000)],
         [m.timestamp() for m in read(name, 4)])
    reader = consumer()
    for ask, want in ((1, 0), (2000, 0), (2001, 1), (7000, 3), (8000, 3), (8001, OFFSET_END)):
        found = reader.offsets_for_times([TopicPartition(name, 0, ask)], timeout=10)[0]
        same((ask, None, want), (ask, found.error, found.offset))
    reader.close()


def broker_timestamps():
    name = topic("logappend", **{"message.timestamp.type": "LogAppendTime"})
    acked = produce(name, [b"v"], timestamp=1)[0]
    kind, stamp = acked.timestamp()
    same(confluent_kafka.TIMESTAMP_LOG_APPEND_TIME, kind)
    assert abs(stamp - time.time() * 1000) < 60_000, stamp
    same((kind, stamp), read(name, 1)[0].timestamp())


GROUP = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 500, "topic_metadata_refresh_interval_ms": 1000}


def balance(members, want):
    """Polls all members until each owns as many partitions as wanted."""
    def settled():
        for member in members:
            member.poll(0.05)
        return [len(member.assignment()) for member in members] == want
    until(settled, 30)


def groups(strategy):
    name, group = topic(f"group-{strategy}", 4), f"{RUN}-cf-{strategy}"
    settings = {"group_id": group, "partition_assignment_strategy": strategy, **GROUP}
    first, second = consumer(**settings), consumer(**settings)
    first.subscribe([name])
    balance([first], [4])
    second.subscribe([name])
    balance([first, second], [2, 2])
    for partition in range(4):
        produce(name, texts(25), partition=partition)
    found = []
    end = time.monotonic() + 20
    while len(found) < 100 and time.monotonic() < end:
        found += [m for m in (first.poll(0.05), second.poll(0.05)) if m is not None]
    same([(p, o) for p in range(4) for o in range(25)],
         sorted((m.partition(), m.offset()) for m in found))
    first.commit(asynchronous=False)
    second.commit(asynchronous=False)
    # The one that leaves says so, and the other is given all.
    first.close()
    balance([second], [4])
    same([25] * 4, [p.offset for p in second.committed([TopicPartition(name, p) for p in range(4)], 10)])
    produce(name, [b"after"], partition=3)
    same([(3, 25)], [(m.partition(), m.offset()) for m in take(second, 1)])
    second.close()


MEMBER = """
import os, sys
from confluent_kafka import Consumer
settings = {"bootstrap.servers": os.environ["BOOTSTRAP"], "group.id": sys.argv[2],
            "session.timeout.ms": 6000, "auto.offset.reset": "earliest"}
if len(sys.argv) > 3: settings["group.instance.id"] = sys.argv[3]
c = Consumer(settings)
c.subscribe([sys.argv[1]])
while True:
    c.poll(0.1)
    print(len(c.assignment()), flush=True)
"""


def crash():
    name, group = topic("crash", 4), f"{RUN}-cf-crash"
    ours = consumer(group_id=group, partition_assignment_strategy="range", **GROUP)
    ours.subscribe([name])
    balance([ours], [4])
    other = subprocess.Popen([sys.executable, "-c", MEMBER, name, group], stdout=subprocess.DEVNULL)
    try:
        balance([ours], [2])
        other.send_signal(signal.SIGKILL)
        begun = time.monotonic()
        balance([ours], [4])
        assert time.monotonic() - begun < 20
    finally:
        other.kill()
        ours.close()


def static_member():
    """A static member that comes back within its session is given the same without a rebalance."""
    name, group = topic("static", 4), f"{RUN}-cf-static"
    settings = {"group_id": group, "partition_assignment_strategy": "range", "session_timeout_ms": 30000}
    revoked = []
    ours = consumer(group_instance_id="ours", **settings)
    ours.subscribe([name], on_revoke=lambda c, p: revoked.append(p))
    balance([ours], [4])
    other = consumer(group_instance_id="other", **settings)
    other.subscribe([name])
    balance([ours, other], [2, 2])
    before = len(revoked), sorted(p.partition for p in other.assignment())
    other.close()
    other = consumer(group_instance_id="other", **settings)
    other.subscribe([name])
    balance([ours, other], [2, 2])
    same(before, (len(revoked), sorted(p.partition for p in other.assignment())))
    seen = admin.describe_consumer_groups([group])[group].result(10)
    same(["other", "ours"], sorted(m.group_instance_id for m in seen.members))
    other.close()
    ours.close()


def commits():
    name, group = topic("commits", 2), f"{RUN}-cf-commits"
    reader = consumer(group_id=group)
    ask = [TopicPartition(name, 0), TopicPartition(name, 1)]
    same([-1001, -1001], [p.offset for p in reader.committed(ask, 10)])
    reader.commit(offsets=[TopicPartition(name, 0, 42, "a note")], asynchronous=False)
    same([(42, "a note"), (-1001, None)], [(p.offset, p.metadata or None) for p in reader.committed(ask, 10)])
    gone = TopicPartition(f"{RUN}-cf-nowhere", 0, 1)
    try:
        result = reader.commit(offsets=[gone], asynchronous=False)
        same(KafkaError.UNKNOWN_TOPIC_OR_PART, result[0].error.code())
    except KafkaException as error:
        same(KafkaError.UNKNOWN_TOPIC_OR_PART, error.args[0].code())
    reader.close()


def new_protocol():
    """Groups of KIP-848."""
    name = topic("kip848")
    reader = consumer(group_id=f"{RUN}-cf-848", group_protocol="consumer")
    reader.subscribe([name])
    produce(name, [b"v"])
    same([b"v"], [m.value() for m in take(reader, 1)])
    reader.close()


def create_and_describe():
    name = topic("created", 3, **{"retention.ms": "86400000"})
    seen = admin.describe_topics(TopicCollection([name]))[name].result(10)
    same([0, 1, 2], [p.id for p in seen.partitions])
    assert str(seen.topic_id) not in ("", "AAAAAAAAAAAAAAAAAAAAAA"), seen.topic_id
    same(1, len(seen.partitions[0].replicas))
    for new, code in ((NewTopic(name, 1, 1), KafkaError.TOPIC_ALREADY_EXISTS),
                      (NewTopic(f"{name} x", 1, 1), KafkaError.TOPIC_EXCEPTION),
                      (NewTopic(f"{name}-rf", 1, 9), KafkaError.INVALID_REPLICATION_FACTOR),
                      (NewTopic(f"{name}-np", 0, 1), None),
                      (NewTopic(f"{name}-cfg", 1, 1, config={"retention.ms": "x"}), KafkaError.INVALID_CONFIG)):
        refused(admin.create_topics([new]), code)


def refused(futures, code):
    try:
        for future in futures.values():
            future.result(15)
    except KafkaException as error:
        assert code is None or error.args[0].code() == code, f"want {code}, seen {error}"
        return
    except ValueError:
        assert code is None
        return
    raise AssertionError("was not refused")


def validate_only():
    name = f"{RUN}-cf-dry"
    admin.create_topics([NewTopic(name, 3, 1)], validate_only=True)[name].result(10)
    assert name not in admin.list_topics(timeout=10).topics
    taken = topic("taken")
    refused(admin.create_topics([NewTopic(taken, 1, 1)], validate_only=True), KafkaError.TOPIC_ALREADY_EXISTS)


def partitions():
    name = topic("grown")
    admin.create_partitions([NewPartitions(name, 4)])[name].result(10)
    until(lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == 4)
    refused(admin.create_partitions([NewPartitions(name, 2)]), KafkaError.INVALID_PARTITIONS)
    produce(name, [b"v"], partition=3)
    same([b"v"], [m.value() for m in read(name, 1, partition=3)])


def delete_and_again():
    """A name used again is a new topic: another id, offsets from 0, no commits left, and who reads
    it all the while gets what is new."""
    name, group = topic("again"), f"{RUN}-cf-again"
    before = admin.describe_topics(TopicCollection([name]))[name].result(10).topic_id
    produce(name, texts(10))
    reader = consumer(group_id=group)
    reader.commit(offsets=[TopicPartition(name, 0, 10)], asynchronous=False)
    # A short age of its metadata has it notice soon.
    running = consumer(group_id=f"{group}-running", topic_metadata_refresh_interval_ms=500)
    running.subscribe([name])
    same(texts(10), [m.value() for m in take(running, 10)])
    admin.delete_topics([name])[name].result(10)
    until(lambda: name not in admin.list_topics(timeout=10).topics)
    # The name may be taken for a moment longer.
    until(lambda: created_again(name))
    until(lambda: watermarks_or_none(name) == (0, 0))
    after = admin.describe_topics(TopicCollection([name]))[name].result(10).topic_id
    assert str(before) != str(after), after
    settle(lambda: same(-1001, reader.committed([TopicPartition(name, 0)], 10)[0].offset))
    produce(name, texts(5))
    same(texts(5), [m.value() for m in read(name, 5)])
    reader.close()
    found = []
    until(lambda: gather(running, found) >= 5, 30)
    same(texts(5), found)
    running.close()


def gather(reader, found):
    """Adds what comes, and lets the errors of a topic that is away for a moment pass."""
    message = reader.poll(0.5)
    if message is not None and message.error() is None:
        found.append(message.value())
    return len(found)


def created_again(name):
    try:
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(10)
        return True
    except KafkaException as error:
        same(KafkaError.TOPIC_ALREADY_EXISTS, error.args[0].code())
        return False


def watermarks_or_none(name):
    try:
        return watermarks(name)
    except KafkaException:
        return None


def no_auto_create():
    """Asking for a topic that is not there must not make it."""
    name = f"{RUN}-cf-nope"
    seen = admin.list_topics(name, timeout=10).topics[name]
    same(KafkaError.UNKNOWN_TOPIC_OR_PART, seen.error.code())
    assert name not in admin.list_topics(timeout=10).topics


def delete_records():
    name = topic("trimmed")
    produce(name, texts(20))
    at = TopicPartition(name, 0, 8)
    same(8, admin.delete_records([at])[at].result(10).low_watermark)
    same((8, 20), watermarks(name))
    same(texts(12, 8), [m.value() for m in read(name, 12)])


def list_offsets():
    name = topic("listed")
    for stamp in (5000, 9000, 7000):
        produce(name, [b"v"], timestamp=stamp)
    at = TopicPartition(name, 0)
    for spec, want in ((OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 3),
                       (OffsetSpec.max_timestamp(), 1), (OffsetSpec.for_timestamp(6000), 1)):
        same(want, admin.list_offsets({at: spec})[at].result(10).offset)


def topic_configs():
    name = topic("configs", **{"retention.ms": "86400000"})
    resource = ConfigResource(ResourceType.TOPIC, name)
    seen = describe(resource)
    assert len(seen) >= 25, len(seen)
    same(("86400000", 1, False), (seen["retention.ms"].value, seen["retention.ms"].source, seen["retention.ms"].is_default))
    same(("delete", 5), (seen["cleanup.policy"].value, seen["cleanup.policy"].source))
    alter(resource, ("max.message.bytes", "123456", AlterConfigOpType.SET),
          ("retention.ms", None, AlterConfigOpType.DELETE),
          ("cleanup.policy", "compact", AlterConfigOpType.APPEND))
    settle(lambda: same(("123456", "604800000", "delete,compact"),
           tuple(describe(resource)[k].value for k in ("max.message.bytes", "retention.ms", "cleanup.policy"))))
    refused(admin.incremental_alter_configs([with_entries(resource, ("retention.ms", "x", AlterConfigOpType.SET))]),
            KafkaError.INVALID_CONFIG)
    refused(admin.describe_configs([ConfigResource(ResourceType.TOPIC, f"{name}-none")]),
            KafkaError.UNKNOWN_TOPIC_OR_PART)
    # The old call replaces the whole of what was set.
    whole = ConfigResource(ResourceType.TOPIC, name, set_config={"segment.ms": "600000"})
    for future in admin.alter_configs([whole]).values():
        future.result(10)
    settle(lambda: same(("600000", "1048588"), tuple(describe(resource)[k].value for k in ("segment.ms", "max.message.bytes"))))


def describe(resource):
    return admin.describe_configs([resource])[resource].result(10)


def with_entries(resource, *entries):
    return ConfigResource(resource.restype, resource.name, incremental_configs=[
        ConfigEntry(name, value, incremental_operation=operation) for name, value, operation in entries])


def alter(resource, *entries):
    for future in admin.incremental_alter_configs([with_entries(resource, *entries)]).values():
        future.result(10)


def broker_configs():
    node = str(min(admin.list_topics(timeout=10).brokers))
    resource = ConfigResource(ResourceType.BROKER, node)
    seen = describe(resource)
    for key in ("log.retention.hours", "num.partitions", "message.max.bytes", "auto.create.topics.enable"):
        assert key in seen, key
    assert seen["log.dirs"].is_read_only
    alter(resource, ("log.cleaner.backoff.ms", "14500", AlterConfigOpType.SET))
    settle(lambda: same("14500", describe(resource)["log.cleaner.backoff.ms"].value))
    alter(resource, ("log.cleaner.backoff.ms", None, AlterConfigOpType.DELETE))
    settle(lambda: same(False, describe(resource)["log.cleaner.backoff.ms"].value == "14500"))
    refused(admin.incremental_alter_configs([with_entries(resource, ("log.dirs", "/x", AlterConfigOpType.SET))]), None)


def cluster():
    seen = admin.describe_cluster().result(10)
    assert seen.cluster_id and seen.nodes, seen
    assert seen.controller.id in [node.id for node in seen.nodes]
    same(BOOTSTRAP.rsplit(":", 1)[1], str(seen.nodes[0].port))


def group_admin():
    name, group = topic("administered"), f"{RUN}-cf-administered"
    produce(name, texts(10))
    reader = consumer(group_id=group, client_id="the-member", **GROUP)
    reader.subscribe([name])
    take(reader, 10)
    reader.commit(asynchronous=False)
    seen = admin.describe_consumer_groups([group])[group].result(10)
    same("STABLE", seen.state.name)
    member = seen.members[0]
    same(("the-member", [(name, 0)]),
         (member.client_id, [(p.topic, p.partition) for p in member.assignment.topic_partitions]))
    assert group in [g.group_id for g in admin.list_consumer_groups().result(10).valid]
    refused(admin.delete_consumer_groups([group]), KafkaError.NON_EMPTY_GROUP)
    reader.close()
    settle(lambda: same("EMPTY", admin.describe_consumer_groups([group])[group].result(10).state.name))
    asked = ConsumerGroupTopicPartitions(group)
    listed = admin.list_consumer_group_offsets([asked])[group].result(10).topic_partitions
    same([(name, 0, 10)], [(p.topic, p.partition, p.offset) for p in listed])
    moved = ConsumerGroupTopicPartitions(group, [TopicPartition(name, 0, 4)])
    admin.alter_consumer_group_offsets([moved])[group].result(10)
    listed = admin.list_consumer_group_offsets([asked])[group].result(10).topic_partitions
    same([4], [p.offset for p in listed])
    admin.delete_consumer_groups([group])[group].result(10)
    assert group not in [g.group_id for g in admin.list_consumer_groups().result(10).valid]
    refused(admin.delete_consumer_groups([group]), KafkaError.GROUP_ID_NOT_FOUND)


def statistics():
    """The client's own statistics name the broker and the partition, so its metadata was whole."""
    name, seen = topic("statistics"), []
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "statistics.interval.ms": 100,
                         "stats_cb": lambda text: seen.append(json.loads(text))})
    producer.produce(name, b"v")
    producer.flush(10)
    until(lambda: producer.poll(0.1) is not None and seen and name in seen[-1]["topics"])
    assert "0" in seen[-1]["topics"][name]["partitions"]


print(f"client confluent-kafka {confluent_kafka.version()} (librdkafka {confluent_kafka.libversion()[0]})", flush=True)
for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    check("compression", codec, compression, codec)
for level in ("0", "1", "all"):
    check("acks", level, acks, level)
check("acks", "record at and over the limit", large)
check("idempotence", "in batches of seven", idempotence)
check("keys", "null, empty, tombstone", keys)
check("keys", "murmur2 partitioner", partitioner)
check("headers", "repeated, empty, null, binary", headers)
check("offsets", "beginning, absolute, end, seek, position", offsets)
check("offsets", "out of range", out_of_range)
check("offsets", "end of partition", end_of_partition)
check("offsets", "Admin list_offsets", list_offsets)
check("timestamps", "create time, offsets for times", timestamps)
check("timestamps", "LogAppendTime", broker_timestamps)
for strategy in ("range", "roundrobin", "cooperative-sticky"):
    check("groups", f"join, leave, commit ({strategy})", groups, strategy)
check("groups", "crash", crash)
check("groups", "static member", static_member)
check("groups", "commits and their metadata", commits)
check("groups", "administration", group_admin)
if 68 in offered(BOOTSTRAP):
    check("groups", "group.protocol=consumer", new_protocol)
else:
    skip("groups", "group.protocol=consumer: not offered here, and librdkafka then waits without an error")
check("topics", "create, describe, refuse", create_and_describe)
check("topics", "validate only", validate_only)
check("topics", "create partitions", partitions)
check("topics", "delete and create again", delete_and_again)
check("topics", "asking does not create", no_auto_create)
check("topics", "delete records", delete_records)
check("configs", "topic", topic_configs)
check("configs", "broker", broker_configs)
check("cluster", "describe", cluster)
check("cluster", "statistics", statistics)
finish()
