"""The state of a model after a prompt prefix, kept on disk between processes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sys
import time
import zlib
from pathlib import Path

__all__ = ["StateFiles", "user_cache_dir"]

# 23 KB a token with SmolLM2-135M: a full seed prompt is about 60 MB.
_MAX_BYTES = 512 * 1024 * 1024
_MAX_FILES = 16
_STALE_PART_SECONDS = 3600


def user_cache_dir() -> Path:
    """Return the folder for this user's caches on this system. It may not exist yet."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "callslip"


class StateFiles:
    """Saved states of one model, in a folder shared by models and processes.

    A file is named `<key>-<crc32>.kv`. The checksum is compared before llama.cpp sees the file:
    it ends the whole process on a file that was cut off, and believes one with flipped bits.

    Args:
        folder: Made if missing, readable for its owner only.
        gguf: The model file; its content is part of every key.
        salt: Anything else that makes states incompatible, such as the engine's version.

    Raises:
        OSError: The folder cannot be made or the model file not be read.
    """

    def __init__(self, folder: Path, gguf: Path, salt: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"expected a writable folder: {folder}")
        self.folder = folder
        self._model = f"{_fingerprint(gguf)} {salt}"

    def key(self, prefix: str) -> str:
        """Return the name of the state after reading `prefix`."""
        return hashlib.blake2b(f"{self._model}\n{prefix}".encode(), digest_size=16).hexdigest()

    def find(self, key: str) -> str | None:
        """Return the file name of an intact saved state, or `None`. A damaged file is removed."""
        for path in self.folder.glob(f"{key}-*.kv"):
            with contextlib.suppress(OSError):
                if path.name == f"{key}-{_checksum(path)}.kv":
                    os.utime(path)
                    return path.name
                path.unlink()
        return None

    def part(self) -> str:
        """Return a temporary file name for a new state, before `keep` moves it into place."""
        return f"part-{secrets.token_hex(8)}.tmp"

    def keep(self, part: str, key: str) -> None:
        """Move a written part into place, then drop the files used longest ago."""
        path = self.folder / part
        with contextlib.suppress(OSError):
            path.replace(self.folder / f"{key}-{_checksum(path)}.kv")
        self._evict()

    def drop(self, name: str) -> None:
        """Remove one file, if it is there."""
        with contextlib.suppress(OSError):
            (self.folder / name).unlink()

    def _evict(self) -> None:
        files: list[tuple[float, int, Path]] = []
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                status = path.stat()
                if path.suffix == ".kv":
                    files.append((status.st_mtime, status.st_size, path))
                elif path.suffix == ".tmp" and time.time() - status.st_mtime > _STALE_PART_SECONDS:
                    path.unlink()
        total = 0
        for index, (_, size, path) in enumerate(sorted(files, reverse=True)):
            total += size
            if index >= _MAX_FILES or total > _MAX_BYTES:
                self.drop(path.name)


def _fingerprint(gguf: Path) -> str:
    """Return a fingerprint of a model file: its size, its head and samples of its weights.

    The same weights in two environments get the same one, so that they share their states.
    """
    size = gguf.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with gguf.open("rb") as file:
        digest.update(file.read(1 << 20))
        for sample in range(1, 17):
            file.seek(size * sample // 17)
            digest.update(file.read(1 << 16))
    return digest.hexdigest()


def _checksum(path: Path) -> str:
    crc = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            crc = zlib.crc32(block, crc)
    return f"{crc:08x}"
