"""The scene of a hostile script: what it may try to read, write, reach, signal or stop.

The scene knows what it was, so that whatever a script did to it is seen, whether or not the
script's case looks for it.
"""

from __future__ import annotations

import os
import re
import resource
import secrets
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

SECRET = "canary-secret"

# Whatever signal can be caught is told on the wake-up descriptor.
VICTIM = """
import ctypes, os, signal
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with the lane
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, lambda *_: None)
os.set_blocking(1, False)
signal.set_wakeup_fd(1, warn_on_full_buffer=False)
os.write(1, b"\\0")
while True:
    signal.pause()
"""


class Scene:
    """A secret, a directory, listeners and a process that a script must leave alone."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="callslip-scene-"))
        # Anybody may reach it: what keeps a script out must be the box.
        self.folder.chmod(0o755)
        self.secret = f"{SECRET}-{secrets.token_hex(8)}"
        self.canary = self.folder / "canary.txt"
        self.host = self.folder / "host"
        self.host.mkdir()
        self.host.chmod(0o777)
        self._canary_before = os.environ.get("CALLSLIP_CANARY")
        os.environ["CALLSLIP_CANARY"] = self.secret
        self.listener = Listener(self.folder / "socket")
        self._write_canary()
        self._start_victim()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.victim.kill()
        self.victim.communicate()
        self.listener.close()
        shutil.rmtree(self.folder)
        if self._canary_before is None:
            del os.environ["CALLSLIP_CANARY"]
        else:
            os.environ["CALLSLIP_CANARY"] = self._canary_before

    def fill(self, text: str) -> str:
        """Put the scene's places into a text."""
        for mark, value in {
            "@CANARY@": str(self.canary),
            "@HOSTDIR@": str(self.host),
            "@PORT@": str(self.listener.port),
            "@SOCK@": str(self.listener.path),
            "@ABS@": self.listener.abstract,
            "@VICTIM@": str(self.victim.pid),
        }.items():
            text = text.replace(mark, value)
        return text

    def contacts(self) -> list[str]:
        """Who has reached the listeners since the last call."""
        return self.listener.contacts()

    def disturbed(self) -> list[str]:
        """What isn't as it was, put right again."""
        found = self._canary_disturbed() + self._victim_disturbed()
        if self.host.stat().st_mode & 0o7777 != 0o777:
            found.append("the mode of the host's directory was changed")
        if left := sorted(entry.name for entry in self.host.iterdir()):
            found.append(f"in the host's directory: {left}")
            shutil.rmtree(self.host)
            self.host.mkdir()
        self.host.chmod(0o777)
        return found

    def _write_canary(self) -> None:
        with suppress(FileNotFoundError):
            self.canary.unlink()
        self.canary.write_text(self.secret)
        self.canary.chmod(0o644)
        self._canary_was = self._canary_is()

    def _canary_is(self) -> dict[str, Any]:
        try:
            about = self.canary.lstat()
            text = self.canary.read_text()
            attributes = os.listxattr(self.canary)
        except OSError as error:
            return {"there": str(error)}
        names = ("st_mode", "st_uid", "st_gid", "st_ino", "st_nlink", "st_mtime_ns")
        now = {name: getattr(about, name) for name in names}
        return {**now, "text": text, "attributes": attributes}

    def _canary_disturbed(self) -> list[str]:
        was, now = self._canary_was, self._canary_is()
        found = [
            f"the canary's {name}: {was.get(name)} is now {now.get(name)}"
            for name in was | now
            if was.get(name) != now.get(name)
        ]
        if found:
            self._write_canary()
        return found

    def _start_victim(self) -> None:
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", VICTIM],
            env={"CALLSLIP_CANARY": self.secret},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.victim.stdout is not None
        assert self.victim.stdout.read(1) == b"\0"
        os.set_blocking(self.victim.stdout.fileno(), False)
        self._victim_was = self._victim_is()

    def _victim_is(self) -> dict[str, Any]:
        pid = self.victim.pid
        now = {
            "nice": os.getpriority(os.PRIO_PROCESS, pid),
            "processors": os.sched_getaffinity(pid),
            "files": resource.prlimit(pid, resource.RLIMIT_NOFILE),
        }
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("State", "TracerPid"):
                now[name] = value.strip().replace("R (running)", "S (sleeping)")
        return now

    def _wait_for_victim(self) -> None:
        """Wait until it has dealt with all signals that were sent so far."""
        until = time.monotonic() + 10
        while self.victim.poll() is None and time.monotonic() < until:
            status = Path(f"/proc/{self.victim.pid}/status").read_text()
            pending = re.search(r"\n(Sig|Shd)Pnd:\t0*[1-9a-f]", status)
            # One that was stopped deals with nothing.
            if re.search(r"\nState:\t[Tt]" if pending else r"\nState:\t[^R]", status):
                return
            time.sleep(0.001)

    def _victim_disturbed(self) -> list[str]:
        self._wait_for_victim()
        if self.victim.poll() is not None:
            found = [f"the victim has died: {self.victim.returncode}"]
        else:
            assert self.victim.stdout is not None
            signals = sorted(set(self.victim.stdout.read() or b""))
            found = [f"the victim got signals {signals}"] if signals else []
            was, now = self._victim_was, self._victim_is()
            found += [
                f"the victim's {name}: {was[name]} is now {now[name]}"
                for name in was
                if was[name] != now[name]
            ]
        if found:
            self.victim.kill()
            self.victim.communicate()
            self._start_victim()
        return found


