"""kafka-python: the protocol written anew in Python, with JoinGroup up to v7 and Fetch to v12."""
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import kafka
from kafka import (KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, OffsetSpec,
                   TopicPartition)
from kafka import errors
from kafka.admin import ConfigResource
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from suite import BOOTSTRAP, RUN, check, finish, same, settle, skip, stored_as, texts, until

admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)


def topic(name, partitions=1, **configs):
    name = f"{RUN}-kp-{name}"
    admin.create_topics({name: {"num_partitions": partitions, "replication_factor": 1, "configs": configs}},
                        wait_for_metadata=True)
    return name


def produce(to, values, key=None, partition=None, headers=None, timestamp=None, **settings):
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, linger_ms=20, **settings)
    sent = [producer.send(to, value, key=key, partition=partition, headers=headers or [],
                          timestamp_ms=timestamp) for value in values]
    producer.flush(20)
    acked = [one.get(20) for one in sent]
    producer.close(5)
    return acked


def consumer(**settings):
    return KafkaConsumer(bootstrap_servers=BOOTSTRAP, enable_auto_commit=False,
                         **{"auto_offset_reset": "earliest", **settings})


def take(reader, count, seconds=20):
    found = []
    end = time.monotonic() + seconds
    while len(found) < count:
        assert time.monotonic() < end, f"{len(found)} of {count} records came"
        for records in reader.poll(200).values():
            found += records
    return found


def read(source, count, offset=0, partition=0, **settings):
    reader = consumer(**settings)
    try:
        at = TopicPartition(source, partition)
        reader.assign([at])
        reader.seek(at, offset)
        found = take(reader, count)
        assert not reader.poll(300), "more records than were sent"
        return found
    finally:
        reader.close()


def compression(codec):
    name = topic(f"compression-{codec}")
    produce(name, texts(500), compression_type=None if codec == "none" else codec)
    same(texts(500), [r.value for r in read(name, 500)])
    stored_as(name, codec)


def acks(level):
    name = topic(f"acks-{level}")
    produce(name, texts(300), acks=level, enable_idempotence=False)
    same(texts(300), [r.value for r in read(name, 300)])


def idempotence():
    name = topic("idempotence")
    acked = produce(name, texts(1000), enable_idempotence=True, batch_size=500)
    same(list(range(1000)), [a.offset for a in acked])
    same(texts(1000), [r.value for r in read(name, 1000)])


def keys():
    name = topic("keys")
    for key in (b"k", b"", None):
        produce(name, [b"v", b""], key=key)
    produce(name, [None], key=b"gone")
    same([(k, v) for k in (b"k", b"", None) for v in (b"v", b"")] + [(b"gone", None)],
         [(r.key, r.value) for r in read(name, 7)])


def headers():
    name = topic("headers")
    sent = [("a", b"1"), ("b", b""), ("a", b"2"), ("\u00fc", bytes(range(256)))]
    produce(name, [b"v"], headers=sent)
    produce(name, [b"bare"])
    first, second = read(name, 2)
    same(sent, list(first.headers))
    same([], list(second.headers))


def offsets():
    name = topic("offsets", 2)
    at, empty = TopicPartition(name, 0), TopicPartition(name, 1)
    same(list(range(100)), [a.offset for a in produce(name, texts(100), partition=0)])
    reader = consumer()
    same({at: 0, empty: 0}, reader.beginning_offsets([at, empty]))
    same({at: 100, empty: 0}, reader.end_offsets([at, empty]))
    reader.assign([at])
    reader.seek(at, 60)
    same(texts(40, 60), [r.value for r in take(reader, 40)])
    same(100, reader.position(at))
    reader.seek_to_beginning(at)
    same(0, reader.position(at))
    reader.seek_to_end(at)
    same(100, reader.position(at))
    produce(name, [b"last"], partition=0)
    same([b"last"], [r.value for r in take(reader, 1)])
    reader.close()


def out_of_range():
    name = topic("range")
    produce(name, texts(10))
    same(texts(10), [r.value for r in read(name, 10, offset=500)])
    reader = consumer(auto_offset_reset="none")
    at = TopicPartition(name, 0)
    reader.assign([at])
    reader.seek(at, 500)
    try:
        until(lambda: reader.poll(500), 5)
    except errors.OffsetOutOfRangeError:
        return
    finally:
        reader.close()
    raise AssertionError("no error came")


def timestamps():
    name = topic("timestamps")
    at = TopicPartition(name, 0)
    for time_ms in (2000, 4000, 6000, 8000):
        produce(name, [b"v"], timestamp=time_ms)
    same([(0, t) for t in (2000, 4000, 6000, 8000)], [(r.timestamp_type, r.timestamp) for r in read(name, 4)])
    reader = consumer()
    for ask, want in ((1, (0, 2000)), (2001, (1, 4000)), (8000, (3, 8000)), (8001, None)):
        found = reader.offsets_for_times({at: ask})[at]
        same((ask, want), (ask, found and (found.offset, found.timestamp)))
    reader.close()


