"""Models that receive a request as its client has sent it, with the replies that were refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from callslip.models import Message, Messages, ToolChoice, ToolForm
from callslip.models._attempt import Attempt, Attempts, report_reply
from callslip.models._call import ModelCall
from callslip.models._wrapper import Wrapper
from callslip.parts import PartKind

__all__ = ["AsGiven", "Given"]

_OPTIONS = frozenset({"max_tokens", "run_id", "seed", "stop"})
_TOOLS = frozenset({"tools", "tool_choice"})


@dataclass(frozen=True, slots=True)
class Given:
    """A request of a client.

    Attributes:
        messages: The conversation, as a native run has it.
        count: The messages of the run that stand for it.
        offer: The tools and the choice that are sent in place of those of the run; `None` for
            those of the run.
        is_plain: Whether the request has no tools.
    """

    messages: Sequence[Message] = ()
    count: int = 0
    offer: tuple[tuple[ToolForm, ...], ToolChoice] | None = None
    is_plain: bool = False


class AsGiven(Wrapper):
    """A model that takes tools, for runs of one request.

    The run has the conversation as text, for its log. The model receives it as the client has sent
    it. Replies that were refused follow as the run has them.

    Args:
        model: The model.
        given: The request.
    """

    def __init__(self, model: object, given: Given) -> None:
        super().__init__(model)
        self._given = given
        self.accepts = (self.accepts & _OPTIONS) | _TOOLS
        # The conversation of a client is not shortened: the client gets the error.
        self.context = self.grammar_form = self.bounds = None

    def _attempts(self, attempt: Attempt) -> Attempts:
        """Yield the attempts of the model, each with the messages of the request."""
        inner = self._calls[0].attempts(replace(attempt, call=self._calls[0]))
        try:
            made = next(inner)
            while True:
                try:
                    yield replace(made, call=self._sent(made.call))
                except Exception as error:  # noqa: BLE001  # the wrappers inside decide
                    made = inner.throw(error)
                else:
                    report_reply(inner)
                    return
        finally:
            inner.close()

    def _leaves(self) -> list[ModelCall]:
        return [self._sent(leaf) for leaf in super()._leaves()]

    def _sent(self, call: ModelCall) -> ModelCall:
        return ModelCall(_Sent(call, self._given))


class _Sent:
    """A model without wrappers, with the messages of a request."""

    def __init__(self, call: ModelCall, given: Given) -> None:
        self._call = call
        self._given = given
        self.accepts = (call.accepts & _OPTIONS) | _TOOLS
        self.is_async = call.is_async
        self.gate = call.gate
        self.model, self.provider = call.known_name

    @property
    def parts(self) -> frozenset[PartKind]:
        """The kinds of images and files that the model takes."""
        return self._call.parts

    def report_unread(self, _: Messages) -> None:
        """Report the images and files of the request, which the model may want to know unread."""
        self._call.report_unread(list(self._given.messages))

    def __call__(self, messages: Messages, **options: object) -> object:
        """Send the request, and the replies that were refused."""
        given = self._given
        refused = [messages[at] for at in range(given.count, len(messages))]
        if given.is_plain:
            options = {name: value for name, value in options.items() if name not in _TOOLS}
        elif given.offer is not None:
            tools, choice = given.offer
            options |= {"tools": tools, "tool_choice": choice}
        return self._call([*given.messages, *refused], **options)
