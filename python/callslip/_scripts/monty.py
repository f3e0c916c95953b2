"""Monty as the interpreter of scripts: a subset of Python in a separate worker process."""

from __future__ import annotations

import ast
import contextlib
import json
import math
import os
import re
import signal
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from callslip._base import _lazy
from callslip._base.extras import needs
from callslip._scripts.engine import (
    CallsDue,
    Function,
    ScriptCall,
    ScriptEnd,
    ScriptError,
    ScriptOutcome,
    Step,
)
from callslip._scripts.stubs import CALL, stubs_for

if TYPE_CHECKING:
    import pydantic_monty as monty

__all__ = ["ABOUT", "MontyEngine"]

_WORKERS = 128
"""Worker processes at the same time, for waiting scripts and for busy ones."""

_PRINTED = 1 << 20
"""Characters of one step's output that are kept."""

_SLOWER = 3.0
"""The limit of time while earlier steps are taken again, on a machine that may be slower."""


_IMPORTS = re.compile(r"^([ \t]*)from tools import \w+(?:, *\w+)*[ \t]*$", re.MULTILINE)
"""Imports of tools, which models write although the names are there."""

ABOUT = (
    "No files and no network. Of the standard library: asyncio, collections, dataclasses, "
    "datetime, decimal, functools, itertools, json, math, random, re. Without yield, with, del and "
    "inheritance."
)
"""The description of the language for a model."""


class MontyEngine:
    """Starts scripts in workers of Monty, which are kept for other scripts.

    Args:
        cpu_seconds: Seconds of processor time of one script.
        memory_bytes: Memory of the objects of one script.
        suspensions: How often one script can ask the host: for the time, or for a call.
        check: Whether a script is checked before anything of it runs.

    Raises:
        ModuleNotFoundError: Monty is not installed.
    """

    def __init__(
        self, *, cpu_seconds: float, memory_bytes: int, suspensions: int, check: bool
    ) -> None:
        with needs("callslip[monty]"):
            self._monty = _lazy.pydantic_monty
        self._cpu_seconds = cpu_seconds
        self._memory_bytes = memory_bytes
        self._suspensions = suspensions
        self._check = check
        self._lock = threading.Lock()
        self._pool: monty.Monty | None = None

    @property
    def version(self) -> str:
        """The name and version of the interpreter."""
        return f"monty {self._monty.__version__}"

    def start(
        self, code: str, functions: Sequence[Function], *, seed: str, clock: float, replaying: bool
    ) -> MontySession:
        """Prepare a script. As `Engine.start`."""
        code = _IMPORTS.sub(r"\1pass", code)
        seconds = self._cpu_seconds * (_SLOWER if replaying else 1.0)
        is_async = _awaits(code)
        # The script was checked before its first step.
        check = self._check and not replaying
        opened = self._workers().checkout(
            limits={
                "max_feed_duration_secs": seconds,
                "max_memory": self._memory_bytes,
                "max_suspensions": self._suspensions,
            },
            os_policy={
                "datetime": "call_host",
                "sleep": "zero",
                "random_start": {"seed": seed},
            },
            type_check=check,
            type_check_stubs=stubs_for(code, functions, is_async=is_async) if check else None,
            type_check_format="concise",
        )
        worker = _Worker(opened)
        return MontySession(worker, code, functions, clock=clock, is_async=is_async)

    def _workers(self) -> monty.Monty:
        with self._lock:
            if self._pool is None:
                self._pool = self._monty.Monty(max_processes=_WORKERS)
                self._pool.__enter__()
            return self._pool


class _Worker:
    """The process of one script, which another thread may end at any moment."""

    def __init__(self, session: monty.MontySession) -> None:
        self.session = session
        self.stepping = threading.Lock()
        self._closing = threading.Lock()
        self.is_closed = False
        session.__enter__()
        self.process = session.worker_pid

    def close(self) -> None:
        """End the script, even in the middle of a step."""
        with self._closing:
            if self.is_closed:
                return
            self.is_closed = True
        if not self.stepping.acquire(blocking=False):
            # The pool replaces a worker that was killed.
            if self.process is not None:
                with contextlib.suppress(OSError):
                    os.kill(self.process, getattr(signal, "SIGKILL", signal.SIGTERM))
            self.stepping.acquire()
        try:
            with contextlib.suppress(_lazy.pydantic_monty.MontyError):
                self.session.__exit__(None, None, None)
        finally:
            self.stepping.release()


