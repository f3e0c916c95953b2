"""An OpenAPI document as tools, one for each operation.

    api = OpenAPI.from_file("pets.json", auth={"apiKey": key})
    agent = Agent(model, protocol="ticket", tools=api)

Each call is a request to the document's server. It may be made by a client of your own, by an ASGI
app in this process, or by a Python function for each operation:

    OpenAPI.from_url("https://pets.example.com/openapi.json", client=httpx.AsyncClient())
    OpenAPI.from_app(app)
    OpenAPI.from_file("pets.json", handlers={"GET /pets/{id}": get_pet, "addPet": add_pet})

The arguments of an operation are its parameters by name and the properties of its body beside
them, or the body as `body` where a name collides or the body is no object.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypedDict, Unpack

from callslip._core import Document, ToolSet
from callslip._json import to_json
from callslip.errors import ToolError
from callslip.openapi._app import App, document_of
from callslip.openapi._auth import Auth, check_auth, check_headers
from callslip.openapi._client import Client
from callslip.openapi._fetch import fetched
from callslip.openapi._files import with_files
from callslip.openapi._handler import HandlerTool
from callslip.openapi._server import Servers
from callslip.openapi._tool import OperationTool
from callslip.tools import Tool, ToolSource

if TYPE_CHECKING:
    import os
    from types import TracebackType


__all__ = ["OpenAPI", "PlannedRequest"]

Handler: TypeAlias = "Tool[..., Any] | Callable[..., Any]"


class AppOptions(TypedDict, total=False):
    """What may be said of the operations of an app; see `OpenAPI`."""

    auth: Mapping[str, Auth]
    handlers: Mapping[str, Handler]
    include: Sequence[str]
    tags: Sequence[str]
    read_only: bool
    needs_approval: bool | Sequence[str]
    repeatable: bool | Sequence[str]
    headers: Mapping[str, str]
    trusted_hosts: Sequence[str]
    timeout: float
    max_response_bytes: int
    validate_responses: bool


class Options(AppOptions, total=False):
    """What may be said of the operations of a document; see `OpenAPI`."""

    client: Any
    server: str


class PlannedRequest(NamedTuple):
    """A request as it would be sent, without secrets.

    Attributes:
        method: In capitals.
        url: With path and query, percent-encoded; relative where the client has the server.
        headers: Names and values.
        content: The body; empty where there is none.
    """

    method: str
    url: str
    headers: list[tuple[str, str]]
    content: bytes


class OpenAPI(
    ToolSource, AbstractAsyncContextManager["OpenAPI"], AbstractContextManager["OpenAPI"]
):
    """A document of version 3.0 or 3.1 with what carries its operations out.

    What a crash in mid-call means, and whether a call may start early, follows from the method
    (`GET` changes nothing), unless a handler is a `Tool` that says so.

    Args:
        document: As Python reads it from JSON. It is not changed.
        client: What sends the requests: an httpx or httpx2 client, sync or async, or any object
            with their `request(method, url, headers=…, content=…)`. Its own `base_url` stands for
            the document's server. Default: an `httpx.Client` (extra `openapi`).
        auth: What proves who calls, by the name of the document's security scheme: a key or token,
            `(user, password)`, or a sync or async function that returns either. An operation of
            which the document does not say how it is secured is sent all of them.
        server: The URL that stands for the document's servers.
        handlers: Functions in place of requests, by `"METHOD /path"` as the document writes it, or
            by `operationId`. Without a `client` only their operations are offered. A name that is
            none in Python (`X-Request-ID`, `class`) reaches the handler as `X_Request_ID` and
            `class_`, or as it is in `**kwargs`.
        include: Patterns of the operations to offer: `"GET /repos/**"`, `"/pets/*"`, or one for
            operationIds; `*` stands for anything in a segment, `**` for any segments. Default: all.
        tags: Offer those with one of these tags only.
        read_only: Whether to offer only what changes nothing: GET, HEAD, OPTIONS, TRACE.
        needs_approval: Whether each call waits for approval, or patterns as in `include` for the
            operations whose calls do. A call waits too where its path may be taken for one of such
            an operation, as `/users/{name}` with `all` for `/users/all`; where that is not offered,
            it is refused.
        repeatable: Whether the same call may be made any number of times, as to poll, or patterns
            as in `include` for the operations of which it is so.
        trusted_hosts: Hosts that secrets are sent to beside that of the document's first server, or
            of the one that stands for it: `"uploads.example.com"`, for operations with a server
            of their own.
        headers: Sent with each request. Their values are secrets, as those of `auth`: for documents
            that have no security scheme.
        timeout: Seconds after which a call fails.
        max_response_bytes: Of a response's body; a longer one is an error.
        validate_responses: Whether a JSON response that is not as the document says is an error.

    Attributes:
        document: The native document, with what is offered of it.
        tools: The operations as tools, by `METHOD /path`, in the order of the document.

    Raises:
        ToolError: The document is none, or something is said of an operation, a tag or a scheme
            that it does not have.
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
        needs_approval: bool | Sequence[str] = False,
        repeatable: bool | Sequence[str] = False,
        headers: Mapping[str, str] | None = None,
        trusted_hosts: Sequence[str] = (),
        timeout: float = 30.0,
        max_response_bytes: int = 10 << 20,
        validate_responses: bool = False,
    ) -> None:
        document = _written(document)
        if not isinstance(timeout, int | float) or not timeout > 0:
            raise ToolError(f"timeout must be more than 0 seconds: got {timeout!r}")
        if not max_response_bytes > 0:
            raise ToolError(f"max_response_bytes must be more than 0: got {max_response_bytes!r}")
        whole = Document(document.content)
        _warn(whole, whole.notes())
        found = _found(whole, {} if handlers is None else handlers)
        names = whole.select(_texts("include", include), _texts("tags", tags), read_only)
        if handlers is not None and client is None:
            names = [name for name in names if name in found]
        names = _readable(whole, names)
        approved = _meant(whole, names, "needs_approval", needs_approval)
        repeated = _meant(whole, names, "repeatable", repeatable)
        traits = _all_traits(names, found, approved, repeated)
        self.document: Document = whole.only(names, to_json(traits))
        _warn_of(self.document)
        servers = None
        if any(name not in found for name in names):
            trusted = _texts("trusted_hosts", trusted_hosts)
            servers = Servers(self.document, client, server, document.url, trusted)
            secret = bool(auth or headers)
            _warn(self.document, servers.untrusted(names) if secret else [])
        self.document = _marked(self.document, whole, servers)
        self._handlers = {name: found[name] for name in names if name in found}
        self._sent: Client | None = None
        if servers is not None:
            self._sent = Client(
                self.document,
                client,
                secrets=check_auth(auth or {}, self.document),
                headers=check_headers(headers or {}),
                servers=servers,
                timeout=timeout,
                max_bytes=max_response_bytes,
                validates=validate_responses,
            )
        self.tools: dict[str, Tool[..., Any]] = {}
        for name in names:
            asks, repeats = name in approved, name in repeated
            if name in self._handlers:
                self.tools[name] = HandlerTool(name, self._handlers[name], asks=asks)
            elif self._sent is not None:
                self.tools[name] = OperationTool(
                    name, self.document, self._sent, timeout=timeout, asks=asks, repeats=repeats
                )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], **options: Unpack[Options]) -> Self:
        """Take a document that is at hand as a dict; see `OpenAPI` for the options."""
        return cls(document, **options)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Unpack[Options]) -> Self:
        """Read a document from a file, JSON or YAML; see `OpenAPI` for the options.

        Files that it refers to are read too, where they are in its folder or below.

        Raises:
            OSError: The file can't be read.
            ToolError: It is neither, or as `OpenAPI` raises.
        """
        try:
            return cls(_Written(with_files(Path(path))), **options)
        except ToolError as error:
            raise ToolError(f"{Path(path).name}: {error}") from None

    @classmethod
    def from_url(cls, url: str, **options: Unpack[Options]) -> Self:
        """Fetch a document, JSON or YAML; see `OpenAPI` for the options.

        Servers that it names by a path alone are those that it was fetched from. It is fetched at
        once, which blocks, and without the client.

        Raises:
            ToolError: It can't be fetched, or as `OpenAPI` raises.
        """
        content, found_at = fetched(url)
        return cls(_Written(content, found_at), **options)

    @classmethod
    def from_app(
        cls,
        app: Any,
        *,
        document: Mapping[str, Any] | None = None,
        **options: Unpack[AppOptions],
    ) -> Self:
        """Offer an ASGI app, whose operations are carried out in this process.

        The app runs on the event loop of whoever calls, inside of its lifespan, which begins with
        the first call on a loop and ends with `close`, `aclose` or the loop.

        Args:
            app: The app.
            document: Default: what its `openapi()` returns (FastAPI), else its `/openapi.json`.
            options: As for `OpenAPI`, without `client` and `server`.

        Raises:
            ToolError: The app has no document, or as `OpenAPI` raises.
        """
        if unfit := {"client", "server"} & options.keys():
            raise ToolError(f"an app in this process has no {' or '.join(sorted(unfit))}")
        return cls(document_of(app) if document is None else document, client=App(app), **options)

    def request(self, name: str, arguments: Mapping[str, Any]) -> PlannedRequest:
        """Return the request that a call would send, without secrets. Nothing is sent.

        Args:
            name: `"METHOD /path"` or an `operationId`.
            arguments: As a model gives them.

        Raises:
            ToolError: The document has no such operation.
            ValueError: The arguments are not as the document says, or can't be sent.
        """
        operation = _only(self.document, name)
        checked = self._tool_set.check(operation, to_json(dict(arguments)))
        base = "" if self._sent is None else self._sent.servers.base(operation)
        planned = self.document.request(operation, to_json(checked), base, [])
        return PlannedRequest(*planned)

    def as_tools(self) -> Sequence[Tool[..., Any]]:
        """Return the operations as tools, in the order of the document."""
        return list(self.tools.values())

    @cached_property
    def _tool_set(self) -> ToolSet:
        return ToolSet([], [self.document])

    @property
    def document_json(self) -> str:
        """The document with the offered operations only, as JSON text."""
        return self.document.to_json()

    async def aclose(self) -> None:
        """End what was begun for it: an app's lifespan, a client of its own."""
        if self._sent is not None:
            await self._sent.aclose()

    def close(self) -> None:
        """End what was begun for it, from sync code."""
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


