"""Takes from this process what Windows has not, then imports and uses the package.

A stand-in, for machines without Windows: it shows what is missing there, and nothing of what is
other.

    python -m like_windows FOLDER
"""

import asyncio
import importlib
import os  # noqa: F401  # it is changed
import pkgutil
import select  # noqa: F401  # it is changed
import signal  # noqa: F401  # it is changed
import subprocess
import sys
from pathlib import Path


def _words(text):
    return text.split()


MODULES = _words(
    "_posixshmem _posixsubprocess curses fcntl grp nis ossaudiodev posix pty pwd readline resource "
    "spwd syslog termios tty"
)
"""Modules that are not on Windows, or of no use there."""

ATTRIBUTES = {
    "os": _words(
        "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC WNOHANG chown ctermid fchdir fchmod "
        "fchown fdatasync fork forkpty fwalk getegid geteuid getgid getgroups getloadavg getpgid "
        "getpgrp getpriority getsid getuid killpg lchown lockf major mkfifo mknod nice openpty "
        "pipe2 posix_fadvise posix_spawn pread pwrite readv register_at_fork sched_getaffinity "
        "sendfile set_blocking setpgid setsid setuid statvfs sync sysconf tcgetpgrp tcsetpgrp "
        "ttyname uname wait wait3 wait4 writev"
    ),
    "select": ["epoll", "poll"],
    "signal": _words(
        "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 "
        "SIGWINCH SIGXCPU alarm pthread_kill pthread_sigmask setitimer sigwait"
    ),
}
"""Names that modules have not on Windows."""

NEVER_THERE = {"callslip.sandbox.serve", "callslip.sandbox._terminal"}
"""Modules that run where scripts run, or that a sandbox imports when it has a terminal."""


class Loop(asyncio.SelectorEventLoop):
    """Like the default loop of Windows: it watches no descriptors and hears no signals."""

    def add_reader(self, *_):
        raise NotImplementedError

    remove_reader = add_writer = remove_writer = add_signal_handler = remove_signal_handler = (
        add_reader
    )


def names_of_package(folder):
    found = pkgutil.walk_packages([str(folder)], "callslip.", onerror=lambda _: None)
    return ["callslip", *(one.name for one in found if one.name != "callslip._core")]


def modules_of_others():
    """Return all that an import of the whole package loads beside it, in this order."""
    code = (
        "import importlib, sys; from pathlib import Path; import like_windows\n"
        "folder = Path(importlib.util.find_spec('callslip').origin).parent\n"
        "for name in like_windows.names_of_package(folder):\n"
        "    importlib.import_module(name)\n"
        "print('\\n'.join(one for one in sys.modules if one.partition('.')[0] != 'callslip'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def become():
    """Take away what is not on Windows. Modules of others have taken from it what they need."""
    for name in [one for one in modules_of_others() if one not in ("__main__", "like_windows")]:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    for name in MODULES:
        sys.modules[name] = None
    for name, attributes in ATTRIBUTES.items():
        for attribute in attributes:
            vars(sys.modules[name]).pop(attribute, None)
    asyncio.new_event_loop = Loop
    sys.platform = "win32"


def import_all():
    assert not any(name.startswith("callslip") for name in sys.modules)
    import callslip

    names = names_of_package(Path(callslip.__file__).parent)
    for name in names:
        if name not in NEVER_THERE:
            importlib.import_module(name)
    print(f"imported {len(names)} modules")
    return names


def use(folder):
    from callslip import Agent, IsolationUnavailable, ScriptedModel, TicketStore, tool
    from callslip.cli import main
    from callslip.sandbox import CommandRunner, PythonRunner

    @tool
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    block = '<tool>[{"call_id": "a", "tool_name": "double", "arguments": {"number": 21}}]</tool>'
    store = TicketStore(folder / "runs.sqlite")

    def agent():
        return Agent(ScriptedModel([block, "42"]), protocol="chatty", tools=[double], store=store)

    async def many():
        results = await asyncio.gather(*(agent().run("go") for _ in range(20)))
        async with agent().stream("go") as stream:
            kinds = [event.kind async for event in stream]
        return [result.value for result in results], kinds[-1]

    assert agent().run_sync("go").value == "42"
    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(many()) == (["42"] * 20, "run_finished")
    assert [event.kind for event in agent().stream_sync("go")][-1] == "run_finished"
    run = store.run(store.runs()[0].run_id)
    assert store.query("SELECT count(*) AS runs FROM runs") == [{"runs": 23}]
    store.close()
    print("ran 23 agents")

    for command in (["doctor"], ["runs", store.path], ["show", store.path, run.id]):
        assert main(command) == 0, command
    print("ran 3 commands")

    for make in (
        PythonRunner,
        lambda: PythonRunner(backend=CommandRunner(["docker"])),
        lambda: Agent(ScriptedModel([]), python=True),
    ):
        try:
            make()
        except IsolationUnavailable as error:
            print(error)
        else:
            raise AssertionError("expected an error: got a runner of scripts")


if __name__ == "__main__":
    become()
    import_all()
    use(Path(sys.argv[1]))
