"""The link to one MCP server: a session, and another one after it is lost."""

from __future__ import annotations

import asyncio
import atexit
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from callslip._base.redaction import redact_likely_secrets
from callslip._threads import pool
from callslip._threads.current_loop import check_loop
from callslip._threads.forks import after_in_child
from callslip.errors import ToolError, UsageError
from callslip.mcp._faults import SessionLost
from callslip.mcp._options import ServerOptions
from callslip.mcp._session import McpSession, live_sessions
from callslip.mcp._transports import Transport
from callslip.tools import Fail

if TYPE_CHECKING:
    from mcp import Client

__all__ = ["ServerLink", "on_private_loop", "wait_on_private_loop"]

T = TypeVar("T")

_AT_EXIT = 6.0
"""Seconds that a program waits at its end for servers to end."""


class ServerLink:
    """The link to a server, used on the private loop only.

    Attributes:
        session: The last session; `None` if there is none.
        is_closed: Whether the program has closed the server.

    Args:
        transport: The connection to the server.
        options: The options of the server.
        callbacks: Callbacks for the server's requests, under the SDK's names for them.
    """

    def __init__(
        self, transport: Transport, options: ServerOptions, callbacks: Mapping[str, Any]
    ) -> None:
        self._transport = transport
        self._options = options
        self._callbacks = callbacks
        self.session: McpSession | None = None
        self.is_closed = False
        # Ends the server when this object is garbage collected.
        self._finalizer: weakref.finalize[..., Any] | None = None
        _links.add(self)

    def open_session(self) -> McpSession:
        """Return the current session, or open one."""
        if self.session is None or not self.session.is_usable:
            self.session = McpSession(
                self._transport,
                callbacks=self._callbacks,
                log_level=self._options["log_level"],
                connect_timeout=self._options["connect_timeout"],
                earlier=self.session,
            )
            if self._finalizer is not None:
                self._finalizer.detach()
            self._finalizer = weakref.finalize(self, self.session.abandon)
            self._finalizer.atexit = False
        return self.session

    async def close(self) -> None:
        """End the session, and the process if there is one."""
        self.is_closed = True
        session, self.session = self.session, None
        if session is not None:
            await session.end()
        await self._transport.aclose()

    async def request(self, send: Callable[[Client], Awaitable[T]]) -> T:
        """Send a request, in a new session if the last one is lost.

        Raises:
            Fail: It failed.
        """
        name = self._transport.name
        again = True
        while True:
            if self.is_closed:
                raise Fail(f"the MCP server '{name}' is closed")
            try:
                return await self.open_session().request(send, seconds=self._options["timeout"])
            except SessionLost as lost:
                if self.is_closed and not lost.is_safe:
                    raise Fail(
                        f"the MCP server '{name}' was closed during the call, which may have "
                        "taken effect"
                    ) from None
                # A request is sent again only if it has not reached the server, and only once.
                if not (lost.is_safe and again):
                    raise _transient_failure(redact_likely_secrets(str(lost))) from None
                again = False
            except ToolError as error:
                raise _transient_failure(redact_likely_secrets(str(error))) from None


def _transient_failure(words: str) -> Fail:
    """Return a transient failure: the server cannot be reached."""
    failure = Fail(words)
    failure.is_transient = True
    return failure


async def on_private_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await on the private loop. Cancelling the caller cancels it there."""
    try:
        check_loop("asyncio.run, main()")
    except UsageError:
        coroutine.close()
        raise
    return (await asyncio.wrap_future(pool.on_loop(coroutine))).get()


def wait_on_private_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Wait in this thread for a coroutine on the private loop."""
    future = pool.on_loop(coroutine)
    try:
        return future.result().get()
    except BaseException:
        future.cancel()
        raise


async def _end_all() -> None:
    await asyncio.gather(
        *(session.end() for session in list(live_sessions)), return_exceptions=True
    )


def _at_exit() -> None:
    if not live_sessions:
        return
    future = pool.on_loop(_end_all())
    try:
        future.result(_AT_EXIT).get()
    except Exception:  # noqa: BLE001  # the program is ending, and nothing could handle it
        return


def _forget_in_child() -> None:
    """Drop the sessions in a forked child: they belong to the parent."""
    _forgotten.extend(live_sessions)
    live_sessions.clear()
    for link in list(_links):
        link.session = None


_links: weakref.WeakSet[ServerLink] = weakref.WeakSet()
# Referenced, so that garbage collection in the child does not close them.
_forgotten: list[McpSession] = []
atexit.register(_at_exit)
after_in_child(_forget_in_child)
