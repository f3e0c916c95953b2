"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from callslip.errors import UsageError
from callslip.models._clients import is_async_create
from callslip.models._reply import Message, Messages

__all__ = ["AnthropicModel"]

_DEFAULT_MAX_TOKENS = 4096


class AnthropicModel:
    """A model behind `client.messages.create`, sync or async; made by `as_model`.

    System messages go into the request's `system`; neighbours of one role are joined and empty
    messages left out, as the API wants turns that alternate and say something. A call returns the
    client's own result, an awaitable for an async client; errors of the client go through
    unchanged.

    Args:
        create: The client's method.
        model: The model's name.
        stream: Ask for a streamed reply, so that it can be stopped early. Default true.
        **options: Parameters of every request, as the client names them (`max_tokens`,
            `thinking`, `cache_control`, ...). They win over what a run offers; `None` means never
            sent. Without one and without an offer `max_tokens` is 4096 (the API requires it).

    Attributes:
        model: The model's name.
        accepts: The keywords it takes from a run: `stop` and `max_tokens`.
        grammar_form: `None`: the API takes no grammar.
        is_async: Whether the client is async.

    Raises:
        UsageError: An option that is not the caller's to set, or that the API does not have.
    """

    grammar_form = None

    def __init__(
        self,
        create: Callable[..., object],
        *,
        model: str,
        stream: bool = True,
        **options: object,
    ) -> None:
        for name in ("messages", "system"):
            if name in options:
                raise UsageError(f"the {name} come from the run: put text into the prompt instead")
        if options.pop("grammar", None) is not None:
            raise UsageError("anthropic clients take no grammar: leave it out")
        # The run's word for it, so that `stop=None` means the same for every client.
        if "stop" in options:
            options.setdefault("stop_sequences", options.pop("stop"))
        self._create = create
        self._stream = stream
        self._options = options
        self.model = model
        self.is_async = is_async_create(create)
        taken = {"stop": "stop_sequences", "max_tokens": "max_tokens"}
        self.accepts = frozenset(name for name, sent in taken.items() if sent not in options)

    def __call__(
        self,
        messages: Messages,
        *,
        stop: Sequence[str] | None = None,
        max_tokens: int | None = None,
    ) -> object:
        """Ask for the reply to `messages`.

        Args:
            messages: The transcript.
            stop: Texts at which the reply ends; the API takes none of white space alone.
            max_tokens: The longest reply, in tokens.
        """
        system, turns = _split(messages)
        request: dict[str, object] = {
            "system": system or None,
            "stop_sequences": [text for text in stop or () if text.strip()] or None,
            "max_tokens": _DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens,
        }
        request.update(self._options)
        if self._stream:
            request["stream"] = True
        sent = {name: value for name, value in request.items() if value is not None}
        return self._create(model=self.model, messages=turns, **sent)

    def __repr__(self) -> str:
        return f"AnthropicModel(model={self.model!r}, accepts={sorted(self.accepts)})"


def _split(messages: Messages) -> tuple[str, list[Message]]:
    """The system text, and the turns as the API takes them."""
    system: list[str] = []
    turns: list[Message] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if not content.strip():
            continue
        if role == "system":
            system.append(content)
        elif turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{content}"
        else:
            turns.append({"role": role, "content": content})
    return "\n\n".join(system), turns
