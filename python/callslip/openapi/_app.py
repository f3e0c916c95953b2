"""ASGI apps in this process, with their lifespans."""

from __future__ import annotations

import atexit
import traceback
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from callslip._base import _lazy
from callslip._base.failure import log_failure
from callslip._base.redaction import Secrets
from callslip._threads import pool
from callslip._threads.current_loop import check_loop
from callslip.errors import ToolError
from callslip.tools import Fail

if TYPE_CHECKING:
    import asyncio

__all__ = ["App", "document_of"]

_URL = "http://testserver"
_SECONDS = 10.0
"""For the app's end."""


class App:
    """A client for an app that runs on the caller's event loop, within its lifespan."""

    base_url = _URL

    def __init__(self, app: Any) -> None:
        self._app = app
        self._lives: dict[asyncio.AbstractEventLoop, _Lifespan] = {}
        # Ends the app when it is garbage collected. At exit, lifespans end by themselves.
        weakref.finalize(self, _end_all_soon, self._lives).atexit = False

    async def request(
        self, method: str, url: str, *, max_bytes: int, **options: Any
    ) -> tuple[Any, Exception | None]:
        """Send a request.

        Returns:
            The response of httpx, truncated after `max_bytes`, and the exception of an app that
            raised after its response.

        Raises:
            Fail: The app did not start, or failed in the middle of its response.
        """
        loop = _lazy.asyncio.get_running_loop()
        life = self._lives.get(loop)
        if life is None or life.is_over:
            # Lifespans that are over would keep their loops alive.
            for one in [one for one in list(self._lives) if one.is_closed()]:
                self._lives.pop(one, None)
            life = self._lives[loop] = _Lifespan(self._app)
        app = _BoundedApp(await life.wait_until_started(), max_bytes)
        async with _client(app) as client:
            response = await client.request(method, url, **options)
        if app.is_cut:
            raise Fail("the app failed in the middle of its response") from app.failure
        return response, app.failure

    async def end(self) -> None:
        """End the app's lifespan on every loop that still runs."""
        check_loop("api.close")
        here = _lazy.asyncio.get_running_loop()
        for loop, life in list(self._lives.items()):
            if loop is here:
                await life.end()
            elif loop.is_running():
                ending = _lazy.asyncio.run_coroutine_threadsafe(life.end(), loop)
                await _lazy.asyncio.wrap_future(ending)
        self._lives.clear()

    def end_sync(self) -> None:
        """Like `end`, from sync code."""
        for loop, life in list(self._lives.items()):
            if loop.is_running():
                _lazy.asyncio.run_coroutine_threadsafe(life.end(), loop).result(2 * _SECONDS)
        self._lives.clear()


def _end_all_soon(lives: dict[asyncio.AbstractEventLoop, _Lifespan]) -> None:
    for loop, life in lives.items():
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(life.end_soon)


