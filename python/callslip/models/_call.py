"""A model prepared for a run: its signature is read once, not at every call."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from callslip._threads.gate import Gate
from callslip.errors import UsageError
from callslip.models._attempt import Attempt, Attempts, HasAttempts
from callslip.models._bounds import Bounds
from callslip.models._clients import find_client
from callslip.models._context import CountTokens, calls_with_context, context_of, counter_of
from callslip.models._parts import parts_of, taken_messages
from callslip.models._reply import Messages
from callslip.parts import PartKind

__all__ = ["OFFERED", "ModelCall"]

OFFERED = frozenset({"stop", "seed", "max_tokens", "grammar", "run_id", "tools", "tool_choice"})
_BY_NAME = frozenset({"grammar", "run_id", "tools", "tool_choice"})
"""The keywords that a run may offer to a model."""


class ModelCall:
    """A model, and the way to call it.

    The model receives a keyword of `OFFERED` if its signature names it. A `**kwargs` receives
    `stop`, `seed` and `max_tokens`, but not `grammar`, whose form a model has to know, nor
    `run_id`, `tools` and `tool_choice`, which a client would send to its server. A parameter of one
    of these names that is
    annotated with a type of another library belongs to that library, and so does one without an
    annotation of a bound method (`llama.create_chat_completion`): both receive nothing. A method
    accepts ours with the annotation `object`, `str` or callslip's own type. Keywords
    bound by `functools.partial` stay as bound. A model object may declare all
    this in attributes `accepts` (a set of names), `grammar_form`, `bounds` and `is_async`, and the
    size of its context in `context` and `count_tokens`, what it takes beside text in `parts`, and
    its name for the log in `model` and `provider`.

    Args:
        model: A function, bound method, `functools.partial` or object with `__call__`; sync or
            async; callable with the messages as its one positional argument.

    Attributes:
        model: The callable itself.
        accepts: The names of the keywords that the model accepts.
        grammar_form: The form of grammar that it accepts: `"gbnf"` (default), `"lark"`,
            `"json_schema"`; `None` if it accepts none.
        bounds: Limits on the text at one place under a grammar; `None` (default) for no limits.
        context: The tokens that the messages and the reply may have together; `None` (default) if
            that is not known.
        count_tokens: Returns the number of tokens of a text; `None` (default) if they are
            estimated.
        is_async: `True` if a call is known to return at once, with a coroutine or an async
            iterator. With `False`, only the result of a call shows it.
        gate: The gate of a `BoundedModel`, which the caller holds until the reply has been read;
            else `None`.
        is_wrapped: Whether a reply may take several attempts, or terms that the caller keeps to:
            use `attempts`.

    Raises:
        UsageError: Not callable, a class instead of an instance, a client instead of a model, or
            not callable with the messages alone.
    """

    __slots__ = (
        "_call",
        "_parts",
        "_required",
        "accepts",
        "bounds",
        "context",
        "count_tokens",
        "gate",
        "grammar_form",
        "is_async",
        "is_wrapped",
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
        self.context: int | None = context_of(_unbound(model))
        self.count_tokens: CountTokens | None = counter_of(_unbound(model))
        known = getattr(model, "is_async", None)
        self.is_async: bool = known if isinstance(known, bool) else _is_async(model)
        gate = getattr(_unbound(model), "gate", None)
        self.gate: Gate | None = gate if isinstance(gate, Gate) else None
        self._parts: frozenset[PartKind] | None = None
        self.is_wrapped: bool = self.gate is not None or isinstance(model, HasAttempts)

    @property
    def parts(self) -> frozenset[PartKind]:
        """The kinds of images and files that the model takes now: it may learn of a refusal."""
        return parts_of(_unbound(self.model)) if self._parts is None else self._parts

    @parts.setter
    def parts(self, parts: frozenset[PartKind]) -> None:
        self._parts = parts

    @property
    def takes_tools(self) -> bool:
        """Whether it takes tools of a run as its service's own."""
        return {"tools", "tool_choice"} <= self.accepts

    @property
    def hides_context(self) -> bool:
        """Whether it is a function without a context that calls a model with one."""
        return self.context is None and calls_with_context(_unbound(self.model))

    def attempts(self, attempt: Attempt | None = None) -> Attempts:
        """Return the attempts at one reply.

        Args:
            attempt: The terms of the wrappers around this model; `None` if there are none.
        """
        attempt = Attempt(self) if attempt is None else attempt
        if isinstance(self.model, HasAttempts):
            return self.model._attempts(attempt)
        return self._attempt_once(attempt)

    def _attempt_once(self, attempt: Attempt) -> Attempts:
        yield replace(attempt, call=self, gate=attempt.gate or self.gate)

    def leaves(self) -> list[ModelCall]:
        """Return the models inside of wrappers; this one if it is no wrapper."""
        return self.model._leaves() if isinstance(self.model, HasAttempts) else [self]

    def without_retries(self) -> ModelCall:
        """Return the model with a client that does not retry by itself, if it offers that."""
        make = getattr(self.model, "without_retries", None)
        return ModelCall(make()) if inspect.ismethod(make) else self

    @property
    def is_scripted(self) -> bool:
        """Whether a model inside of wrappers says that its replies are written before the run."""
        return any(getattr(one.model, "is_scripted", None) is True for one in self.leaves())

    @property
    def value_level(self) -> str | None:
        """The level of values that it asks for, the strictest of those inside; `None` for none."""
        asked = [getattr(_unbound(one.model), "value_level", None) for one in self.leaves()]
        return next((level for level in ("trusted", "strict", "stated") if level in asked), None)

    @property
    def least_certainty(self) -> tuple[float, float] | None:
        """How sure the model must be of the tools that it calls; the first of those inside."""
        asked = [getattr(_unbound(one.model), "least_certainty", None) for one in self.leaves()]
        return next((least for least in asked if isinstance(least, tuple)), None)

    @property
    def needs_examples(self) -> bool:
        """Whether one of the models inside says that it does as it has seen it done."""
        return any(
            getattr(_unbound(one.model), "needs_examples", None) is True for one in self.leaves()
        )

    @property
    def name(self) -> str:
        """The name of the model at its server, or else of the function or class."""
        inner = _unbound(self.model)
        name = getattr(inner, "model", None)
        return name if isinstance(name, str) else _name(inner)

    @property
    def known_name(self) -> tuple[str | None, str | None]:
        """The name of the model at its server and that of its provider, each `None` if unknown."""
        inner = _unbound(self.model)
        model, provider = getattr(inner, "model", None), getattr(inner, "provider", None)
        return (
            model if isinstance(model, str) else None,
            provider if isinstance(provider, str) else None,
        )

    def __call__(self, messages: Messages, **options: object) -> object:
        """Call the model, with those of the offered keywords that it takes and that are not None.

        Returns:
            The model's result as it is: await it if it is awaitable, then `open_result` it.

        Raises:
            Exception: Whatever the model raises, unchanged.
        """
        # The kinds that it takes need not be known where there is nothing but text.
        if getattr(messages, "has_parts", True):
            messages = taken_messages(messages, self.parts)
        if not options and not self._required:
            return self._call(messages)
        accepts = self.accepts
        passed = {k: v for k, v in options.items() if v is not None and k in accepts}
        for name in self._required:
            passed.setdefault(name, None)
        return self._call(messages, **passed)

    def report_unread(self, messages: Messages) -> None:
        """Report messages with images and files, where the model wants to know those unread."""
        report = getattr(_unbound(self.model), "report_unread", None)
        if report is not None:
            report(messages)

    def report_violation(self, code: str, grammar: object) -> None:
        """Report the violation of a reply to a call with a grammar, where the model wants it."""
        report = getattr(_unbound(self.model), "report_violation", None)
        if report is not None:
            report(code, grammar)

    @property
    def plain(self) -> Callable[[Messages], object] | None:
        """The function to call with the messages alone; `None` if it needs further arguments."""
        return None if self._required else self._call

    def __repr__(self) -> str:
        return f"ModelCall({self.model!r}, accepts={sorted(self.accepts)})"


