#!/usr/bin/env python3
"""Creates a topic and waits until it can be written: create_topic.py HOST:PORT TOPIC PARTITIONS

For clients that have no admin calls. Speaks CreateTopics v2 and ListOffsets v1 itself."""
import struct
import sys
import time

from wire import call, connect, string


def writable(peer, topic, partition):
    body = struct.pack(">ii", -1, 1) + string(topic) + struct.pack(">iiq", 1, partition, -1)
    answer = call(peer, 2, 1, body)
    return struct.unpack_from(">h", answer, 4 + 2 + len(topic) + 4 + 4)[0] == 0


def main():
    topic, count = sys.argv[2], int(sys.argv[3])
    with connect(sys.argv[1]) as peer:
        body = struct.pack(">i", 1) + string(topic) + struct.pack(">ihii", count, 1, 0, 0)
        answer = call(peer, 19, 2, body + struct.pack(">ib", 10000, 0))
        error = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic))[0]
        if error:
            sys.exit(f"creating {topic}: error {error}")
        # A created topic may still be without a leader for a moment.
        end = time.monotonic() + 15
        while not all(writable(peer, topic, p) for p in range(count)):
            if time.monotonic() > end:
                sys.exit(f"{topic} never became writable")
            time.sleep(0.05)


main()
