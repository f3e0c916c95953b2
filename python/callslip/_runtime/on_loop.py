"""What both drivers do on an event loop: calls of async tools, streamed replies, runs of tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, cast

from callslip import _lazy
from callslip._runtime.children import child_of, outcome_of, too_deep
from callslip._runtime.session import Call, Receipt, Session
from callslip._threads import pool
from callslip.models._reply import AsyncReplyStream, ReplyStream

if TYPE_CHECKING:
    from concurrent.futures import Future

    from callslip._core import Command
    from callslip._runtime.reconcile import Reconciling
    from callslip.models._reply import ModelChunk
    from callslip.runs import Run, RunResult
    from callslip.tools import Context, Outcome, Tool

__all__ = ["End", "make_call", "receive", "work"]


async def work(session: Session, command: Command.StartRun) -> tuple[Outcome, Run | None]:
    """Take the run of a task to its end. Returns what is told of it, and the run."""
    from callslip._runtime.driver import drive

    if session.levels == 0:
        return too_deep(), None
    child = child_of(session, command)
    tool = session.offer.toolbox.find(command.tool)
    with child:
        if tool is None or tool.gate is None:
            await drive(child)
        else:
            async with tool.gate.held(session.root):
                await drive(child)
        return outcome_of(child), child.run


async def make_call(session: Session, command: Command.CallTool, call: Call) -> Outcome:
    """Make a call. A tool that is not async has a thread of the pool."""
    tool, context = session.tool(command, call)
    if tool.gate is None:
        return await _made(tool, command, context)
    async with tool.gate.held(session.root):
        return await _made(tool, command, context)


async def _made(
    tool: Tool[..., Any] | Reconciling, command: Command.CallTool, context: Context | None
) -> Outcome:
    if tool.is_async or tool.awaits_on_loop:
        return await tool.acall(command.arguments, context)
    if tool.gate is None:
        outcome = await pool.in_thread(tool.call, command.arguments, context)
    else:
        inside = pool.submit_inside(tool.gate, tool.call, command.arguments, context)
        outcome = await pool.result_of(inside)
    if hasattr(outcome, "__await__"):
        outcome = await cast("Awaitable[Outcome]", outcome)
    return cast("Outcome", outcome)


class End:
    """The end of a run under way, for who waits for it and does not work on it."""

    def __init__(self, outcome: Future[RunResult]) -> None:
        self._outcome = outcome

    def __await__(self) -> Generator[Any, Any, RunResult]:
        # Who gives up waiting does not end the run.
        return _lazy.asyncio.shield(_lazy.asyncio.wrap_future(self._outcome)).__await__()


async def receive(
    session: Session,
    stream: ReplyStream | AsyncReplyStream,
    begin: Callable[[Command], object],
) -> Sequence[Command]:
    """Read a streamed reply into the run; `begin` starts calls that may start early."""
    receipt = Receipt(session)
    if isinstance(stream, AsyncReplyStream):
        try:
            async for chunk in stream:
                if await _stops(session, receipt, chunk, begin):
                    break
        finally:
            await stream.aclose()
        return receipt.close()
    reading = None
    try:
        while True:
            reading = pool.submit_next(stream, session.model.gate)
            piece = await pool.result_of(reading)
            if piece is None or await _stops(session, receipt, piece, begin):
                break
        await pool.in_thread(stream.close)
    except BaseException:
        pool.close_soon(stream, reading)
        raise
    return receipt.close()


async def _stops(
    session: Session, receipt: Receipt, chunk: ModelChunk, begin: Callable[[Command], object]
) -> bool:
    """Take a chunk. Returns whether the stream is to be stopped."""
    stop, commands = receipt.take(chunk)
    for command in commands:
        begin(command)
    # Who watches slowly does not hold up others that wait for the same model.
    if session.room is not None and not stop and session.model.gate is None:
        await session.room()
    return stop
