"""Small pictures for tests, and those in requests."""

import json
import struct
import zlib


def png(width, height, colour=b"\xd0\x40\x20", *, noise=0):
    """A picture of one colour, with so many bytes more than it needs."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + colour * width) * height
    chunks = [(b"IHDR", header), (b"noIs", b"\x5a" * noise), (b"IDAT", zlib.compress(rows))]
    chunks = [(kind, data) for kind, data in chunks if data] + [(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"


def count_parts(body):
    """The pictures and PDF files in the JSON of a request."""
    text = json.dumps(body)
    return text.count("iVBORw0KGgo") + text.count("JVBERi0")


def _chunk(kind, data):
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