class _Written(dict[str, Any]):
    """A document that is still text, and where it was found."""

    def __init__(self, content: bytes, url: str | None = None) -> None:
        super().__init__()
        self.content = content
        self.url = url


def _written(document: Mapping[str, Any]) -> _Written:
    if isinstance(document, _Written):
        return document
    if not isinstance(document, Mapping):
        kind = type(document).__name__
        raise ToolError(f"an OpenAPI document must be an object: got {kind}")
    return _Written(to_json(document).encode())


def _found(document: Document, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """Return the handlers by `METHOD /path`."""
    if not isinstance(handlers, Mapping):
        kind = type(handlers).__name__
        raise ToolError(f"handlers must be a dict of functions by operation: got {kind}")
    found: dict[str, Handler] = {}
    for key, handler in handlers.items():
        name = _only(document, key)
        if name in found:
            raise ToolError(f"the operation '{name}' has two handlers")
        found[name] = handler
    return found


def _marked(document: Document, whole: Document, servers: Servers | None) -> Document:
    """Return the document marked with what was left out of it and where its requests go."""
    in_process = f"//in-process:{document.title()}"
    return document.marked(whole, in_process if servers is None else servers.address(in_process))


def _readable(document: Document, names: list[str]) -> list[str]:
    """Leave out the operations that can't be read whole, with a warning.

    Raises:
        ToolError: No other is left.
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
        logging.getLogger("callslip.openapi").warning(
            "the document '%s': %s", document.title(), told
        )


def _warn_of(document: Document) -> None:
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
    logging.getLogger("callslip.openapi").warning(
        "the document '%s' uses parameters in paths that it does not declare, which are taken as "
        "required strings: %s%s",
        document.title(),
        shown,
        more,
    )


def _meant(
    document: Document,
    names: Sequence[str],
    option: str,
    said: bool | Sequence[str],  # noqa: FBT001  # not one, but a choice
) -> set[str]:
    """Return the operations that an option means."""
    if isinstance(said, bool):
        return set(names) if said else set()
    patterns = _texts(option, said)
    return set(document.select(patterns, [], read_only=False)) if patterns else set()


def _only(document: Document, key: str) -> str:
    names = document.named(key)
    if not names:
        near = document.nearest(key)
        advice = f": did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
        raise ToolError(f"the document has no operation '{key}'{advice}")
    if len(names) > 1:
        raise ToolError(f"the document has several operations '{key}': {', '.join(names)}")
    return names[0]


def _all_traits(
    names: Sequence[str],
    found: Mapping[str, Handler],
    approved: Collection[str],
    repeated: Collection[str],
) -> dict[str, dict[str, Any]]:
    traits = {
        name: _traits(found.get(name), asks=name in approved, repeats=name in repeated)
        for name in names
    }
    return {name: said for name, said in traits.items() if said}


def _traits(handler: Handler | None, *, asks: bool, repeats: bool) -> dict[str, Any]:
    """Return what the core is told of an operation beside what the document says."""
    traits: dict[str, Any] = {}
    if isinstance(handler, Tool):
        traits = {
            "effect": handler.effect,
            "readonly": handler.readonly,
            "repeatable": handler.repeatable,
        }
        asks = asks or handler.needs_approval
    if repeats:
        traits["repeatable"] = True
    return {**traits, "needs_approval": True} if asks else traits


def _texts(option: str, texts: Sequence[str]) -> list[str]:
    is_list = isinstance(texts, Sequence) and not isinstance(texts, str)
    if not is_list or not all(isinstance(text, str) for text in texts):
        raise ToolError(f"{option} must be a list of strings: got {texts!r}")
    return list(texts)
