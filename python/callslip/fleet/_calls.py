"""Calls of tools that a worker makes for runs which other workers drive."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from callslip._base.log import GuardedLogger
from callslip._runtime.on_loop import call_held
from callslip._runtime.reconcile import Reconciling
from callslip._runtime.shared.remote_calls import CallInDoubt
from callslip._threads import pool
from callslip.errors import StoreError
from callslip.events._event import ticket_id
from callslip.runs._answered import outcome_to_text
from callslip.tools import Context, Outcome, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callslip import _core
    from callslip.fleet._driven import Claim, ForRuns
    from callslip.origins import Origin
    from callslip.parts import File
    from callslip.store import TicketStore

__all__ = ["CallHere", "GivenCall", "call_from_text"]

_log = GuardedLogger("callslip.fleet")

_IN_VAIN = 5
"""Claims in a row that led to nothing, after which a call fails: it may kill its workers."""


class GivenCall(NamedTuple):
    """A call that a run wants made.

    Attributes:
        run_id: The id of the run.
        ticket: The number of the ticket.
        agent: The name of the agent of the run.
        tool: The name of the tool.
        arguments: The checked arguments.
    """

    run_id: str
    ticket: int
    agent: str
    tool: str
    arguments: Mapping[str, Any]


def call_from_text(given: str | None) -> GivenCall | None:
    """Return the call that a claim is; `None` if it is a run."""
    call = json.loads(given) if given is not None else {}
    if "tool" not in call:
        return None
    return GivenCall(call["run"], call["ticket"], call["agent"], call["tool"], call["arguments"])


class CallHere:
    """A call that this worker makes, from its claim to its outcome.

    It is to a worker what a run is that it drives.

    Args:
        shared: The shared store.
        store: The same, to read the run.
        tool: The tool.
        call: The call.
        claim: The claim.
        program: What the program has for its tools.
    """

    def __init__(
        self,
        shared: _core.SharedRuns,
        store: TicketStore,
        tool: Tool[..., Any],
        *,
        call: GivenCall,
        claim: Claim,
        program: ForRuns,
    ) -> None:
        self._shared = shared
        self._tool = tool
        self._state = _State(shared, store, claim.run_id, call.run_id)
        self._context = Context(
            run_id=call.run_id,
            ticket_id=ticket_id(call.ticket),
            tool=tool.name,
            deps=program.deps,
            _call=self._state,
        )
        self._arguments = call.arguments
        self._give_up: Callable[[], object] | None = None
        self.claim = claim
        self.rests = False
        self.was_lost = False

    run = None
    was_refused = False

    @property
    def inbox(self) -> Self:
        """What delivers the messages for the call: itself."""
        return self

    @property
    def is_suspect(self) -> bool:
        """Whether the claims before this one led to nothing."""
        return self.claim.is_suspect

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is under way here."""
        return False

    @property
    def is_calling(self) -> bool:
        """Whether a call of a tool is under way."""
        return not self._state.over

    def deliver(self) -> None:
        """End the call if its run has given it up. It blocks.

        Raises:
            StoreError: The inbox cannot be read.
        """
        if self._shared.inbox(self.claim.run_id):
            self._state.cancelled = True
            if self._give_up is not None:
                self._give_up()

    async def drive(self, after: asyncio.Task[None] | None = None) -> None:
        """Make the call, and tell its run the outcome.

        Args:
            after: An earlier call of the same ticket in this process, which ends first.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._give_up = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            if after is not None:
                await asyncio.wait([after])
            await self._drive()
        except asyncio.CancelledError:
            if self._state.cancelled:
                await self._end(None)
            elif task.cancelling():
                raise
            else:
                # The tool has raised it, because of something that it awaited.
                error = f"Error calling tool '{self._tool.name}': CancelledError."
                await self._end(Outcome.Error(error))
        except StoreError as error:
            _log.warning("call %s was left: %s", self.claim.run_id, error)
        except Exception:  # noqa: BLE001  # of the program's own functions; other calls go on
            _log.exception("call %s was left before its end", self.claim.run_id)
        finally:
            self._state.over = True

    async def _drive(self) -> None:
        await pool.in_own_thread(self.deliver)
        outcome = await self._outcome()
        self._state.over = True
        await self._end(outcome)

    async def _end(self, outcome: Outcome | None) -> None:
        text = None if outcome is None else outcome_to_text(outcome)
        ended = asyncio.ensure_future(
            pool.in_own_thread(self._shared.end_call, self.claim.run_id, text)
        )
        try:
            is_ours = await asyncio.shield(ended)
        except asyncio.CancelledError:
            # It has an outcome, which is not to be lost because the worker ends just now.
            await asyncio.wait([ended])
            if not ended.cancelled() and (error := ended.exception()) is not None:
                _log.warning("call %s was left: %s", self.claim.run_id, error)
            raise
        if not is_ours and outcome is not None:
            _log.warning("call %s was made, and is another worker's by now", self.claim.run_id)

    async def _outcome(self) -> Outcome:
        tool = self._tool
        if self.claim.claims > _IN_VAIN:
            return Outcome.Error(
                f"Error calling tool '{tool.name}': {_IN_VAIN} workers in a row ended during this "
                "call."
            )
        called: Tool[..., Any] | Reconciling | CallInDoubt = tool
        if self.claim.claims > 1 and tool.effect == "once":
            called = CallInDoubt(tool) if tool.reconcile is None else Reconciling(tool)
        root = self._context.run_id.partition(".")[0]
        return await call_held(
            called, self._arguments, self._context, root, lambda: not self._state.cancelled
        )


class _State:
    """The state of a call, as its tool sees it.

    Args:
        shared: The shared store.
        store: The same, to read the run.
        call_id: The id of the call.
        run_id: The id of the run.
    """

    def __init__(
        self, shared: _core.SharedRuns, store: TicketStore, call_id: str, run_id: str
    ) -> None:
        self._shared = shared
        self._store = store
        self._call_id = call_id
        self._run_id = run_id
        # Reading them opens the whole run.
        self._origins: dict[str, Origin] | None = None
        self.cancelled = False
        self.over = False

    def origins(self, ticket_id: str) -> dict[str, Origin]:
        """Return where the values of a call come from."""
        if self._origins is None:
            self._origins = self._store.run(self._run_id)._reads.tickets.origins(ticket_id)
        return self._origins

    @property
    def parts(self) -> dict[str, File]:
        """Images and files of the run so far, by their labels."""
        return self._store.run(self._run_id).parts

    def notice(
        self,
        context: Context,  # noqa: ARG002  # nobody reads how much it was
        done: float,  # noqa: ARG002
        total: float | None,  # noqa: ARG002
        message: str | None,  # noqa: ARG002
    ) -> None:
        """Note that the call makes progress."""
        self._shared.report(self._call_id)