def _check_callable(model: object) -> None:
    if inspect.isclass(model):
        raise UsageError(
            f"expected a model: got the class {model.__qualname__}: pass an instance of it"
        )
    # A `Llama` can be called too, but with a prompt.
    is_llama = hasattr(model, "create_chat_completion") and hasattr(model, "create_completion")
    if (is_llama or not callable(model)) and find_client(model) is not None:
        raise UsageError(
            f"expected a model: got the client {_name(model)}: wrap it with "
            'as_model(client, model="...")'
        )
    if not callable(model):
        raise UsageError(
            f"expected a callable from messages to text as the model: got {_name(model)}: "
            f"{_advice(model)}"
        )


def _advice(given: object) -> str:
    """Return a hint for an object that is no model."""
    if isinstance(given, str):
        name = given if ":" in given else f"openai:{given}"
        return f"pass as_model({name!r}), for example"
    if isinstance(given, list | tuple):
        return "pass one model, and functions as tools=[…]"
    return 'pass a callable, or wrap a client with as_model(client, model="...")'


def _inspect(model: Callable[..., object]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the keywords of `OFFERED` that the model accepts, and those without a default."""
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
        and (one.name not in _BY_NAME or _is_ours(one, model))
        and one.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    }
    required = tuple(name for name, needed in named.items() if needed)
    try:
        signature.bind(None, **dict.fromkeys(required))
    except TypeError as error:
        takes_more = bool(signature.parameters)
        hint = (
            "bind the others with functools.partial" if takes_more else "add a parameter for them"
        )
        raise UsageError(
            "expected a model that can be called with the messages alone: got "
            f"{_name(model)}{signature}: {error}; {hint}"
        ) from None
    taken = set(named)
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        taken |= OFFERED - _BY_NAME
    inner: object = model
    while isinstance(inner, functools.partial):
        taken -= inner.keywords.keys()
        inner = inner.func
    return frozenset(taken), required


# The words of an annotation that accepts our grammars, or our ids of runs.
_OURS = frozenset({"Any", "Grammar", "None", "Optional", "Sequence", "ToolChoice", "ToolForm"})
_OURS |= {"Union", "list", "object", "str", "tuple"}
_SCOPES = frozenset({"_core", "_items", "abc", "callslip", "collections", "models", "protocols"})
_SCOPES |= {"t", "typing"}


def _is_ours(parameter: inspect.Parameter, model: object) -> bool:
    """Whether a parameter of this name accepts what is ours, and not that of another library."""
    if parameter.name == "grammar" and getattr(model, "grammar_form", None) is not None:
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
    name = getattr(value, "__qualname__", None)
    return name if isinstance(name, str) and name else type(value).__qualname__