class Listener:
    """Loopback TCP over both families, UDP, a unix socket and an abstract one.

    All answer at once, so that a script that gets through sees that it did.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.abstract = f"callslip-{secrets.token_hex(8)}"
        self._contacts: list[str] = []
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self.port = self._open_port()
        for name, address in (("unix", str(path)), ("abstract", f"\0{self.abstract}")):
            self._listen(name, socket.AF_UNIX, socket.SOCK_STREAM, address)
            if name == "unix":
                path.chmod(0o777)
        self._over = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def contacts(self) -> list[str]:
        # What was sent before now is at the socket already: loopback doesn't tarry.
        self._take(0)
        with self._lock:
            found, self._contacts = self._contacts, []
        return found

    def close(self) -> None:
        self._over = True
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _open_port(self) -> int:
        kinds = [
            ("tcp", socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1"),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1"),
        ]
        if Path("/proc/net/if_inet6").exists():
            kinds += [
                ("tcp6", socket.AF_INET6, socket.SOCK_STREAM, "::1"),
                ("udp6", socket.AF_INET6, socket.SOCK_DGRAM, "::1"),
            ]
        for _ in range(50):
            port = 0
            opened = []
            try:
                for name, family, kind, host in kinds:
                    made = self._listen(name, family, kind, (host, port))
                    opened.append(made)
                    port = made.getsockname()[1]
            except OSError:
                for one in opened:
                    self._selector.unregister(one)
                    one.close()
            else:
                return port
        raise AssertionError("no port is free in all families")

    def _listen(self, name: str, family: int, kind: int, address: Any) -> socket.socket:
        made = socket.socket(family, kind)
        try:
            made.bind(address)
            if kind == socket.SOCK_STREAM:
                made.listen(64)
        except OSError:
            made.close()
            raise
        made.setblocking(False)
        self._selector.register(made, selectors.EVENT_READ, name)
        return made

    def _serve(self) -> None:
        while not self._over:
            self._take(0.05)

    def _take(self, timeout: float) -> None:
        ready = self._selector.select(timeout)
        with self._lock:
            for key, _ in ready:
                with suppress(BlockingIOError):
                    self._answer(key.fileobj, key.data)  # type: ignore[arg-type]

    def _answer(self, listening: socket.socket, name: str) -> None:
        if listening.type == socket.SOCK_DGRAM:
            text, sender = listening.recvfrom(65536)
            self._contacts.append(f"{name}: {text[:80]!r}")
            listening.sendto(b"heard", sender)
            return
        connection, _ = listening.accept()
        self._contacts.append(name)
        with connection, suppress(OSError):
            connection.settimeout(0.2)
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
            # A close with unread bytes would be a reset, which hides the answer.
            connection.recv(65536)


def processes_below(root: int) -> dict[int, str]:
    """The processes that descend from one, zombies among them, with their state and command."""
    parents: dict[int, int] = {}
    told: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            text = (entry / "stat").read_text()
            name, _, rest = text.partition("(")[2].rpartition(")")
            state, parent_id = rest.split()[:2]
            parents[int(entry.name)] = int(parent_id)
            told[int(entry.name)] = f"{entry.name} {name} ({state})"
    below = {}
    for pid, parent in parents.items():
        above = parent
        while above not in (root, 0) and above in parents:
            above = parents[above]
        if above == root:
            below[pid] = told[pid]
    return below


def gone(root: int, known: set[int], seconds: float, *, but_dead: bool = False) -> list[str]:
    """Wait until a process has no descendants but the known ones; tell those that are left.

    `but_dead` passes over those that are dead and that nobody waits for.
    """
    ends = time.monotonic() + seconds
    while True:
        left = {pid: name for pid, name in processes_below(root).items() if pid not in known}
        if but_dead:
            left = {pid: name for pid, name in left.items() if not name.endswith("(Z)")}
        if not left or time.monotonic() > ends:
            return sorted(left.values())
        time.sleep(0.005)
