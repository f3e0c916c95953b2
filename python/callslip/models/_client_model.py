"""A model behind a client object: what a run offers, under the client's own names."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Self, cast

from callslip._base.failure import message_of, one_line
from callslip._base.options import check_flag, check_text
from callslip._base.redaction import redact_likely_secrets
from callslip.errors import UsageError
from callslip.models._context import check_context
from callslip.models._grammar_forms import (
    GrammarForm,
    check_form,
    excludes_violation,
    grammar_text,
)
from callslip.models._items import FaultItem, ToolChoice, ToolForm
from callslip.models._no_reply import awaited_response, check_body, check_response
from callslip.models._offered import check_messages, check_offered
from callslip.models._part_requests import PartRequest
from callslip.models._part_shapes import Shapes
from callslip.models._parts import check_parts, kinds_of, taken_messages
from callslip.models._real_models import check_real_models
from callslip.models._reply import Messages
from callslip.models._turns import alternating
from callslip.models.native._reading import NativeReader
from callslip.models.native._reply import Offer, native_reply
from callslip.parts import PartKind

__all__ = ["ClientModel"]


class ClientModel:
    """A model behind a client object; made by `as_model`.

    A call returns the client's own result, an awaitable for an async client; for a stream with
    images or files a stream of `ModelChunk`s. Errors of the client are raised unchanged,
    but for a body that is not JSON, which is a `ModelError`. A server
    that takes no images or files is asked again without them, with a warning, and is sent no more.

    Attributes:
        model: The model's name at the server; `None` if the client knows it.
        provider: The provider of the model; `None` if it is not known.
        accepts: The keywords that it accepts from a run.
        grammar_form: The form in which the server accepts a grammar; `None` if it is sent none.
        context: The tokens that the messages and the reply may have together; `None` if that is
            not known.
        is_async: Whether the client is async.
        parts: The kinds of images and files that are sent as parts of a message. Of those that the
            server refuses, none is sent any more.
    """

    # The client's names for the keywords of a run.
    _SENT: Mapping[str, str] = {"stop": "stop", "seed": "seed", "max_tokens": "max_tokens"}
    # What the run or the other parameters of `as_model` decide.
    _DECIDED: ClassVar[tuple[str, ...]] = ("messages",)
    # Those keywords of a run that its API has not.
    _LACKING: ClassVar[tuple[str, ...]] = ()
    _FORMS: ClassVar[tuple[GrammarForm, ...]] = ()
    _NEEDS_NAME: ClassVar[bool] = True
    # The parts that can be sent, and those that are if nothing else is said.
    _SHAPES: ClassVar[Shapes] = {}
    _PARTS: ClassVar[frozenset[PartKind]] = frozenset()
    # Whether its own tool calls are read, where a run offers it tools.
    _TAKES_TOOLS: bool = False
    # Its name in the conventions of OpenTelemetry, if they have one.
    _PROVIDER: ClassVar[str | None] = None

    def __init__(
        self,
        client: Any,
        *,
        model: str | None = None,
        stream: bool = True,
        grammar: GrammarForm | None = None,
        is_async: bool = False,
        context: int | None = None,
        parts: Collection[PartKind] | None = None,
        **options: object,
    ) -> None:
        if model in (None, "") and self._NEEDS_NAME:
            raise UsageError('expected the name of a model: got none: pass model="..."')
        for name in self._DECIDED:
            if name in options:
                raise UsageError(f"`{name}` comes from the run: put text into the prompt instead")
        for name in self._LACKING:
            if options.get(name) is not None:
                raise UsageError(f"expected no {name} for this client: got one; leave it out")
        if model is not None:
            check_text("model", model)
        check_flag("stream", stream)
        check_offered(options)
        check_form(grammar, self._FORMS)
        self._client = client
        self.model = model
        self.provider: str | None = self._find_provider()
        self.grammar_form: GrammarForm | None = grammar
        self.is_async: bool = is_async
        self.context: int | None = check_context(context)
        self.parts: frozenset[PartKind] = self._PARTS if parts is None else self._check(parts)
        # With `()` the program has said it.
        self._is_silent = parts is not None and not self.parts
        self._stream = stream
        self._has_warned = False
        # The run's words, so that `stop=None` means the same for every client.
        self._options = {self._SENT.get(name, name): value for name, value in options.items()}
        taken = {name for name, sent in self._SENT.items() if sent not in self._options}
        taken |= {"grammar"} if grammar else set()
        taken |= {"tools", "tool_choice"} if self._TAKES_TOOLS else set()
        self.accepts: frozenset[str] = frozenset(taken)

    def __call__(self, messages: Messages, **offered: object) -> object:
        """Request the reply to `messages`.

        Args:
            messages: The transcript.
            **offered: The keywords of `accepts`. Others are left out.

        Raises:
            UsageError: The grammar is not of the form `grammar_form`, or no real model may be
                called.
        """
        check_real_models(self)
        check_messages(messages)
        check_offered(offered)
        request = {
            self._SENT[name]: value if name != "stop" else self._stops(cast("Sequence[str]", value))
            for name, value in offered.items()
            if name in self.accepts and name in self._SENT and value is not None
        }
        request.update(self._options)
        sent = {name: value for name, value in request.items() if value is not None}
        if offered.get("grammar") is not None and self.grammar_form is not None:
            self._add_grammar(sent, offered["grammar"])
        messages = taken_messages(messages, self.parts)
        offer = None
        if self._TAKES_TOOLS and offered.get("tools") is not None:
            choice = offered.get("tool_choice") or ToolChoice()
            offer = Offer(
                tuple(cast("Sequence[ToolForm]", offered["tools"])), cast("ToolChoice", choice)
            )
        else:
            messages = alternating(messages)
        if not kinds_of(messages):
            return self._ask(messages, sent, offer)
        return PartRequest(self, lambda taken: self._ask(taken, dict(sent), offer), messages).make()

    def _ask(self, messages: Messages, request: dict[str, object], offer: Offer | None) -> object:
        if offer is None:
            return self._request(messages, request)
        return native_reply(
            lambda: self._send_with_tools(messages, request, offer),
            self._reader(offer),
            self._fault,
            takes_text=not self._is_of_client,
        )

    def _send_with_tools(
        self, messages: Messages, request: dict[str, object], offer: Offer
    ) -> object:
        """Call the client with tools of a run. `request` has the client's names."""
        raise NotImplementedError

    def _reader(self, offer: Offer) -> NativeReader:
        """Return a reader for one reply to a request with tools."""
        raise NotImplementedError

    def _fault(self, error: Exception) -> FaultItem | None:  # noqa: ARG002  # of its children
        """Return what a service says of a call of its model that it could not read itself.

        Returns:
            `None` if the error is another one, which is raised.
        """
        return None

    def _request(self, messages: Messages, request: dict[str, object]) -> object:
        """Call the client, whose methods return a page as text, or fail to read it."""
        try:
            result = self._send(messages, request)
        except ValueError as error:
            check_body(error)
            raise
        is_checked = self._is_of_client
        if hasattr(result, "__await__"):
            return awaited_response(cast("Awaitable[object]", result), is_checked=is_checked)
        return check_response(result) if is_checked else result

    @property
    def _is_of_client(self) -> bool:
        """Whether it calls a method of a client: a function may return text."""
        return getattr(getattr(self._client, "__self__", None), "_client", None) is not None

    def _find_provider(self) -> str | None:
        return self._PROVIDER

    @classmethod
    def _check(cls, parts: Collection[PartKind]) -> frozenset[PartKind]:
        kinds = check_parts(parts)
        if not kinds <= cls._SHAPES.keys():
            known = ", ".join(repr(kind) for kind in cls._SHAPES)
            wanted = f"parts= with some of {known} for this client" if known else _NONE
            raise UsageError(f"expected {wanted}: got {parts!r}")
        return kinds

    def report_unread(self, messages: Messages) -> None:
        """Warn once if the user's images or files are not sent, because the model takes none.

        Args:
            messages: The messages of a run with all their parts.
        """
        if self._is_silent:
            return
        for message in messages:
            for part in message.get("parts", ()):
                is_unread = part.kind in _TELLING and part.kind not in self.parts
                if is_unread and part._part.is_of_user:
                    self._is_silent = True
                    self._warn_unread(part.kind)
                    return

    def _warn_unread(self, kind: PartKind) -> None:
        what = "image" if kind == "image" else "file"
        hint = f"its client is sent no {_TELLING[kind]}"
        if kind in self._SHAPES:
            hint = f"pass parts={_written(self.parts | {kind})} to as_model if it takes "
            hint += _TELLING[kind]
        warnings.warn(f"the model reads a line in place of the {what}: {hint}", stacklevel=2)

    def _stop_sending(self, kinds: frozenset[PartKind], error: Exception) -> None:
        """Send no more parts of some kinds, because of what a server said."""
        # A model that reads no images reads no files either.
        left = frozenset() if "image" in kinds else self.parts - kinds
        # Requests at the same time are refused for the same reason.
        if left == self.parts:
            return
        what = (
            "images and files"
            if "image" in kinds
            else " and ".join(map(_TELLING.__getitem__, kinds))
        )
        self.parts, self._is_silent = left, True
        told = one_line(redact_likely_secrets(message_of(error)))
        warnings.warn(
            f"{self.model or 'the model'} takes no {what}, and reads a line in their place from "
            f"now on: {type(error).__name__}: {told}; pass parts={_written(left)} to as_model",
            stacklevel=2,
        )

    def report_violation(self, code: str, grammar: object) -> None:
        """Report the violation of a whole reply to a request with a grammar.

        A reply that the grammar excludes shows that the server ignores it. There is one warning,
        and later requests have no grammar.

        Args:
            code: The code of the violation.
            grammar: The grammar of the request.
        """
        written = self._write(grammar)
        # A stop sequence may cut a reply anywhere.
        if written is None or self._options.get(self._SENT.get("stop", "")):
            return
        if not excludes_violation(written[0], code):
            return
        self.grammar_form = None
        warnings.warn(
            f"the server of {self.model or 'the model'} ignores the grammar: it returned a reply "
            f"that the grammar excludes ({code}); later requests have no grammar: pass "
            "grammar=None, or the form that the server accepts",
            stacklevel=2,
        )

    def _stops(self, stop: Sequence[str]) -> list[str] | None:
        """Return the stop sequences of a run as the client takes them."""
        return list(stop) or None

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        """Call the client. `request` has the client's names."""
        raise NotImplementedError

    def _add_grammar(self, request: dict[str, object], grammar: object) -> None:
        written = self._write(grammar)
        if written is not None:
            self._put_grammar(request, *written)
        elif self.grammar_form != "auto" and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"replies of this protocol cannot be described as {self.grammar_form}, so no "
                "grammar is sent: pass grammar=None, or use the react protocol",
                stacklevel=2,
            )

    def _write(self, grammar: object) -> tuple[GrammarForm, str | Mapping[str, object]] | None:
        """Return a grammar in the first form that the protocol has; `None` if it has none."""
        for form in self._forms():
            text = grammar_text(grammar, form)
            if text is not None:
                return form, text
        return None

    def _forms(self) -> tuple[GrammarForm, ...]:
        """The forms to try, in this order."""
        if self.grammar_form != "auto":
            return () if self.grammar_form is None else (self.grammar_form,)
        return tuple(form for form in self._FORMS if form != "auto")

    def _put_grammar(
        self, request: dict[str, object], form: GrammarForm, text: str | Mapping[str, object]
    ) -> None:
        """Add a grammar to a request, in the client's field for it."""
        raise NotImplementedError

    def _like_this(self, **options: object) -> Self:
        """Return a model like this one with some other options of each request."""
        other = copy.copy(self)
        other._options = {**self._options, **options}
        return other

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, accepts={sorted(self.accepts)})"


_NONE = "no parts= for this client, which is sent text alone"
_TELLING: Mapping[PartKind, str] = {
    "image": "images",
    "pdf": "PDF files",
    "audio": "audio",
    "video": "video",
}
"""The kinds that some model takes, in words."""


def _written(kinds: frozenset[PartKind]) -> str:
    return repr(tuple(sorted(kinds)))
