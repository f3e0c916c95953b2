"""An interpreter of scripts for tests: Python itself, on an event loop of its own making.

A script is the body of an async function. It has the tools by name, `call` for any of them,
`gather`, `print` and `random`, and returns its value.
"""

import random
import sys
import textwrap
import threading
from collections import deque

from callslip._scripts.engine import CallsDue, ScriptCall, ScriptEnd, ScriptError

EXCEPTIONS = {kind.__name__: kind for kind in (RuntimeError, PermissionError, TypeError)}


# A script that is dropped must not run any further, as Python has coroutines do that it collects.
KEPT = []


class EngineClosedError(Exception):
    """The interpreter was closed in the middle of a step."""


class Suspended:
    """What a script waits for: a call, or coroutines side by side."""

    def __init__(self, what):
        self.what = what

    def __await__(self):
        return (yield self.what)


class StubEngine:
    """Counts what is asked of it.

    Args:
        version: As the log names it.
        wrong: Called with each step before it is returned, and may change it.
    """

    def __init__(self, version="stub 1", wrong=None):
        self.version = version
        self.wrong = wrong
        self.started, self.steps = [], 0
        self.open = set()

    def start(self, code, functions, *, seed, clock, replaying):
        self.started.append((seed, clock, replaying))
        return StubSession(self, code, functions, seed, clock)


class StubSession:
    def __init__(self, engine, code, functions, seed, clock):
        self.engine, self.clock = engine, clock
        self.closed = threading.Event()
        self.lines, self.calls, self.pending, self.count = [], [], {}, 0
        self.ready, self.parents, self.is_over, self.end = deque(), {}, False, None
        names = {function.name: self._function(function) for function in functions}
        scope = {
            **{name: made for name, made in names.items() if name.isidentifier()},
            "call": lambda name, **arguments: names[name](**arguments),
            "gather": lambda *waiting: Suspended(list(waiting)),
            "print": lambda *words: self.lines.append(" ".join(map(str, words)) + "\n"),
            "random": random.Random(seed),
            "now": lambda: self.clock,
            "closed": self.closed,
        }
        exec("async def main():\n" + textwrap.indent(code, "    "), scope)
        self.main = scope["main"]()
        KEPT.append(self.main)
        engine.open.add(self)

    def _function(self, function):
        def make(*values, **arguments):
            line = sys._getframe(1).f_lineno - 1
            named = dict(zip(function.parameters, values, strict=False)) | arguments
            return Suspended(ScriptCall(function.name, named, line))

        return make

    def step(self, outcomes, /):
        self.engine.steps += 1
        if self.main is not None:
            assert not outcomes
            self.ready.append((self.main, None, None))
            self.first, self.main = self.main, None
        for outcome in outcomes:
            assert outcome.kind != "in_doubt"
            self.clock = outcome.at
            error = outcome.exception and EXCEPTIONS[outcome.exception](outcome.message)
            self.ready.append((self.pending.pop(outcome.number), outcome.value, error))
        while self.ready and not self.is_over:
            self._resume(*self.ready.popleft())
        printed, self.lines = "".join(self.lines), []
        calls, self.calls = self.calls, []
        if self.closed.is_set():
            raise EngineClosedError
        if self.is_over:
            value, error = self.end
            made = ScriptEnd(value, error, printed)
        else:
            made = CallsDue(calls, printed)
        return made if self.engine.wrong is None else self.engine.wrong(self.engine.steps, made)

    def _resume(self, task, value, error):
        try:
            waits = task.send(value) if error is None else task.throw(error)
        except StopIteration as stop:
            self._ended(task, stop.value, None)
        except BaseException as raised:
            self._ended(task, None, raised)
        else:
            if isinstance(waits, ScriptCall):
                self.pending[self.count] = task
                self.count += 1
                self.calls.append(waits)
                return
            results, left = [None] * len(waits), {*range(len(waits))}
            if not waits:
                self.ready.append((task, [], None))
            for place, one in enumerate(waits):
                below = _as_coroutine(one)
                KEPT.append(below)
                self.parents[below] = task, results, left, place
                self.ready.append((below, None, None))

    def _ended(self, task, value, error):
        if task is self.first:
            self.is_over = True
            shown = error and ScriptError(type(error).__name__, str(error), _line_of(error))
            self.end = value, shown
            return
        parent, results, left, place = self.parents.pop(task)
        results[place] = value
        left.discard(place)
        if error is not None and parent is not None:
            for other, (above, *rest) in list(self.parents.items()):
                if above is parent:
                    self.parents[other] = None, *rest
            self.ready.append((parent, None, error))
        elif not left and parent is not None:
            self.ready.append((parent, results, None))

    def close(self):
        self.closed.set()
        self.engine.open.discard(self)


async def _as_coroutine(waiting):
    return await waiting


def _line_of(error):
    traceback, line = error.__traceback__, None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name == "main":
            line = traceback.tb_lineno - 1
        traceback = traceback.tb_next
    return line
