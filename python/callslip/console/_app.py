"""The application: its addresses, and what each answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from callslip._base.log import GuardedLogger
from callslip.console._access import Access, Denied, Role, base_of
from callslip.console._addresses import key_of, run_id_of
from callslip.console._decisions import LONGEST, Decision
from callslip.console._files import download, part_of
from callslip.console._live import Live, Shown
from callslip.console._options import Name
from callslip.console._page import headers, live_page, message_page, sign_in_page
from callslip.console._run_page import run_sections
from callslip.console._runs_page import COLUMNS, Filter, runs_sections
from callslip.console._source import Source
from callslip.errors import CallslipError, StoreError, UnknownRun, UsageError
from callslip.look._markup import el
from callslip.web._bodies import read_body
from callslip.web._errors import TooLarge, status_of
from callslip.web._responses import STREAM_HEADERS

__all__ = ["Console"]

_log = GuardedLogger("callslip.console")

_Answer = Callable[[Request], Awaitable[Response]]
_LONGEST_TOKEN = 100_000
_LONGEST_NAME = 200
_READ_ONLY = "Decide in the program that has the file open, {}: this console can only read it."
_READER = "You have signed in to read: sign in with the other token to decide."
_SIGN_IN = "Sign in with the token of this console."
_BEHIND = "Sign in with the token of this console: in an address it stands behind #, login#token=…"
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


class Console:
    """The pages of a store, as an application of ASGI.

    Args:
        source: What is shown.
        access: Who may read and decide.
        by: Returns the name of the person who decides; `None` for the address alone.
        token: What a person presents.
    """

    def __init__(self, source: Source, access: Access, by: Name | None, *, token: str) -> None:
        self.token = token
        self._source = source
        self._access = access
        self._by = by
        self._live = Live(source.version)
        routes: list[tuple[str, str, _Answer]] = [
            ("GET", "/", self._runs),
            ("GET", "/events", self._runs_events),
            ("GET", "/runs/{key}.html", self._file),
            ("GET", "/runs/{key}.jsonl", self._log),
            ("GET", "/runs/{key}", self._run),
            ("GET", "/runs/{key}/events", self._run_events),
            ("GET", "/runs/{key}/files/{label}", self._part),
            ("POST", "/runs/{key}/decide", self._decide),
            ("POST", "/logout", self._sign_out),
        ]
        guarded = [
            Route(path, self._answering(answer, signed_in=True), methods=[method])
            for method, path, answer in routes
        ]
        sign_in = Route(
            "/login", self._answering(self._sign_in, signed_in=False), methods=["GET", "POST"]
        )
        nothing = Route("/{path:path}", self._answering(_nothing, signed_in=True), methods=_METHODS)
        self._app = Starlette(
            routes=[sign_in, *guarded, nothing], exception_handlers={405: _unknown_method}
        )

    def end_streams(self) -> None:
        """End the streams of all open pages, so that a server can stop. Called on their loop."""
        self._live.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        await self._app(scope, receive, send)

    def _answering(self, answer: _Answer, *, signed_in: bool) -> _Answer:
        async def checked(request: Request) -> Response:
            try:
                self._access.check_host(request)
                if signed_in:
                    request.state.callslip_role = self._access.role(request)
                response = await answer(request)
            except Denied as denied:
                response = _denied(request, denied.status, denied.message, denied.problems)
            except TooLarge as error:
                response = _denied(request, status_of(error), str(error))
            except CallslipError as error:
                # What fails here is the place that is shown; its person may read why.
                status = 404 if isinstance(error, UnknownRun) else 503
                response = _denied(request, status, str(error))
            except Exception:  # noqa: BLE001  # a page that says so, with the headers of all pages
                _log.exception("a request to the console failed")
                message = "this cannot be shown: the program's log says why"
                response = _denied(request, 500, message)
            response.headers.update(headers())
            return response

        return checked

    async def _sign_in(self, request: Request) -> Response:
        if request.method != "POST":
            # Servers log addresses, and a browser sends nothing of what stands behind #.
            message = _BEHIND if "token" in request.query_params else _SIGN_IN
            return HTMLResponse(sign_in_page(message, f"{base_of(request)}/login", again=False))
        body = await read_body(request, _LONGEST_TOKEN)
        token = parse_qs(body.decode(errors="replace")).get("token", [""])[0].strip()
        answer = RedirectResponse(f"{base_of(request)}/", status_code=303)
        return self._access.sign_in(request, token, answer)

    async def _sign_out(self, request: Request) -> Response:
        self._access.check_own_page(request)
        return self._access.sign_out(request, JSONResponse({"done": "sign out"}))

    async def _runs(self, request: Request) -> Response:
        chosen = Filter.read(request.query_params)
        base = base_of(request)
        shown = await run_in_threadpool(self._render_runs, chosen, base)
        page = live_page(
            self._source.name,
            shown.sections,
            events=chosen.address(f"{base}/events"),
            out_at=f"{base}/logout",
            table=COLUMNS,
        )
        return HTMLResponse(page)

    async def _run(self, request: Request) -> Response:
        run_id, base = _run_id(request), base_of(request)
        shown = await run_in_threadpool(self._render_run, run_id, base, _role(request))
        page = live_page(
            run_id,
            shown.sections,
            events=f"{base}/runs/{key_of(run_id)}/events",
            out_at=f"{base}/logout",
            above=el("p", el("a", "Runs", href=f"{base}/")),
        )
        return HTMLResponse(page)

    def _render_runs(self, chosen: Filter, base: str) -> Shown:
        place = self._source.name, self._source.owner()
        return Shown.of(runs_sections(self._source.listing(), chosen, base, place))

    def _render_run(self, run_id: str, base: str, role: Role) -> Shown:
        run, owner = self._source.read(run_id), self._source.owner()
        reason = None if owner is None else _READ_ONLY.format(owner)
        if role == "read":
            reason = _READER
        return Shown.of(run_sections(run.trace(), run.awaiting_approval, base, reason))

    async def _runs_events(self, request: Request) -> Response:
        chosen, base = Filter.read(request.query_params), base_of(request)
        return self._stream(request, ("", chosen), partial(self._render_runs, chosen, base))

    async def _run_events(self, request: Request) -> Response:
        run_id, base, role = _run_id(request), base_of(request), _role(request)
        return self._stream(request, (run_id, role), partial(self._render_run, run_id, base, role))

    def _stream(
        self, request: Request, key: tuple[object, ...], render: Callable[[], Shown]
    ) -> Response:
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        changes = self._live.join((*key, base_of(request)), render)
        return StreamingResponse(changes, media_type="text/event-stream", headers=STREAM_HEADERS)

    async def _file(self, request: Request) -> Response:
        run_id = _run_id(request)
        page = await run_in_threadpool(lambda: self._source.read(run_id).to_html())
        return _download(page, "text/html", f"run-{key_of(run_id)}.html")

    async def _log(self, request: Request) -> Response:
        run_id = _run_id(request)
        log = await run_in_threadpool(lambda: self._source.read(run_id).export())
        return _download(log, "application/jsonl", f"run-{key_of(run_id)}.jsonl")

    async def _part(self, request: Request) -> Response:
        run_id, label = _run_id(request), request.path_params["label"]
        part = await run_in_threadpool(lambda: part_of(self._source.read(run_id), label))
        if part is None:
            raise Denied(404, "the run has no such file")
        return download(*part)

    async def _decide(self, request: Request) -> Response:
        self._access.check_own_page(request)
        if _role(request) != "decide":
            raise Denied(403, _READER)
        decision = Decision.read(await read_body(request, LONGEST))
        run_id, by = _run_id(request), self._person(request)
        try:
            await run_in_threadpool(
                self._source.change, lambda store: decision.make(store, run_id, by)
            )
        except UsageError as error:
            raise Denied(status_of(error), str(error), error.problems) from error
        except StoreError as error:
            # Without another owner of the file, the run is not there.
            status = 404 if isinstance(error, UnknownRun) else 409
            raise Denied(status, str(error)) from error
        return JSONResponse({"done": decision.do, "by": by})

    def _person(self, request: Request) -> str:
        address = request.client.host if request.client is not None else "unknown address"
        name = None if self._by is None else self._by(request)
        if name is None or name == "":
            return address
        if not isinstance(name, str):
            raise Denied(500, f"expected by= to return a name: got {type(name).__name__}")
        return f"{' '.join(name.split())[:_LONGEST_NAME]} ({address})"


def _role(request: Request) -> Role:
    role: Role = request.state.callslip_role
    return role


def _run_id(request: Request) -> str:
    return run_id_of(request.path_params["key"])


async def _unknown_method(_: Request, __: Exception) -> Response:
    return Response(status_code=405, headers=dict(headers()))


def _denied(
    request: Request, status: int, message: str, problems: Sequence[Sequence[str]] = ()
) -> Response:
    # What was sent may have halves of surrogate pairs.
    message = message.encode(errors="replace").decode()
    if "text/html" not in request.headers.get("accept", ""):
        more = {"problems": problems} if problems else {}
        return JSONResponse({"error": message, **more}, status)
    if status in {401, 429}:
        # A link of another site brings no cookie; this page's own link to the same address does.
        again = request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site"
        return HTMLResponse(sign_in_page(message, f"{base_of(request)}/login", again=again), status)
    return HTMLResponse(message_page("Not shown", message, base_of(request)), status)


async def _nothing(_: Request) -> Response:
    raise Denied(404, "there is no such page")


def _download(text: str, kind: str, name: str) -> Response:
    return Response(
        text.encode(errors="replace"),
        media_type=f"{kind}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
