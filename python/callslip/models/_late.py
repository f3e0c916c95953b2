"""Models whose client is made at their first request, so that an agent needs no key to exist."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Final, Self
from weakref import WeakKeyDictionary

from callslip._base import _lazy
from callslip._base.failure import message_of
from callslip._threads.current_loop import is_in_loop
from callslip.errors import UsageError
from callslip.models._client_model import ClientModel
from callslip.models._grammar_forms import GrammarForm
from callslip.models._part_shapes import CHAT, Shapes
from callslip.models._real_models import check_real_models
from callslip.models._reply import Messages
from callslip.parts import PartKind

__all__ = ["SERVICES", "LateModel", "check_installed", "client_of"]

SERVICES: Final[Mapping[str, str]] = {"openai": "AsyncOpenAI", "anthropic": "AsyncAnthropic"}
"""The class of the client of each service that has a name, in the package of that name."""


def client_of(service: str, base_url: str | None = None) -> object:
    """Make the client of a service, with the key in its environment variable.

    Args:
        service: A key of `SERVICES`.
        base_url: The address of the server. Default: that of the service.

    Raises:
        UsageError: The package is not installed, or the client cannot be made, for example without
            a key.
    """
    check_installed(service)
    make: Callable[..., object] = getattr(import_module(service), SERVICES[service])
    try:
        return make(base_url=base_url)
    except Exception as error:  # each package has errors of its own, as for a missing key
        raise UsageError(f"the client of {service} cannot be made: {error}") from error


def check_installed(service: str) -> None:
    """Check that the package of a service is installed, without an import of it.

    Raises:
        UsageError: It is not.
    """
    if find_spec(service) is None:
        raise UsageError(
            f"the package {service} is not installed: pass callslip[{service}] to pip install"
        )


class LateModel(ClientModel):
    """A model whose client is made at its first request; made by `as_model`.

    An async client belongs to the event loop that it first ran on, so there is one for each loop.

    Args:
        make: Makes the client.
        connect: Makes the model of a client.
        provider: The provider, if it is known before. Default: `None`.
        is_async: Whether the client is known to be async. Default: `False`.
        options: As for `as_model`.

    Attributes:
        parts: The kinds of images and files that are sent. Before the first request they are those
            that most services take, unless the program has said it.
    """

    _SHAPES: ClassVar[Shapes] = CHAT
    _PARTS: ClassVar[frozenset[PartKind]] = frozenset({"image", "pdf"})
    _FORMS: ClassVar[tuple[GrammarForm, ...]] = (
        "auto",
        "gbnf",
        "lark",
        "vllm",
        "sglang",
        "fireworks",
        "json_schema",
    )
    _NEEDS_NAME: ClassVar[bool] = False
    # Most clients do. The first request refuses a client without tools.
    _TAKES_TOOLS = True

    def __init__(
        self,
        make: Callable[[], object],
        connect: Callable[[object], ClientModel],
        *,
        provider: str | None = None,
        is_async: bool = False,
        **options: Any,
    ) -> None:
        self._own_provider, self._own_parts = provider, frozenset[PartKind]()
        self._make, self._connect = make, connect
        self._lock = threading.Lock()
        self._of_loops: WeakKeyDictionary[Any, ClientModel] = WeakKeyDictionary()
        self._last: ClientModel | None = None
        super().__init__(make, is_async=is_async, **options)

    def __getstate__(self) -> dict[str, object]:
        own = ("_lock", "_of_loops", "_last")
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock, self._of_loops, self._last = threading.Lock(), WeakKeyDictionary(), None

    @property
    def parts(self) -> frozenset[PartKind]:
        """The kinds of images and files that are sent."""
        return self._own_parts if self._last is None else self._last.parts

    @parts.setter
    def parts(self, parts: frozenset[PartKind]) -> None:
        self._own_parts = parts

    def _find_provider(self) -> str | None:
        return self._own_provider

    def __call__(self, messages: Messages, **offered: object) -> object:
        """Request the reply to `messages`. Arguments as of `ClientModel`.

        Raises:
            UsageError: The client cannot be made, as without a key, or it takes no tools and the
                run has some.
        """
        check_real_models(self)
        model = self._connected()
        if offered.get("tools") is not None and not model._TAKES_TOOLS:
            raise UsageError(
                f"expected a model that takes tools: got {type(model).__name__}: pass "
                'protocol="react"'
            )
        return model(messages, **offered)

    def _connected(self) -> ClientModel:
        """Return the model of this event loop's client, made now if there is none."""
        loop = _lazy.asyncio.get_running_loop() if is_in_loop() else None
        with self._lock:
            made = self._last if loop is None else self._of_loops.get(loop)
            if made is None:
                made = self._connect(self._made_client())
                if loop is not None:
                    self._of_loops[loop] = made
            self._last = made
        return made

    def _made_client(self) -> object:
        try:
            return self._make()
        except UsageError:
            raise
        except Exception as error:
            name = getattr(self._make, "__qualname__", type(self._make).__qualname__)
            raise UsageError(
                f"expected {name}() to make a client: got {type(error).__name__}: "
                f"{message_of(error)}; pass it a key, or use agent.override(model=…)"
            ) from error

    def report_unread(self, messages: Messages) -> None:
        """As of `ClientModel`."""
        if self._last is not None:
            self._last.report_unread(messages)

    def report_violation(self, code: str, grammar: object) -> None:
        """As of `ClientModel`."""
        if self._last is not None:
            self._last.report_violation(code, grammar)
            self.grammar_form = self._last.grammar_form

    def without_retries(self) -> Self:
        """Return this model with clients that do not retry by themselves."""

        def connect(client: object) -> ClientModel:
            model = self._connect(client)
            without = getattr(model, "without_retries", None)
            return model if without is None else without()

        other = self._like_this()
        other._connect, other._lock = connect, threading.Lock()
        other._of_loops, other._last = WeakKeyDictionary(), None
        return other
