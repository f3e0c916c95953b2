"""Small pictures to test with."""

from __future__ import annotations

import struct
import zlib


def png(width: int, height: int, *, noise: int = 0) -> bytes:
    """Return a PNG image of this size in one colour, with so many more bytes."""
    rows = b"".join(b"\0" + b"\xd0\x40\x20" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    if noise:
        chunks.insert(1, (b"noIs", b"\x5a" * noise))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
