#!/usr/bin/env python3
"""Prints which codecs the batches of a topic are stored with, such as `gzip` or `lz4 none`.

    stored.py HOST:PORT TOPIC

A client may fall back to sending uncompressed without a word, so a suite asks the log.
Speaks Fetch v4 itself and needs nothing beyond Python."""
import struct
import sys

from wire import call, connect, string

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def partitions(peer, topic):
    """Metadata v1: brokers, controller, then the topic with its partitions."""
    data = call(peer, 3, 1, struct.pack(">i", 1) + string(topic))
    at = 4
    for _ in range(struct.unpack_from(">i", data)[0]):
        at += 4
        at += 2 + struct.unpack_from(">h", data, at)[0] + 4
        at += 2 + max(struct.unpack_from(">h", data, at)[0], 0)
    at += 4 + 4 + 2
    at += 2 + struct.unpack_from(">h", data, at)[0] + 1
    return range(struct.unpack_from(">i", data, at)[0])


def records(peer, topic, partition):
    body = struct.pack(">iiiib", -1, 500, 1, 50 << 20, 0)
    body += struct.pack(">i", 1) + string(topic)
    body += struct.pack(">iiqi", 1, partition, 0, 50 << 20)
    data = call(peer, 1, 4, body)
    at = 4 + 4 + 2 + len(topic) + 4 + 4
    error = struct.unpack_from(">h", data, at)[0]
    if error:
        sys.exit(f"fetch of {topic}-{partition}: error {error}")
    at += 2 + 8 + 8
    at += 4 + 16 * max(struct.unpack_from(">i", data, at)[0], 0)
    return data[at + 4:]


def main():
    topic = sys.argv[2]
    found = set()
    with connect(sys.argv[1]) as peer:
        for partition in partitions(peer, topic):
            data = records(peer, topic, partition)
            at = 0
            while at + 61 <= len(data):
                found.add(struct.unpack_from(">h", data, at + 21)[0] & 7)
                at += 12 + struct.unpack_from(">i", data, at + 8)[0]
    print(" ".join(CODECS[codec] for codec in sorted(found)))


main()
