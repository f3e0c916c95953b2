"""The files of a run's session, kept where another process finds them.

After each script its files are kept under a name that stands in the result of the script, its
*checkpoint*. A process that continues the run takes the files of the last result in the log. A
worker that has lost the run may still write, but under a name that no result contains.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from callslip._base.log import GuardedLogger
from callslip._base.options import check_text
from callslip.errors import SandboxError, ScriptRefused, UsageError
from callslip.sandbox._file_stores import FileStore, first_line
from callslip.sandbox._folders import WorkFolder
from callslip.sandbox._session_tar import Digest, UnreadableArchiveError, copy_files, pack, unpack

if TYPE_CHECKING:
    from callslip.runs import Run
    from callslip.sandbox._limits import ScriptLimits

__all__ = ["Kept", "Restored", "RunFiles", "delete_files"]

_GONE = "this run was resumed: files that earlier calls left are gone"

_NOT_KEPT = (
    "the files of this call could not be kept in their shared place: if the run is resumed, later "
    "calls find those of an earlier call"
)

_LEFT_OUT = (
    "{} things in the working directory are not there if the run is resumed: links that lead out "
    "of it, or paths that are too long"
)

_SPARE = 3
"""Checkpoints that are left in their place before the first ones are deleted."""


@dataclass(frozen=True, order=True)
class Checkpoint:
    """The name of files that are kept.

    Attributes:
        number: It grows with each checkpoint of a run.
        digest: The digest of the archive.
    """

    number: int
    digest: str

    @classmethod
    def read(cls, name: object) -> Checkpoint | None:
        """Read a name; `None` if it is no such name."""
        found = (
            re.fullmatch(r"([0-9]{1,9})-([0-9a-f]{16})", name) if isinstance(name, str) else None
        )
        return None if found is None else cls(int(found[1]), found[2])

    def __str__(self) -> str:
        return f"{self.number}-{self.digest}"


@dataclass(frozen=True)
class Restored:
    """The files of a run at its first script in this process.

    Attributes:
        folder: The folder with the files; `None` for an empty one.
        note: A sentence for the model, if files are gone.
    """

    folder: WorkFolder | None
    note: str | None = None


@dataclass(frozen=True)
class Kept:
    """How the files of a script were kept.

    Attributes:
        checkpoint: The name; `None` if there are none, or they could not be kept.
        hints: Sentences for the model.
    """

    checkpoint: str | None
    hints: tuple[str, ...] = ()


class RunFiles:
    """The files of one run's session. Its methods take long, and are called one at a time.

    Args:
        store: The place of the files.
        run: The run.
        tool: The name of the tool whose results contain the checkpoints.
        limits: The limits of scripts, which are those of their files too.
    """

    def __init__(self, store: FileStore, run: Run, tool: str, limits: ScriptLimits) -> None:
        self._store = store
        self._run = run
        self._tool = tool
        self._limits = limits
        self._last: Checkpoint | None = None
        # Of this process, oldest first, as far as they are not deleted.
        self._in_place: list[Checkpoint] = []

    def restore(self) -> Restored:
        """Return the files after the last script whose result is in the log.

        Raises:
            ScriptRefused: The place of the files cannot be read just now.
        """
        results = _results(self._run, self._tool)
        self._last = last = _latest(results)
        if last is None:
            return Restored(None, _GONE if results else None)
        self._in_place.append(last)
        folder = WorkFolder()
        try:
            self._fetch(last, folder.path)
        except BaseException as error:
            folder.remove()
            if isinstance(error, (UnreadableArchiveError, FileNotFoundError)):
                _log(f"the files of the run {self._run.id} are gone", error)
                # The same files would not be the same: they have to be written again.
                self._last = Checkpoint(last.number, "")
                return Restored(None, _GONE)
            if not isinstance(error, Exception):
                raise
            _log(f"the files of the run {self._run.id} can't be fetched", error)
            raise ScriptRefused(
                "the files of earlier calls can't be fetched just now: call it again later",
                "files_unavailable",
            ) from error
        return Restored(folder)

    def save(self, directory: Path) -> list[Path]:
        """Copy the files, without links, to a directory. Returns the paths of the copies.

        Raises:
            SandboxError: They are gone, or cannot be read.
            OSError: A copy cannot be written.
        """
        last = _latest(_results(self._run, self._tool))
        if last is None:
            return []
        folder = WorkFolder()
        try:
            try:
                self._fetch(last, folder.path)
            except Exception as error:
                raise SandboxError(
                    f"the files of the run {self._run.id} can't be read: {first_line(error)}"
                ) from error
            return copy_files(folder.path, directory)
        finally:
            folder.remove()

    def _fetch(self, checkpoint: Checkpoint, folder: Path) -> None:
        limits = self._limits
        with self._store.get(self._key(checkpoint)) as archive:
            unpack(
                archive,
                checkpoint.digest,
                folder,
                most=limits.disk_bytes,
                files=limits.disk_files,
            )

    def keep(self, folder: Path) -> Kept:
        """Keep the files after a script, if they are others than before."""
        try:
            return self._keep(folder)
        except Exception as error:  # noqa: BLE001  # of any client; the output must not be lost
            _log(f"the files of the run {self._run.id} can't be kept", error)
            return Kept(None, (_NOT_KEPT,))

    def _keep(self, folder: Path) -> Kept:
        digest = Digest()
        written, left_out = pack(folder, digest)
        if self._last is None and not written:
            return Kept(None)
        if self._last is not None and self._last.digest == digest.text():
            return Kept(str(self._last))
        number = 1 if self._last is None else self._last.number + 1
        checkpoint = Checkpoint(number, digest.text())
        with tempfile.TemporaryFile() as archive:
            compressed = gzip.GzipFile("", "wb", 1, cast("BinaryIO", archive), mtime=0)
            with compressed:
                pack(folder, compressed)
            archive.seek(0)
            self._store.put(self._key(checkpoint), cast("BinaryIO", archive))
        self._last = checkpoint
        self._in_place.append(checkpoint)
        self._delete_old()
        return Kept(str(checkpoint), (_LEFT_OUT.format(left_out),) if left_out else ())

    def _delete_old(self) -> None:
        """Delete files that no process can need: those before the last ones in the written log."""
        if len(self._in_place) <= _SPARE:
            return
        run = self._run._core
        try:
            last = _latest(_results(self._run, self._tool))
            # In this order: a store that has refused events knows first that the run is lost.
            if last is None or not (run.is_durable() and run.check_claim()):
                return
            old = [one for one in self._in_place if one.number < last.number]
            self._store.delete([self._key(one) for one in old])
        except Exception as error:  # noqa: BLE001  # they only take room
            _log(f"old files of the run {self._run.id} can't be deleted", error)
        else:
            self._in_place = [one for one in self._in_place if one.number >= last.number]

    def _key(self, checkpoint: Checkpoint) -> str:
        return f"{_quoted(self._run.id)}/{_quoted(self._tool)}/{checkpoint}.tar.gz"


def delete_files(store: FileStore, run_ids: Iterable[str]) -> None:
    """Delete all files that are kept of some runs.

    Raises:
        UsageError: An id is empty, or no text.
    """
    for run_id in run_ids:
        check_text("the id of a run", run_id)
        if not run_id:
            raise UsageError("expected the ids of runs: got an empty one")
        store.delete_all(_quoted(run_id))


def _quoted(name: str) -> str:
    # The same in folders and in all object stores: no dots, slashes or percent signs.
    return re.sub("[^A-Za-z0-9_-]", lambda found: f"={ord(found[0]):x}=", name)


def _results(run: Run, tool: str) -> list[Any]:
    """Return the results of the scripts of a run, oldest first."""
    return [one.result for one in run.tickets if one.tool == tool and one.outcome == "ok"]


def _latest(results: list[Any]) -> Checkpoint | None:
    names = [result.get("checkpoint") for result in results if isinstance(result, dict)]
    return max(filter(None, map(Checkpoint.read, names)), default=None)


def _log(what: str, error: BaseException) -> None:
    GuardedLogger("callslip.sandbox").warning("%s: %s", what, first_line(error))
