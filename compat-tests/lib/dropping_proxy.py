#!/usr/bin/env python3
"""A broker that loses records, to show that the suites notice.

    dropping_proxy.py LISTEN_PORT HOST:PORT [EVERY]

Passes everything on, but takes every hundredth record (offsets 99, 199, ... or as EVERY says)
out of the answers to Fetch v4-18. What is left of a batch is valid, as after compaction: only the
record is missing. The broker must advertise LISTEN_PORT. Codecs other than gzip need the module cramjam; without it
their batches pass whole."""
import asyncio
import gzip
import struct
import sys

try:
    import cramjam
except ImportError:
    cramjam = None

EVERY = int(sys.argv[3]) if len(sys.argv) > 3 else 100
FETCH = 1
FLEXIBLE_FROM = 12
BATCH_HEADER = 61
XERIAL = b"\x82SNAPPY\x00"

CRC_TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    CRC_TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def unsigned(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def signed(data, at):
    value, at = unsigned(data, at)
    return value >> 1 ^ -(value & 1), at


def put_unsigned(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def unpacked(codec, data):
    """The records of a batch, and how to pack what is left of them; None: cannot be read here."""
    if codec == 0:
        return data, lambda left: left
    if codec == 1:
        return gzip.decompress(data), gzip.compress
    if cramjam is None:
        return None
    if codec == 2:
        if data.startswith(XERIAL):
            plain, at = b"", 16
            while at < len(data):
                size = struct.unpack_from(">i", data, at)[0]
                plain += bytes(cramjam.snappy.decompress_raw(data[at + 4:at + 4 + size]))
                at += 4 + size
        else:
            plain = bytes(cramjam.snappy.decompress_raw(data))

        def pack(left):
            block = bytes(cramjam.snappy.compress_raw(left))
            # Java reads only its own framing, librdkafka and the others both.
            return XERIAL + struct.pack(">iii", 1, 1, len(block)) + block
        return plain, pack
    library = cramjam.lz4 if codec == 3 else cramjam.zstd
    return bytes(library.decompress(data)), lambda left: bytes(library.compress(left))


def without_lost(batch):
    base, = struct.unpack_from(">q", batch)
    attributes, = struct.unpack_from(">h", batch, 21)
    read = unpacked(attributes & 7, batch[BATCH_HEADER:])
    if read is None or attributes & 0x20:
        return batch
    data, pack = read
    kept, count, at = [], 0, 0
    while at < len(data):
        size, body = signed(data, at)
        end = body + size
        _, after = signed(data, body + 1)
        delta, _ = signed(data, after)
        if (base + delta) % EVERY == EVERY - 1:
            count += 1
        else:
            kept.append(data[at:end])
        at = end
    if count == 0:
        return batch
    left = struct.pack(">i", len(kept)) + pack(b"".join(kept))
    covered = batch[21:57] + left
    head = batch[:8] + struct.pack(">i", 9 + len(covered)) + batch[12:17]
    return head + struct.pack(">I", crc32c(covered)) + covered


def thinned(records):
    out, at = [], 0
    while at + BATCH_HEADER <= len(records):
        size = 12 + struct.unpack_from(">i", records, at + 8)[0]
        if at + size > len(records) or records[at + 16] != 2:
            break
        out.append(without_lost(records[at:at + size]))
        at += size
    return b"".join(out) + records[at:]


class Answer:
    """Walks a Fetch answer and copies it, but for the records."""

    def __init__(self, data, version):
        self.data, self.version, self.at, self.copied, self.out = data, version, 0, 0, []
        self.flexible = version >= FLEXIBLE_FROM

    def skip(self, size):
        self.at += size

    def count(self):
        if self.flexible:
            value, self.at = unsigned(self.data, self.at)
            return value - 1
        self.at += 4
        return struct.unpack_from(">i", self.data, self.at - 4)[0]

    def tags(self):
        if self.flexible:
            count, self.at = unsigned(self.data, self.at)
            for _ in range(count):
                _, self.at = unsigned(self.data, self.at)
                size, self.at = unsigned(self.data, self.at)
                self.at += size

    def text(self):
        if self.flexible:
            self.skip(self.count())
        else:
            self.skip(2 + struct.unpack_from(">h", self.data, self.at)[0])

    def records(self):
        start = self.at
        size = self.count()
        if size > 0:
            new = thinned(self.data[self.at:self.at + size])
            length = put_unsigned(len(new) + 1) if self.flexible else struct.pack(">i", len(new))
            self.out += [self.data[self.copied:start], length, new]
            self.at += size
            self.copied = self.at

    def rewritten(self):
        self.skip(4)
        self.tags()
        self.skip(4)
        if self.version >= 7:
            self.skip(6)
        for _ in range(self.count()):
            if self.version >= 13:
                self.skip(16)
            else:
                self.text()
            for _ in range(self.count()):
                self.skip(4 + 2 + 8 + 8)
                if self.version >= 5:
                    self.skip(8)
                for _ in range(self.count()):
                    self.skip(16)
                    self.tags()
                if self.version >= 11:
                    self.skip(4)
                self.records()
                self.tags()
            self.tags()
        self.out.append(self.data[self.copied:])
        return b"".join(self.out)


async def frames(reader):
    while True:
        size = struct.unpack(">i", await reader.readexactly(4))[0]
        yield await reader.readexactly(size)


async def requests(reader, writer, fetches):
    async for frame in frames(reader):
        key, version, correlation = struct.unpack_from(">hhi", frame)
        if key == FETCH:
            fetches[correlation] = version
        writer.write(struct.pack(">i", len(frame)) + frame)
        await writer.drain()


async def answers(reader, writer, fetches):
    async for frame in frames(reader):
        version = fetches.pop(struct.unpack_from(">i", frame)[0], None)
        if version is not None:
            frame = Answer(frame, version).rewritten()
        writer.write(struct.pack(">i", len(frame)) + frame)
        await writer.drain()


async def connection(reader, writer, host, port):
    broker_reader, broker_writer = await asyncio.open_connection(host, port)
    fetches = {}
    both = [asyncio.create_task(requests(reader, broker_writer, fetches)),
            asyncio.create_task(answers(broker_reader, writer, fetches))]
    done, left = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    for task in done:
        if not isinstance(task.exception(), (asyncio.IncompleteReadError, ConnectionError)):
            print("proxy:", repr(task.exception()), file=sys.stderr, flush=True)
    writer.close()
    broker_writer.close()


async def main():
    host, port = sys.argv[2].rsplit(":", 1)
    server = await asyncio.start_server(
        lambda reader, writer: connection(reader, writer, host, int(port)), "127.0.0.1", int(sys.argv[1]))
    async with server:
        await server.serve_forever()


asyncio.run(main())