class _Lifespan:
    """One lifespan of an app, in a task of its own, because it may be ended by another task.

    The messages are those of the ASGI specification's lifespan protocol. The app runs in that task,
    so that it learns of the end even if the loop ends and cancels all tasks.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._state: dict[str, Any] = {}
        self._loop = _lazy.asyncio.get_running_loop()
        self._begun: asyncio.Future[None] = self._loop.create_future()
        # Retrieves the exception, in case all waiting callers have been cancelled.
        self._begun.add_done_callback(lambda started: started.exception())
        self._asked = False
        # The app's message about a failed end.
        self._failure_text: str | None = None
        self._end = _lazy.asyncio.Event()
        self._task = _lazy.asyncio.create_task(self._live())
        _lives.add(self)

    @property
    def is_over(self) -> bool:
        return self._task.done() and self._begun.done() and self._begun.exception() is not None

    async def wait_until_started(self) -> Any:
        """Wait until the app has started. Returns the callable for requests.

        Raises:
            Fail: The app did not start.
        """
        await _lazy.asyncio.shield(self._begun)
        return self._call

    async def end(self) -> None:
        """End the app, and wait until it has ended."""
        self._end.set()
        _, still = await _lazy.asyncio.wait([self._task], timeout=_SECONDS)
        for task in still:
            task.cancel()

    def end_soon(self) -> None:
        """End the app, without waiting."""
        self._end.set()

    def end_at_exit(self) -> None:
        if self._loop.is_running() and not self._task.done():
            _lazy.asyncio.run_coroutine_threadsafe(self.end(), self._loop).result(2 * _SECONDS)

    async def _call(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app({**scope, "state": dict(self._state)}, receive, send)

    async def _live(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self._state}
        try:
            await self._app(scope, self._receive, self._send)
            if self._failure_text is not None:
                _log(RuntimeError(self._failure_text))
        except _lazy.asyncio.CancelledError:
            self._fail("it was ended before")
            raise
        except Exception as error:  # noqa: BLE001  # no caller waits for it
            # By the specification, an app that raises at once has no lifespan.
            if self._begun.done() and self._begun.exception() is None:
                _log(error)
        finally:
            _lives.discard(self)
            if not self._begun.done():
                self._begun.set_result(None)

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "lifespan.startup"}
        with suppress(_lazy.asyncio.CancelledError):
            await self._end.wait()
        return {"type": "lifespan.shutdown"}

    async def _send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "lifespan.startup.failed":
            ended = self._end.is_set()
            self._fail("it was ended before" if ended else str(message.get("message", "")))
        elif message["type"] == "lifespan.startup.complete" and not self._begun.done():
            self._begun.set_result(None)
        elif message["type"] == "lifespan.shutdown.failed":
            self._failure_text = str(message.get("message", ""))

    def _fail(self, cause: str) -> None:
        if not self._begun.done():
            lines = cause.strip().splitlines()
            told = f": {lines[-1]}" if lines else ""
            self._begun.set_exception(Fail(f"the app did not start{told}"))


_lives: set[_Lifespan] = set()
"""Lifespans that have not ended. Nothing else need refer to one, not even its loop."""


@atexit.register
def _end_all() -> None:
    # The loop of `run_sync` is never closed, so its apps are ended here.
    for life in list(_lives):
        life.end_at_exit()


def _log(error: Exception) -> None:
    """Log an exception of an app at its end, without secrets."""
    secrets = Secrets.of_this_context()
    text = "".join(traceback.format_exception(error))
    if secrets is not None and (clean := secrets.redact(text)) != text:
        error = RuntimeError(clean)
    log_failure("lifespan of the app", error)


class _BoundedApp:
    """The app for one request. If its response is too long, the client appears to be gone.

    Attributes:
        failure: What the app raised of its own.
        is_cut: Whether a response was begun that has no end.
    """

    def __init__(self, app: Any, max_bytes: int) -> None:
        self._app = app
        self._left = max_bytes
        self.failure: Exception | None = None
        self.is_cut = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_counted(message: Any) -> None:
            if self._left < 0:
                # The ASGI specification requires this of a client that has disconnected.
                raise OSError("the response has more bytes than are taken")
            self._left -= len(message.get("body", b""))
            await send(message)
            if message["type"] == "http.response.start":
                self.is_cut = True
            elif message["type"] == "http.response.body" and not message.get("more_body", False):
                self.is_cut = False

        try:
            await self._app(scope, receive, send_counted)
        except Exception as error:
            if self._left >= 0:
                self.failure = error
            else:
                self.is_cut = False
            raise
        if self.is_cut and self._left >= 0:
            self.failure = RuntimeError("the app returned before the end of its response")
            raise self.failure


def document_of(app: Any) -> Mapping[str, Any]:
    """Return the app's own document.

    Raises:
        ToolError: It has no document.
    """
    make = getattr(app, "openapi", None)
    document = make() if callable(make) else None
    if isinstance(document, Mapping):
        return document
    response = pool.on_loop(_fetch_document(app)).result().get()
    try:
        document = response.json() if response.status_code == 200 else None
    except ValueError:
        document = None
    if not isinstance(document, Mapping):
        raise ToolError(
            f"the app has no document at /openapi.json (HTTP {response.status_code}): pass "
            "document=… to from_app"
        )
    return document


async def _fetch_document(app: Any) -> Any:
    async with _client(app) as client:
        return await client.get("/openapi.json")


def _client(app: Any) -> Any:
    try:
        httpx = _lazy.httpx
    except ImportError:
        raise _needs("httpx") from None
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=_URL)


def _needs(name: str) -> ToolError:
    return ToolError(f"an app in this process needs {name}: pip install 'callslip[openapi]'")