class _Output:
    """The output of one step, up to a limit."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._room = _PRINTED

    def add(self, stream: str, text: str) -> None:  # noqa: ARG002  # both are output
        if self._room > 0:
            self._texts.append(text[: self._room])
        self._room -= len(text)

    def take(self) -> str:
        printed, self._texts, self._room = "".join(self._texts), [], _PRINTED
        return printed


class MontySession:
    """A script in progress. As `EngineSession`."""

    def __init__(
        self,
        worker: _Worker,
        code: str,
        functions: Sequence[Function],
        *,
        clock: float,
        is_async: bool,
    ) -> None:
        self._monty = _lazy.pydantic_monty
        self._worker = worker
        self._code = code
        self._functions = {function.name: function for function in functions}
        self._clock = clock
        self._is_async = is_async
        self._output = _Output()
        self._snapshot: Any = None
        # The numbers of calls by their ids, and outcomes that the script does not need yet.
        self._numbers: dict[int, int] = {}
        self._outcomes: dict[int, ScriptOutcome] = {}

    def step(self, outcomes: Sequence[ScriptOutcome], /) -> Step:
        """Run the script until it needs an outcome that it has not. As `EngineSession.step`."""
        for outcome in outcomes:
            self._outcomes[outcome.number] = outcome
            self._clock = outcome.at
        with self._worker.stepping:
            try:
                return self._advance()
            except self._monty.MontyCrashedError:
                raise
            except self._monty.MontyError as error:
                return ScriptEnd(error=self._error(error), printed=self._output.take())

    def _advance(self) -> Step:
        snapshot = self._snapshot
        if snapshot is None:
            snapshot = self._worker.session.feed_start(self._code, print_callback=self._output.add)
        calls: list[ScriptCall] = []
        while not isinstance(snapshot, self._monty.MontyComplete):
            answer = self._answer(snapshot, calls)
            if answer is None:
                self._snapshot = snapshot
                return CallsDue(calls, self._output.take())
            snapshot = answer
        return ScriptEnd(_as_json(snapshot.output), printed=self._output.take())

    def _answer(self, snapshot: Any, calls: list[ScriptCall]) -> Any:
        """Answer a suspended script. Returns `None` if there is no answer yet."""
        if isinstance(snapshot, self._monty.FutureSnapshot):
            # The worker has them in any order.
            waiting = {self._numbers[one]: one for one in snapshot.pending_call_ids}
            known = [number for number in self._outcomes if number in waiting]
            if not known or calls:
                return None
            told: dict[int, Any] = {
                waiting[number]: _told(self._outcomes.pop(number)) for number in known
            }
            return snapshot.resume(told)
        if isinstance(snapshot, self._monty.NameLookupSnapshot):
            return snapshot.resume()
        if snapshot.is_os_function:
            return self._answer_system(snapshot)
        number = self._numbers.get(snapshot.call_id)
        if number is None:
            made = self._call(snapshot)
            if isinstance(made, dict):
                return snapshot.resume(made)
            calls.append(made)
            number = self._numbers[snapshot.call_id] = len(self._numbers)
        if self._is_async:
            return snapshot.resume({"future": ...})
        outcome = self._outcomes.pop(number, None)
        return None if outcome is None else snapshot.resume(_told(outcome))

    def _call(self, snapshot: Any) -> ScriptCall | dict[str, Any]:
        """Return the call that a script has come to, or the exception that it gets."""
        name, values = snapshot.function_name, list(snapshot.args)
        if name == CALL and values and isinstance(values[0], str):
            name = values.pop(0)
        function = self._functions.get(name)
        if function is None:
            there = ", ".join(self._functions)
            return _raised("NameError", f"expected the name of a tool: got '{name}'; use {there}")
        if len(values) > len(function.parameters):
            return _raised("TypeError", f"expected {name} with arguments by name: got too many")
        named = dict(zip(function.parameters, values, strict=False)) | dict(snapshot.kwargs)
        if (problem := _not_json(named)) is not None:
            return _raised("TypeError", f"expected JSON values for {name}: got another: {problem}")
        line = self._code.encode()[: snapshot.position.start].count(b"\n") + 1
        return ScriptCall(name, named, line)

    def _answer_system(self, snapshot: Any) -> Any:
        """Answer a system call: only the clock works."""
        name = snapshot.function_name
        now = datetime.fromtimestamp(self._clock, UTC)
        if name == "import":
            return snapshot.resume_not_handled()
        if name == "datetime.now":
            zone = snapshot.args[0] if snapshot.args else None
            there = now.astimezone(zone) if isinstance(zone, tzinfo) else now.replace(tzinfo=None)
            return snapshot.resume({"return_value": there})
        if name == "date.today":
            return snapshot.resume({"return_value": now.date()})
        if name.startswith("time."):
            return snapshot.resume({"return_value": self._clock})
        return snapshot.resume_not_handled()

    def _error(self, error: monty.MontyError) -> ScriptError:
        if isinstance(error, self._monty.MontyTypingError):
            return ScriptError("NotRun", f"nothing of the script was run: {error}".strip())
        inner = error.exception()
        frames = error.traceback() if hasattr(error, "traceback") else []
        line = frames[-1].line if frames else None
        return ScriptError(type(inner).__name__, str(inner), line)

    def close(self) -> None:
        """End the script, even in the middle of a step. It may be called twice."""
        self._worker.close()


def _told(outcome: ScriptOutcome) -> dict[str, Any]:
    if outcome.exception is None:
        return {"return_value": outcome.value}
    return _raised(outcome.exception, outcome.message)


def _raised(kind: str, message: str) -> dict[str, Any]:
    return {"exc_type": kind, "message": message}


def _awaits(code: str) -> bool:
    """Whether a script is async: without any `await`, a call can only mean its result."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        # The worker reports the error, or knows a later Python.
        return re.search(r"\bawait\b", code) is not None
    return any(isinstance(node, ast.Await) for node in ast.walk(tree))


def _not_json(value: Mapping[str, Any]) -> str | None:
    try:
        json.dumps(value, allow_nan=False).encode()
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return str(error)
    return None


def _as_json(value: Any) -> Any:
    """Return the value of a script as JSON, or its `repr` if JSON has no form for it."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if _not_json({"": value}) is None else repr(value)