def broker_timestamps():
    name = topic("logappend", **{"message.timestamp.type": "LogAppendTime"})
    acked = produce(name, [b"v"], timestamp=1)[0]
    assert abs(acked.timestamp - time.time() * 1000) < 60_000, acked
    record = read(name, 1)[0]
    same((1, acked.timestamp), (record.timestamp_type, record.timestamp))


def poll_all(members):
    """What all members are given. Each polls in a thread of its own, as members do: one that waits
    for its turn while the group rebalances keeps the others waiting, and kafka-python then forgets
    what it was given or stops fetching (against Apache Kafka too)."""
    with ThreadPoolExecutor(len(members)) as threads:
        polled = list(threads.map(lambda member: member.poll(1000), members))
    return [record for records in polled for found in records.values() for record in found]


def balance(members, want):
    def settled():
        poll_all(members)
        return [len(member.assignment()) for member in members] == want
    until(settled, 40)


def groups(label, assignor):
    name, group = topic(f"group-{label}", 4), f"{RUN}-kp-{label}"
    settings = {"group_id": group, "partition_assignment_strategy": [assignor],
                "session_timeout_ms": 6000, "heartbeat_interval_ms": 300}
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
        found += poll_all((first, second))
    same([(p, o) for p in range(4) for o in range(25)], sorted((r.partition, r.offset) for r in found))
    for member in (first, second):
        until(lambda: committed_all(first, second, member))
    first.close()
    balance([second], [4])
    same([25] * 4, [second.committed(TopicPartition(name, p)) for p in range(4)])
    produce(name, [b"after"], partition=3)
    same([(3, 25)], [(r.partition, r.offset) for r in take(second, 1)])
    second.close()


def committed_all(first, second, member):
    """A cooperative group may rebalance once more while both already have their share."""
    try:
        member.commit()
        return True
    except errors.RebalanceInProgressError:
        poll_all((first, second))
        return False


MEMBER = """
import os, sys
from kafka import KafkaConsumer
c = KafkaConsumer(sys.argv[1], bootstrap_servers=os.environ["BOOTSTRAP"], group_id=sys.argv[2],
                  session_timeout_ms=6000, heartbeat_interval_ms=300)
while True:
    c.poll(100)
"""


def crash():
    name, group = topic("crash", 4), f"{RUN}-kp-crash"
    ours = consumer(group_id=group, session_timeout_ms=6000, heartbeat_interval_ms=300)
    ours.subscribe([name])
    balance([ours], [4])
    other = subprocess.Popen([sys.executable, "-c", MEMBER, name, group], stdout=subprocess.DEVNULL)
    try:
        balance([ours], [2])
        other.send_signal(signal.SIGKILL)
        balance([ours], [4])
    finally:
        other.kill()
        ours.close()


def static_member():
    name, group = topic("static", 2), f"{RUN}-kp-static"
    settings = {"group_id": group, "group_instance_id": "one", "session_timeout_ms": 30000}
    first = consumer(**settings)
    first.subscribe([name])
    balance([first], [2])
    # A second one under the same name takes its place; the first is told so.
    second = consumer(**settings)
    second.subscribe([name])
    balance([second], [2])
    try:
        until(lambda: first.commit({TopicPartition(name, 0): OffsetAndMetadata(1, "", -1)}), 3)
    except errors.KafkaError:
        pass
    else:
        raise AssertionError("the first one could still commit")
    seen = admin.describe_groups([group])[group]
    same(["one"], [m["group_instance_id"] for m in seen["members"]])
    second.close()
    first.close()


def commits():
    name, group = topic("commits", 2), f"{RUN}-kp-commits"
    at = TopicPartition(name, 0)
    reader = consumer(group_id=group)
    reader.assign([at])
    same(None, reader.committed(at))
    reader.commit({at: OffsetAndMetadata(42, "a note", -1)})
    same((42, "a note"), reader.committed(at, metadata=True)[:2])
    same(None, reader.committed(TopicPartition(name, 1)))
    reader.close()


def group_admin():
    name, group = topic("administered"), f"{RUN}-kp-administered"
    produce(name, texts(10))
    reader = consumer(group_id=group, client_id="the-member", session_timeout_ms=6000)
    reader.subscribe([name])
    take(reader, 10)
    reader.commit()
    seen = admin.describe_groups([group])[group]
    same(("Stable", "consumer", "the-member"),
         (seen["group_state"], seen["protocol_type"], seen["members"][0]["client_id"]))
    listed = {g["group_id"]: g for g in admin.list_groups()}
    same(("consumer", "Stable"), (listed[group]["protocol_type"], listed[group]["group_state"]))
    assert group not in [g["group_id"] for g in admin.list_groups(states_filter=["Empty"])]
    reader.close()
    settle(lambda: same("Empty", admin.describe_groups([group])[group]["group_state"]))
    at = TopicPartition(name, 0)
    same(10, admin.list_group_offsets({group: None})[group][at].offset)
    admin.alter_group_offsets(group, {at: OffsetAndMetadata(4, "", -1)})
    same(4, admin.list_group_offsets({group: [at]})[group][at].offset)
    admin.delete_group_offsets(group, [at])
    assert at not in admin.list_group_offsets({group: None})[group]
    admin.alter_group_offsets(group, {at: OffsetAndMetadata(4, "", -1)})
    admin.delete_groups([group])
    assert group not in [g["group_id"] for g in admin.list_groups()]


