"""OpenAI's chat completions, and the many servers that speak them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, cast

from callslip.errors import UsageError
from callslip.models._clients import is_async_create
from callslip.models._reply import Messages

__all__ = ["GrammarForm", "OpenAIModel"]

GrammarForm: TypeAlias = Literal["gbnf", "lark", "json_schema"]
"""How a server takes a grammar: `"gbnf"` as llama.cpp's `grammar` field; `"lark"` in the same
field, for a llama.cpp built with llguidance; `"json_schema"` as OpenAI's `response_format`."""

_FORMS = ("gbnf", "lark", "json_schema")
_LARK_MARK = "%llguidance"


class OpenAIModel:
    """A model behind `client.chat.completions.create`, sync or async; made by `as_model`.

    A call returns the client's own result, an awaitable for an async client; errors of the client
    go through unchanged.

    Args:
        create: The client's method, or a function with its parameters.
        model: The model's name at the server.
        stream: Ask for a streamed reply, so that it can be stopped early. Default true.
        usage: Ask for the token counts of a streamed reply; false for a server that refuses
            `stream_options`. Default true.
        grammar: The form in which the server takes a grammar; `None` (default) if it takes none.
        **options: Parameters of every request, as the client names them (`temperature`,
            `extra_body`, ...). They win over what a run offers; `None` means never sent, so
            `stop=None` suits a server that refuses `stop`. With `max_completion_tokens` here no
            `max_tokens` is sent.

    Attributes:
        model: The model's name.
        accepts: The keywords it takes from a run.
        grammar_form: As `grammar`.
        is_async: Whether the client is async.

    Raises:
        UsageError: An unknown form of grammar, or an option that is not the caller's to set.
    """

    def __init__(
        self,
        create: Callable[..., object],
        *,
        model: str,
        stream: bool = True,
        usage: bool = True,
        grammar: GrammarForm | None = None,
        **options: object,
    ) -> None:
        if grammar is not None and grammar not in _FORMS:
            raise UsageError(f"expected one of {', '.join(_FORMS)} as grammar: got {grammar!r}")
        if "messages" in options:
            raise UsageError("the messages come from the run: put text into the prompt instead")
        self._create = create
        self._stream = stream
        self._usage = usage
        self._options = options
        self.model = model
        self.grammar_form = grammar
        self.is_async = is_async_create(create)
        taken = {"stop", "seed", "max_tokens"} - options.keys()
        if options.get("max_completion_tokens") is not None:
            taken.discard("max_tokens")
        self.accepts = frozenset(taken | ({"grammar"} if grammar else set()))

    def __call__(
        self,
        messages: Messages,
        *,
        stop: Sequence[str] | None = None,
        seed: int | None = None,
        max_tokens: int | None = None,
        grammar: object = None,
    ) -> object:
        """Ask for the reply to `messages`.

        Args:
            messages: The transcript.
            stop: Texts at which the reply ends.
            seed: For repeatable sampling, where the server can.
            max_tokens: The longest reply, in tokens.
            grammar: What the reply may be: text in the form `grammar_form`, or an object that has
                it as its attribute of that name. A JSON Schema may also be a dict.

        Raises:
            UsageError: The grammar does not come in that form.
        """
        request: dict[str, object] = {
            "stop": list(stop) if stop else None,
            "seed": seed,
            "max_tokens": max_tokens,
        }
        request = {name: value for name, value in request.items() if name in self.accepts}
        request.update(self._options)
        if grammar is not None and self.grammar_form is not None:
            _add_grammar(request, grammar, self.grammar_form)
        if self._stream:
            request["stream"] = True
            if self._usage:
                request.setdefault("stream_options", {"include_usage": True})
        sent = {name: value for name, value in request.items() if value is not None}
        return self._create(
            model=self.model, messages=[dict(message) for message in messages], **sent
        )

    def __repr__(self) -> str:
        return f"OpenAIModel(model={self.model!r}, accepts={sorted(self.accepts)})"


def _add_grammar(request: dict[str, object], grammar: object, form: GrammarForm) -> None:
    grammar = getattr(grammar, form, grammar)
    if form == "json_schema":
        if isinstance(grammar, str):
            grammar = json.loads(grammar)
        if isinstance(grammar, Mapping):
            named = {"name": "reply", "strict": True, "schema": grammar}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
            return
    elif isinstance(grammar, str):
        if form == "lark" and not grammar.startswith(_LARK_MARK):
            grammar = f"{_LARK_MARK} {{}}\n{grammar}"
        body = cast("Mapping[str, object]", request.get("extra_body") or {})
        request["extra_body"] = {**body, "grammar": grammar}
        return
    raise UsageError(
        f"expected a grammar in the form {form}: got {type(grammar).__qualname__}: not every "
        "protocol has every form"
    )
