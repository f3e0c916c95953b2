"""An OpenAPI document as tools, one for each operation.

    api = OpenAPI.from_file("pets.json", auth={"apiKey": key})
    agent = Agent(model, protocol="ticket", tools=api)

Each call is a request to the document's server. It may be made by a client of your own, by an ASGI
app in this process, or by a Python function for each operation:

    OpenAPI.from_url("https://pets.example.com/openapi.json", client=httpx.AsyncClient())
    OpenAPI.from_app(app)
    OpenAPI.from_file("pets.json", handlers={"GET /pets/{id}": get_pet, "addPet": add_pet})

The arguments of an operation are its parameters and the properties of its body. The body is one
argument `body` if a name collides or the body is not an object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypedDict, Unpack

from callslip._base.json import to_json
from callslip._base.log import GuardedLogger
from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_text, check_type, checked_texts
from callslip._core import Document, ToolSet
from callslip.errors import ToolError, UsageError
from callslip.openapi._app import App, document_of
from callslip.openapi._auth import Auth, check_auth, check_headers, client_has_secrets
from callslip.openapi._client import Client, ResponseOptions
from callslip.openapi._fetch import fetch
from callslip.openapi._files import read_with_files
from callslip.openapi._handler import HandlerTool
from callslip.openapi._options import (
    approvals,
    check_options,
    chosen,
    find_operation,
    match_handlers,
    selected,
)
from callslip.openapi._server import Fetched, Servers
from callslip.openapi._tool import OperationTool
from callslip.openapi._traits import all_traits
from callslip.tools import NeedsApproval, Tool, ToolSource

if TYPE_CHECKING:
    from types import TracebackType


__all__ = ["OpenAPI", "PlannedRequest"]

Handler: TypeAlias = "Tool[..., Any] | Callable[..., Any]"


class AppOptions(TypedDict, total=False):
    """Options for the operations of an app; see `OpenAPI`."""

    auth: Mapping[str, Auth]
    handlers: Mapping[str, Handler]
    include: Sequence[str]
    tags: Sequence[str]
    read_only: bool
    needs_approval: NeedsApproval | Sequence[str]
    repeatable: bool | Sequence[str]
    untrusted: bool | Sequence[str]
    retries: int
    headers: Mapping[str, str]
    trusted_hosts: Sequence[str]
    timeout: float
    max_response_bytes: int
    validate_responses: bool


class Options(AppOptions, total=False):
    """Options for the operations of a document; see `OpenAPI`."""

    client: Any
    server: str


class PlannedRequest(NamedTuple):
    """A request as it would be sent, without secrets.

    Attributes:
        method: The method, in capitals.
        url: The URL with path and query, percent-encoded; relative if the client has a `base_url`.
        headers: Names and values.
        content: The body; empty for a request without one.
    """

    method: str
    url: str
    headers: list[tuple[str, str]]
    content: bytes


@knows_names_of_class(
    {
        "path": "OpenAPI.from_file(path)",
        "spec": "document=…",
        "url": "OpenAPI.from_url(url)",
        "base_url": "server=…",
        "spec_url": "OpenAPI.from_url(url)",
    }
)
class OpenAPI(
    ToolSource, AbstractAsyncContextManager["OpenAPI"], AbstractContextManager["OpenAPI"]
):
    """The operations of an OpenAPI document (version 3.0, 3.1 or 3.2), with a client or handlers.

    The effect of a call, and whether it may start early, follow from the method (`GET` changes
    nothing). A handler that is a `Tool` has its own options instead.

    Args:
        document: The document as a dict. It is not changed.
        client: Sends the requests: an httpx or httpx2 client, sync or async, or any object
            with their `request(method, url, headers=…, content=…)`. Its own `base_url` replaces
            the document's server. Default: an `httpx.Client` (extra `openapi`).
        auth: Secrets by the name of the document's security scheme: a key or token,
            `(user, password)`, or a sync or async function that returns either. An operation
            without a declared security receives all of them.
        server: A URL that replaces the document's servers.
        handlers: Functions that replace requests, by `"METHOD /path"` as in the document, or
            by `operationId`. Without a `client`, only operations with a handler are offered.
            Parameters that are not valid names in Python (`X-Request-ID`, `class`) reach the
            handler as `X_Request_ID` and `class_`, or unchanged in `**kwargs`.
        include: Patterns of the operations to offer: `"GET /repos/**"`, `"/pets/*"`, or a pattern
            for operationIds. `*` matches anything within a segment, `**` any segments. Default:
            all operations.
        tags: Offer only operations with one of these tags. Default: all operations.
        read_only: Whether to offer only methods that change nothing: GET, HEAD, OPTIONS,
            TRACE, QUERY.
        needs_approval: Whether each call waits for approval, or patterns as in `include` for the
            operations whose calls wait, or a function that decides for each call, as for `tool`.
            A call also waits if a server could take its path for that
            of such an operation, as `/users/{name}` with `all` for `/users/all`. If that operation
            is not offered, the call is refused.
        repeatable: Whether the same call may be made any number of times, as for polling, or
            patterns as in `include` for the operations whose calls may be repeated: their
            failed calls are tried again, and they are repeated after a crash.
        untrusted: Whether results come from others, so that their tickets say so, or patterns as in
            `include` for the operations whose results do; see `Ticket.untrusted`. The results of
            `handlers` are those of the program. Default: `True`.
        retries: How often a call is retried after a transient failure if it is safe to repeat
            (`GET`, `HEAD`, `PUT`, `DELETE`, `repeatable`). Default: 2.
        trusted_hosts: Further hosts that may receive secrets, for operations with a server of their
            own: `"uploads.example.com"`, also with a port; over plain http only as
            `"http://uploads.example.com"`. The document's first server, or its replacement, is
            always trusted; of a document that `from_url` fetches, only the host of its URL.
        headers: Headers of each request, for documents without a security scheme. Their values are
            secrets, as those of `auth`.
        timeout: Seconds until a call fails.
        max_response_bytes: The largest body of a response, in bytes. A longer one is an error.
        validate_responses: Whether a JSON response that does not match the document is an error.

    Attributes:
        document: The native document, reduced to the offered operations.
        tools: The operations as tools, by `METHOD /path`, in the order of the document.

    Raises:
        ToolError: The document is invalid, or no operation of it can be offered.
        UsageError: An option has a wrong value, or names an operation, a tag or a scheme that the
            document does not have; or no operation fits all options.
    """

    on_same_name = "leave it out of one of them, with OpenAPI(…, include=[…])"

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        client: Any = None,
        auth: Mapping[str, Auth] | None = None,
        server: str | None = None,
        handlers: Mapping[str, Handler] | None = None,
        include: Sequence[str] = (),
        tags: Sequence[str] = (),
        read_only: bool = False,
        needs_approval: NeedsApproval | Sequence[str] = False,
        repeatable: bool | Sequence[str] = False,
        untrusted: bool | Sequence[str] = True,
        retries: int = 2,
        headers: Mapping[str, str] | None = None,
        trusted_hosts: Sequence[str] = (),
        timeout: float = 30.0,
        max_response_bytes: int = 10 << 20,
        validate_responses: bool = False,
    ) -> None:
        document = _as_text(document)
        check_options(client, server, auth, retries)
        responses = ResponseOptions(timeout, max_response_bytes, validate_responses)
        sent_headers, whole = check_headers(headers), Document(document.content)
        _warn(whole, whole.notes())
        found = match_handlers(whole, {} if handlers is None else handlers)
        names = chosen(whole, include, tags, read_only)
        if handlers is not None and client is None:
            names = [name for name in names if name in found]
        names = _drop_unreadable(whole, names)
        asked = approvals(whole, names, needs_approval)
        repeated = selected(whole, names, "repeatable", repeatable)
        flags = repeated, selected(whole, names, "untrusted", untrusted)
        self.document: Document = whole.only(names, to_json(all_traits(names, found, asked, flags)))
        _warn_of_faults(self.document)
        servers, trusted = None, checked_texts("trusted_hosts", trusted_hosts)
        if any(name not in found for name in names):
            servers = Servers(self.document, client, server, document.fetched, trusted)
            if auth or headers or client_has_secrets(client):
                _warn(self.document, servers.untrusted_warnings(names))
        self.document = _mark(self.document, whole, servers)
        self._handlers = {name: found[name] for name in names if name in found}
        self._sent: Client | None = None
        if servers is not None:
            self._sent = Client(
                self.document,
                client,
                secrets=check_auth(auth or {}, self.document),
                headers=sent_headers,
                servers=servers,
                responses=responses,
                closed=[*(set(whole.names()) - set(names)), *asked],
            )
        self.tools: dict[str, Tool[..., Any]] = {
            name: self._make_tool(
                name, asks=asked.get(name, False), repeats=name in repeated, retries=retries
            )
            for name in names
        }

    def _make_tool(
        self, name: str, *, asks: NeedsApproval, repeats: bool, retries: int
    ) -> Tool[..., Any]:
        document, handler = self.document, self._handlers.get(name)
        if handler is not None:
            return HandlerTool(name, handler, document, asks=asks, retries=retries)
        assert self._sent is not None
        return OperationTool(
            name, document, self._sent, asks=asks, repeats=repeats, retries=retries
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], **options: Unpack[Options]) -> Self:
        """Create tools from a document as a dict. As `OpenAPI`, with all its options and errors.

        Args:
            document: The document. It is not changed.
            options: The options of `OpenAPI`.
        """
        return cls(document, **options)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Unpack[Options]) -> Self:
        """Read a document from a JSON or YAML file; see `OpenAPI` for the options.

        Files that the document refers to are read too, if they are in its folder or below.

        Args:
            path: The path of the file.
            options: The options of `OpenAPI`.

        Raises:
            OSError: The file cannot be read.
            ToolError: The file is neither JSON nor YAML, or `OpenAPI` raised it.
            UsageError: `OpenAPI` raised it.
        """
        check_type("path", path, (str, os.PathLike), "a path")
        try:
            return cls(_DocumentText(read_with_files(Path(path))), **options)
        except ToolError as error:
            raise ToolError(f"{Path(path).name}: {error}") from None

    @classmethod
    def from_url(cls, url: str, **options: Unpack[Options]) -> Self:
        """Fetch a JSON or YAML document; see `OpenAPI` for the options.

        A server without a host is the one that the document was fetched from. The document is
        fetched at once, which blocks, and without the client. Secrets go to the host of `url`, and
        to others only with `trusted_hosts` or `server`.

        Args:
            url: The address of the document.
            options: The options of `OpenAPI`.

        Raises:
            ToolError: The document cannot be fetched, or `OpenAPI` raised it.
            UsageError: The URL cannot be fetched from, none of the document's servers may receive
                the secrets, or `OpenAPI` raised it.
        """
        content, found_at = fetch(url)
        return cls(_DocumentText(content, Fetched(url, found_at)), **options)

    @classmethod
    def from_app(
        cls,
        app: Any,
        *,
        document: Mapping[str, Any] | None = None,
        **options: Unpack[AppOptions],
    ) -> Self:
        """Offer the operations of an ASGI app, which runs in this process.

        The app runs on the event loop of the caller, within its lifespan. The lifespan begins with
        the first call on a loop, and ends with `close`, `aclose` or the loop.

        Args:
            app: The app.
            document: The document. Default: that of `app.openapi()` (FastAPI), else
                `/openapi.json` of the app.
            options: The options of `OpenAPI`, without `client` and `server`.

        Raises:
            ToolError: The app has no document, or `OpenAPI` raised it.
            UsageError: `app` is not an app, an option is not for apps, or `OpenAPI` raised it.
        """
        if unfit := {"client", "server"} & options.keys():
            raise UsageError(f"an app in this process has no {' or '.join(sorted(unfit))}")
        if not callable(app):
            raise UsageError(
                f"expected an ASGI app: got {type(app).__name__}; pass the app itself, such as "
                "FastAPI()"
            )
        return cls(document_of(app) if document is None else document, client=App(app), **options)

    def request(self, name: str, arguments: Mapping[str, Any]) -> PlannedRequest:
        """Return the request that a call would send, without secrets. Nothing is sent.

        Args:
            name: `"METHOD /path"` or an `operationId`.
            arguments: The arguments, as a model writes them.

        Raises:
            UsageError: The document has no such operation, or an argument has a wrong type.
            ValueError: The arguments do not match the document, or cannot be sent.
        """
        check_text("name", name)
        check_type("arguments", arguments, Mapping, "a dict")
        operation = find_operation(self.document, name)
        checked = self._tool_set.check(operation, to_json(dict(arguments)))
        base = "" if self._sent is None else self._sent.servers.base(operation)
        planned = self.document.request(operation, to_json(checked), base, [])
        return PlannedRequest(planned.method, planned.url, planned.headers, planned.body)

    def as_tools(self) -> Sequence[Tool[..., Any]]:
        """Return the operations as tools, in the order of the document."""
        return list(self.tools.values())

    @cached_property
    def _tool_set(self) -> ToolSet:
        return ToolSet([], [self.document])

    @property
    def document_json(self) -> str:
        """The document, reduced to the offered operations, as JSON text."""
        return self.document.to_json()

    async def aclose(self) -> None:
        """End the lifespan of an app, or close the client if it was created here."""
        if self._sent is not None:
            await self._sent.aclose()

    def close(self) -> None:
        """Like `aclose`, from sync code."""
        if self._sent is not None:
            self._sent.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<OpenAPI {self.document.title()!r}: {len(self.tools)} operations>"


class _DocumentText(dict[str, Any]):
    """A document as text, and where it was fetched."""

    def __init__(self, content: bytes, fetched: Fetched | None = None) -> None:
        super().__init__()
        self.content = content
        self.fetched = fetched


def _as_text(document: Mapping[str, Any]) -> _DocumentText:
    if isinstance(document, _DocumentText):
        return document
    if isinstance(document, str | bytes | PurePath):
        raise UsageError(
            f"expected the document as a dict: got {type(document).__name__}: use "
            "OpenAPI.from_file(path) or OpenAPI.from_url(url)"
        )
    if not isinstance(document, Mapping):
        kind = type(document).__name__
        hint = "use OpenAPI.from_app(app)" if callable(document) else "pass it as a dict"
        raise ToolError(f"expected the OpenAPI document to be an object: got {kind}: {hint}")
    return _DocumentText(to_json(document).encode())


def _mark(document: Document, whole: Document, servers: Servers | None) -> Document:
    """Return the document with marks for its missing operations and its server."""
    in_process = f"//in-process:{document.title()}"
    return document.marked(whole, in_process if servers is None else servers.address(in_process))


def _drop_unreadable(document: Document, names: list[str]) -> list[str]:
    """Return the names without operations that have broken references, with a warning.

    Raises:
        ToolError: No operation is left.
    """
    broken = dict(document.unreadable())
    if not broken:
        return names
    left_out = [name for name in broken if name in names or name.startswith("/")]
    shown = "; ".join(f"'{name}' refers to '{broken[name]}'" for name in left_out[:5])
    more = f", and {len(left_out) - 5} more" if len(left_out) > 5 else ""
    kept = [name for name in names if name not in broken]
    told = (
        f"operations are left out that refer to what is not there: {shown}{more}. Files beside a "
        "document are read by OpenAPI.from_file"
    )
    if not kept:
        raise ToolError(f"no operation is left: {told}")
    if left_out:
        _warn(document, [told])
    return kept


def _warn(document: Document, notes: Sequence[str]) -> None:
    if notes:
        told = "; ".join(notes)
        GuardedLogger("callslip.openapi").warning("the document '%s': %s", document.title(), told)


def _warn_of_faults(document: Document) -> None:
    if faults := document.faults():
        more = f", and {len(faults) - 5} more" if len(faults) > 5 else ""
        _warn(
            document,
            [f"schemas at fault, of which the rest is checked: {'; '.join(faults[:5])}{more}"],
        )
    undeclared = document.undeclared()
    if not undeclared:
        return

    shown = "; ".join(f"{', '.join(names)} of '{name}'" for name, names in undeclared[:5])
    more = f" and of {len(undeclared) - 5} more operations" if len(undeclared) > 5 else ""
    GuardedLogger("callslip.openapi").warning(
        "the document '%s' uses parameters in paths that it does not declare, which are taken as "
        "required strings: %s%s",
        document.title(),
        shown,
        more,
    )
