"""The interpreter of one run: made when it is needed, and made again from the record of the run."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from callslip import _core
from callslip._scripts.engine import (
    Engine,
    EngineSession,
    Function,
    OutcomeKind,
    ScriptOutcome,
    Step,
)
from callslip._scripts.replies import end_reply, hash_of, reply_of
from callslip._scripts.waiting import WAITING, WaitingEngines

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LiveScript"]


class LiveScript:
    """Takes the steps of a script, one for each turn of its run.

    The outcomes come from the log alone, in its portions and its order. After a restart, another
    interpreter receives the same outcomes, and must reply the same.

    Args:
        core: The run.
        engine: The interpreter.
        functions: The tools that the script can call.
        waiting: Keeps the interpreters that wait.
    """

    def __init__(
        self,
        core: _core.RunView,
        engine: Engine,
        functions: Sequence[Function],
        waiting: WaitingEngines = WAITING,
    ) -> None:
        self._core = core
        self._engine = engine
        self._functions = functions
        self._waiting = waiting
        self._working = threading.Lock()
        self._session: EngineSession | None = None
        self._is_closed = False
        # The numbers of outcomes and of steps that the interpreter has seen.
        self._told = 0
        self._steps = 0
        self._room = _OUTPUT

    def reply(self) -> str:
        """Return the reply that is due: the step that follows from the outcomes so far."""
        self._waiting.remove(self)
        with self._working:
            text = self._next()
            is_over = text.startswith('{"end"')
            if is_over:
                self._end()
        if not is_over:
            self._waiting.add(self)
        return text

    def _next(self) -> str:
        steps = _core.script_steps(self._core, self._steps)
        due = steps[-1][0] - self._told
        outcomes = self._outcomes(_core.script_outcomes(self._core, self._told)[:due])
        if any(outcome.kind == "in_doubt" for outcome in outcomes):
            # If the script could catch this, a second payment could follow.
            return end_reply("in_doubt")
        known, text = self._told, ""
        for told, recorded in steps:
            session = self._session or self._start(replaying=len(steps) > 1)
            step = session.step(outcomes[self._told - known : told - known])
            text = reply_of(self._within_room(step))
            if recorded and hash_of(text) != recorded:
                return end_reply("diverged", step=self._steps + 1, replied=text[:_SHOWN])
            self._told, self._steps = told, self._steps + 1
        return text

    def _within_room(self, step: Step) -> Step:
        """Return a step with so much of its output as there is room for in the log."""
        room, self._room = self._room, max(0, self._room - len(step.printed))
        if len(step.printed) <= room:
            return step
        return replace(step, printed=step.printed[:room] + (_CUT if room else ""))

    def _start(self, *, replaying: bool) -> EngineSession:
        session = self._engine.start(
            self._core.task,
            self._functions,
            seed=self._core.run_id,
            clock=_core.run_began(self._core),
            replaying=replaying,
        )
        self._session = session
        if self._is_closed:
            # The run was left meanwhile, from another thread.
            session.close()
        return session

    @staticmethod
    def _outcomes(
        rows: Sequence[tuple[int, OutcomeKind, str, float, int | None, bool]],
    ) -> list[ScriptOutcome]:
        return [
            ScriptOutcome(
                number,
                kind,
                json.loads(text) if kind == "ok" else None,
                "" if kind == "ok" else text,
                at,
            )
            for number, kind, text, at, _, _ in rows
        ]

    def drop(self) -> None:
        """End the interpreter to make room, unless it is at work: the next step makes it again."""
        if self._working.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._working.release()

    def _end(self) -> None:
        session, self._session = self._session, None
        self._told, self._steps, self._room = 0, 0, _OUTPUT
        if session is not None:
            session.close()

    def close(self) -> None:
        """End the interpreter, even in the middle of a step. It may be called twice."""
        self._is_closed = True
        self._waiting.remove(self)
        if (session := self._session) is not None:
            session.close()


_OUTPUT = 256 << 10
"""Characters of the output of a script that are kept."""

_CUT = f"\n[cut: the first {_OUTPUT} characters are kept]"

_SHOWN = 500
"""Characters of a reply that differs from the record."""