def create_and_describe():
    name = topic("created", 3)
    seen = admin.describe_topics([name])[0]
    same([0, 1, 2], sorted(p["partition_index"] for p in seen["partitions"]))
    assert name in admin.list_topics()
    refused(errors.TopicAlreadyExistsError, {name: {"num_partitions": 1, "replication_factor": 1}})
    refused(errors.InvalidTopicError, {f"{name} x": {"num_partitions": 1, "replication_factor": 1}})
    refused(errors.InvalidReplicationFactorError, {f"{name}-rf": {"num_partitions": 1, "replication_factor": 9}})
    refused(errors.InvalidPartitionsError, {f"{name}-np": {"num_partitions": 0, "replication_factor": 1}})


def refused(error, new):
    try:
        admin.create_topics(new)
    except error:
        return
    raise AssertionError(f"{error.__name__} did not come")


def partitions():
    name = topic("grown")
    admin.create_partitions({name: 3})
    until(lambda: len(admin.describe_topics([name])[0]["partitions"]) == 3)
    same([2], [a.partition for a in produce(name, [b"v"], partition=2)])


def delete():
    name = topic("deleted")
    admin.delete_topics([name])
    until(lambda: name not in admin.list_topics())
    try:
        admin.delete_topics([name])
    except errors.UnknownTopicOrPartitionError:
        return
    raise AssertionError("deleting what is not there was accepted")


def delete_records():
    name = topic("trimmed")
    at = TopicPartition(name, 0)
    produce(name, texts(20))
    admin.delete_records({at: 8})
    reader = consumer()
    same({at: 8}, reader.beginning_offsets([at]))
    reader.close()
    same(texts(12, 8), [r.value for r in read(name, 12, offset=8)])


def list_offsets():
    name = topic("listed")
    at = TopicPartition(name, 0)
    for stamp in (5000, 9000, 7000):
        produce(name, [b"v"], timestamp=stamp)
    for spec, want in ((OffsetSpec.EARLIEST, 0), (OffsetSpec.LATEST, 3), (OffsetSpec.MAX_TIMESTAMP, 1)):
        same((spec, want), (spec, admin.list_partition_offsets({at: spec})[at].offset))


def topic_configs():
    name = topic("configs", **{"retention.ms": "86400000"})

    def seen(which="all"):
        found = admin.describe_configs([ConfigResource("TOPIC", name)], config_filter=which)
        return {key: entry["value"] for key, entry in next(iter(found.values()))[name].items()}

    same({"retention.ms": "86400000"}, seen("modified"))
    assert len(seen()) >= 25, seen()
    admin.alter_configs([ConfigResource("TOPIC", name, {"segment.ms": "600000"})])
    settle(lambda: same({"retention.ms": "86400000", "segment.ms": "600000"}, seen("modified")))
    admin.reset_configs([ConfigResource("TOPIC", name, ["segment.ms"])])
    settle(lambda: same({"retention.ms": "86400000"}, seen("modified")))


def cluster():
    seen = admin.describe_cluster()
    same(BOOTSTRAP.rsplit(":", 1)[1], str(seen["brokers"][0]["port"]))
    assert seen["cluster_id"]
    name = topic("sized")
    produce(name, [os.urandom(100_000)])
    directories = admin.describe_log_dirs({name: [0]})[0]["log_dirs"]
    sizes = [p["partition_size"] for d in directories for t in d["topics"] for p in t["partitions"]]
    same(1, len(sizes))
    assert 100_000 < sizes[0] < 110_000, sizes


print(f"client kafka-python {kafka.__version__}", flush=True)
for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    check("compression", codec, compression, codec)
for level in (0, 1, "all"):
    check("acks", str(level), acks, level)
check("idempotence", "in small batches", idempotence)
check("keys", "null, empty, tombstone", keys)
check("headers", "repeated, empty, binary", headers)
check("offsets", "beginning, absolute, end, position", offsets)
check("offsets", "out of range", out_of_range)
check("offsets", "Admin list offsets", list_offsets)
check("timestamps", "create time, offsets for times", timestamps)
check("timestamps", "LogAppendTime", broker_timestamps)
check("groups", "join, leave, commit (range)", groups, "range", RangePartitionAssignor)
check("groups", "join, leave, commit (roundrobin)", groups, "roundrobin", RoundRobinPartitionAssignor)
check("groups", "join, leave, commit (cooperative-sticky)", groups, "cooperative", CooperativeStickyAssignor)
check("groups", "crash", crash)
check("groups", "static member", static_member)
check("groups", "commits and their metadata", commits)
check("groups", "administration", group_admin)
check("topics", "create, describe, refuse", create_and_describe)
check("topics", "create partitions", partitions)
check("topics", "delete", delete)
check("topics", "delete records", delete_records)
check("configs", "topic", topic_configs)
check("cluster", "describe, log dirs", cluster)
skip("groups", "group.protocol=consumer: this client has the classic protocol only")
finish()
