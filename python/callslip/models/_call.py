"""A model made ready for a run: its signature is looked at once, not at every call."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import cast

from callslip._threads.gate import Gate
from callslip.errors import UsageError
from callslip.models._bounds import Bounds
from callslip.models._clients import find_client
from callslip.models._reply import Messages

__all__ = ["OFFERED", "ModelCall"]

OFFERED = frozenset({"stop", "seed", "max_tokens", "grammar"})
"""The keywords that a run may offer to a model."""


class ModelCall:
    """A model with what is known about calling it.

    A keyword of `OFFERED` reaches the model if its signature names it. A `**kwargs` takes `stop`,
    `seed` and `max_tokens`; not `grammar`, whose form a model must know, so it names that one.
    A `grammar` that is annotated with another library's type is that library's, and so is one of a
    bound method without an annotation (`llama.create_chat_completion`): neither is given ours. A
    method says with `object`, `str` or callslip's `Grammar` that it takes ours.
    Keywords bound by `functools.partial` stay as bound. A model object may state all this itself,
    in attributes `accepts` (a set of names), `grammar_form`, `bounds` and `is_async`.

    Args:
        model: A function, bound method, `functools.partial` or object with `__call__`; sync or
            async; callable with the messages as its one positional argument.

    Attributes:
        model: The callable itself.
        accepts: The names of the keywords it takes.
        grammar_form: The form of grammar it takes: `"gbnf"` (default), `"lark"`, `"json_schema"`;
            `None` if it takes none.
        bounds: How much it may say at one place under a grammar; `None` (default) for as much as
            it likes.
        is_async: True if a call is known to return at once, with a coroutine or an async
            iterator. False says nothing: only the result tells.
        gate: Of a `BoundedModel`: whoever calls it holds this until the reply has been read to its
            end; else `None`.

    Raises:
        UsageError: Not callable, a class instead of an instance, a client instead of a model, or
            not callable with the messages alone.
    """

    __slots__ = (
        "_call",
        "_required",
        "accepts",
        "bounds",
        "gate",
        "grammar_form",
        "is_async",
        "model",
    )

    model: object

    def __init__(self, model: object) -> None:
        while isinstance(model, ModelCall):
            model = model.model
        _check_callable(model)
        self.model = model
        self._call = cast("Callable[..., object]", model)
        taken, self._required = _inspect(self._call)
        stated = getattr(model, "accepts", None)
        self.accepts: frozenset[str] = frozenset(taken if stated is None else stated)
        self.grammar_form: str | None = None
        if "grammar" in self.accepts:
            self.grammar_form = getattr(model, "grammar_form", None) or "gbnf"
        # An attribute of that name may be anything.
        bounds = getattr(_unbound(model), "bounds", None)
        self.bounds: Bounds | None = bounds if isinstance(bounds, Bounds) else None
        known = getattr(model, "is_async", None)
        self.is_async: bool = known if isinstance(known, bool) else _is_async(model)
        gate = getattr(_unbound(model), "gate", None)
        self.gate: Gate | None = gate if isinstance(gate, Gate) else None

    def __call__(self, messages: Messages, **offered: object) -> object:
        """Call the model, with those of the offered keywords that it takes and that are not None.

        Returns:
            The model's result as it is: await it if it is awaitable, then `open_result` it.

        Raises:
            Exception: Whatever the model raises, unchanged.
        """
        if not offered and not self._required:
            return self._call(messages)
        accepts = self.accepts
        passed = {k: v for k, v in offered.items() if v is not None and k in accepts}
        for name in self._required:
            passed.setdefault(name, None)
        return self._call(messages, **passed)

    @property
    def plain(self) -> Callable[[Messages], object] | None:
        """What a call with the messages alone comes to; `None` where it needs more."""
        return None if self._required else self._call

    def __repr__(self) -> str:
        return f"ModelCall({self.model!r}, accepts={sorted(self.accepts)})"


def _check_callable(model: object) -> None:
    if find_client(model) is not None and not callable(model):
        raise UsageError(
            f"expected a model: got the client {_name(model)}: wrap it with "
            'as_model(client, model="...")'
        )
    if inspect.isclass(model):
        raise UsageError(
            f"expected a model: got the class {model.__qualname__}: pass an instance of it"
        )
    if not callable(model):
        raise UsageError(
            f"expected a callable from messages to text as the model: got {_name(model)}: pass a "
            'callable, or wrap a client with as_model(client, model="...")'
        )


def _inspect(model: Callable[..., object]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The offered keywords that the model takes, and those of them that have no default."""
    try:
        signature = inspect.signature(model)
    except (TypeError, ValueError):  # a builtin without a signature
        return frozenset(), ()
    parameters = list(signature.parameters.values())
    # The first one takes the messages, whatever its name.
    if parameters and parameters[0].kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        parameters = parameters[1:]
    named = {
        one.name: one.default is inspect.Parameter.empty
        for one in parameters
        if one.name in OFFERED
        and (one.name != "grammar" or _is_ours(one, model))
        and one.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    }
    required = tuple(name for name, needed in named.items() if needed)
    try:
        signature.bind(None, **dict.fromkeys(required))
    except TypeError as error:
        raise UsageError(
            "expected a model that can be called with the messages alone: got "
            f"{_name(model)}{signature}: {error}"
        ) from None
    taken = set(named)
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        taken |= OFFERED - {"grammar"}
    inner: object = model
    while isinstance(inner, functools.partial):
        taken -= inner.keywords.keys()
        inner = inner.func
    return frozenset(taken), required


# What the annotation of a parameter that takes our grammars is made of.
_OURS = frozenset({"Any", "Grammar", "None", "Optional", "Union", "object", "str"})
_SCOPES = frozenset({"callslip", "_core", "protocols", "typing", "t"})


def _is_ours(parameter: inspect.Parameter, model: object) -> bool:
    """Whether a parameter named `grammar` takes ours, and not what another library calls one."""
    if getattr(model, "grammar_form", None) is not None:
        return True
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        method = _unbound(model)
        return not inspect.ismethod(method) or method.__name__ == "__call__"
    if not isinstance(annotation, str):
        annotation = (
            getattr(annotation, "__qualname__", None)
            if inspect.isclass(annotation)
            else repr(annotation)
        )
    words = re.findall(r"[A-Za-z_]\w*", str(annotation))
    return all(word.strip("_") in _OURS or word in _SCOPES for word in words)


def _is_async(model: object) -> bool:
    model = _unbound(model)
    return any(
        inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one)
        for one in (model, getattr(type(model), "__call__", None))  # noqa: B004
    )


def _unbound(model: object) -> object:
    while isinstance(model, functools.partial):
        model = model.func
    return model


def _name(value: object) -> str:
    if value is None:
        return "None"
    return getattr(value, "__qualname__", None) or type(value).__qualname__
