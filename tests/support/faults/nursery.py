"""Run by `shim.Nursery`: reads requests, forks for each, and tells how each child ended."""

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = 5
SHIM = ctypes.CDLL(None)  # the shim is preloaded: its functions are found by their names
SHIM.faults_arm.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64]
SHIM.faults_count.restype = ctypes.c_long


def perform(request: dict[str, Any], tell: int) -> None:
    """Be the child. Whatever ends it, ends it here."""

    def say(value: Any, kind: str = "said") -> None:
        os.write(tell, json.dumps([kind, value]).encode() + b"\n")

    known = set(sys.modules)
    try:
        module, _, name = request["work"].partition(":")
        work: Callable[..., Any] = getattr(importlib.import_module(module), name)
        path, fault = request["path"], request["fault"]
        if SHIM.faults_arm(path.encode(), fault.encode(), request["seed"]):
            raise ValueError(f"no such fault: {fault}")  # noqa: TRY301
        say(work(Path(path), say, **request["options"]), "returned")
    except BaseException as error:  # whatever it is, the test judges it
        say([[kind.__name__ for kind in type(error).__mro__], str(error)], "error")
    say([SHIM.faults_count(call) for call in range(CALLS)], "calls")
    say(sorted(set(sys.modules) - known), "imported")
    os._exit(0)


def watch(child: int, told: int, seconds: float) -> dict[str, Any]:
    """Be the parent: read what the child says until it is gone."""
    text, hung, until = b"", False, time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([told], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            hung = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            break
        part = os.read(told, 65536)
        if not part:
            break
        text += part
    os.close(told)
    _, status = os.waitpid(child, 0)
    lines = text.split(b"\n")[:-1]  # a line that was cut was not said
    return {
        "said": [json.loads(line) for line in lines],
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        "hung": hung,
    }


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(told)
            perform(request, tell)
        os.close(tell)
        ended = watch(child, told, request["seconds"])
        sys.stdout.write(json.dumps(ended) + "\n")
        sys.stdout.flush()
        # Most of a child's time went to imports: the next ones begin with them.
        for names in [value for kind, value in ended["said"] if kind == "imported"]:
            for name in names:
                importlib.import_module(name)


if __name__ == "__main__":
    main()
