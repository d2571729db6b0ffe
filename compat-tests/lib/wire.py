"""One request, one answer: as much of the wire protocol as the small scripts here need."""
import socket
import struct


def connect(bootstrap):
    host, port = bootstrap.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=20)


def string(text):
    return struct.pack(">h", len(text)) + text.encode()


def read(peer, size):
    data = b""
    while len(data) < size:
        more = peer.recv(size - len(data))
        if not more:
            raise EOFError("the broker closed the connection")
        data += more
    return data


def call(peer, key, version, body):
    """Sends a request with the old, tagless header and returns the body of the answer."""
    head = struct.pack(">hhi", key, version, 1) + string("ottla-compat")
    peer.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
    return read(peer, struct.unpack(">i", read(peer, 4))[0])[4:]


def offered(bootstrap):
    """The keys that the broker names in its ApiVersions answer (v0)."""
    with connect(bootstrap) as peer:
        body = call(peer, 18, 0, b"")
    count = struct.unpack_from(">i", body, 2)[0]
    return [struct.unpack_from(">h", body, 6 + 6 * i)[0] for i in range(count)]
