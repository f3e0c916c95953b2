"""Requests to the model of one run: the messages it is shown and the options it is offered."""

from __future__ import annotations

import json
import warnings
from types import ModuleType
from typing import TYPE_CHECKING

from callslip import _core
from callslip._base.connections import unreached
from callslip._base.failure import message_of, one_line
from callslip._base.redaction import redact_likely_secrets
from callslip._runtime.offered_tools import OfferedTools
from callslip.errors import CallslipError, ModelError, UsageError
from callslip.models._failures import is_context_full, server_words
from callslip.models._retry_rules import is_refused_request

if TYPE_CHECKING:
    from callslip._core import Grammar
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.session import RunSession
    from callslip._runtime.shown_history import ShownHistory
    from callslip.history import History
    from callslip.models._call import ModelCall
    from callslip.models._reply import Messages
    from callslip.runs import Run

__all__ = ["ModelRequests"]


class ModelRequests:
    """The requests of one run to its model.

    Attributes:
        takes_calls: Whether replies are tool calls of the model's own.
        shown: The messages that fit the context of the model; `None` if that is not known, or a
            policy function chooses them.
        error: The exception of the model client that has ended the run; `None` if there is none.
    """

    __slots__ = (
        "_agent",
        "_full_in",
        "_grammar",
        "_history",
        "_offered",
        "_plain",
        "_policy_error",
        "_run",
        "_violations",
        "error",
        "shown",
        "takes_calls",
    )

    def __init__(self, run: Run, agent: DrivenAgent) -> None:
        self._run = run
        self._agent = agent
        self.takes_calls: bool = agent.protocol.native.takes_calls
        # Without options and history policy the model is called directly.
        is_plain = (
            not agent._options
            and not callable(agent.history)
            and not agent._model.is_wrapped
            and "run_id" not in agent._model.accepts
            and not self.takes_calls
        )
        self._plain = agent._model.plain if is_plain else None
        self._offered = OfferedTools(run._core) if self.takes_calls else None
        self._history: History | None = None
        self.shown: ShownHistory | None = None
        if not callable(agent.history) and (
            agent.history is not None
            or agent._model.context is not None
            or run._core.shortened is not None
        ):
            self._show_less()
        self._policy_error: UsageError | None = None
        # The grammar of the last request with the model that it was sent to, and the number of
        # violations before it.
        self._grammar: tuple[Grammar, ModelCall] | None = None
        self._violations = 0
        # The turn in which a context was found full.
        self._full_in: int | None = None
        self.error: BaseException | None = None

    def send(self, call: ModelCall | None = None) -> object:
        """Call the model. Returns its result as it is: text, an awaitable, a stream or a reply.

        Args:
            call: The model to call, if that of the agent wraps several. Default: that of the agent.

        Raises:
            UsageError: The history policy failed.
            BaseException: The model failed.
        """
        shown = self.shown_messages()
        if self._plain is not None and not self._run._core.has_parts:
            return self._plain(shown)
        agent = self._agent
        call = agent._model if call is None else call
        if self._run._core.has_parts:
            call.report_unread(self._run.messages)
        options = agent._options
        if "run_id" in call.accepts:
            options = {**options, "run_id": self._run.id}
        if self._offered is not None:
            offered = self._offered.options()
            options = {**options, **offered} if options else offered
        if not options:
            return call(shown)
        if "grammar" in options and "grammar" in call.accepts:
            self._report_violation()
            grammar = self._run._core.grammar(agent.protocol.thoughts, call.bounds)
            self._grammar = (grammar, call)
            if grammar.unruled:
                _warn_unruled(grammar.unruled)
            options = {**options, "grammar": grammar}
        return call(shown, **options)

    def shown_messages(self) -> Messages:
        """Return the messages that the model is shown.

        Raises:
            UsageError: The history policy failed.
        """
        messages = self._run._sent_messages
        shown: Messages = messages
        if self.shown is not None:
            shown = self.shown.choose(messages)
        elif callable(self._agent.history):
            shown = self._choose_messages(messages)
        replies = _core.hidden_replies(self._run._core)
        if not replies:
            return shown
        # A reply that was refused for its values, and why, is no example for the next one.
        hidden = {id(messages[at]) for reply in replies for at in (reply, reply + 1)}
        return [message for message in shown if id(message) not in hidden]

    def _report_violation(self) -> None:
        """Report the violation of the last reply to the model, which sent a grammar with it."""
        core = self._run._core
        known, self._violations = self._violations, core.violations
        # A stop sequence may cut a reply anywhere.
        if self._grammar is None or known == self._violations or "stop" in self._agent._options:
            return
        for record in reversed(core.records()):
            event = json.loads(record)["event"]
            if "violated" in event:
                code = event["violated"]["violation"]["code"]
                grammar, call = self._grammar
                call.report_violation(code, grammar)
                return

    def shorten_after(self, session: RunSession, error: BaseException) -> bool:
        """Whether a request failed because the context is full, and less is shown from now on."""
        core = self._run._core
        is_own = isinstance(error, CallslipError) and not isinstance(error, ModelError)
        if is_own or callable(self._agent.history) or core.has_early_calls or core.unwritten:
            return False
        if not is_context_full(error) and not self._may_be_full(error):
            return False
        shown = self._show_less()
        plan = shown.plan(is_full=True)
        if plan is None:
            return False
        if plan.result_bytes is None:
            # Exchanges that were left out for this turn are not left out for it again. A result is
            # cut until it fits.
            if self._full_in == core.turn:
                return False
            self._full_in = core.turn
        return shown.leave_out(session, plan, one_line(self.failure_words(error)))

    def _may_be_full(self, error: BaseException) -> bool:
        """Whether a request near the limit was refused in words that are not known."""
        if self.shown is None or not is_refused_request(error):
            return False
        reply = self._agent._options.get("max_tokens")
        return self.shown.is_near_limit(reply if isinstance(reply, int) else None)

    def _show_less(self) -> ShownHistory:
        if self.shown is None:
            self.shown = _histories().ShownHistory(self._run, self._agent)
        return self.shown

    def failure_message(self, error: BaseException) -> str:
        """Keep the exception that a request raised, and return the message for the log.

        Raises:
            UsageError: The request did not fail, but the program's own history policy.
        """
        if error is self._policy_error:
            self._policy_error.run, self._policy_error._cause = self._run, error.__cause__
            raise error
        self.error = error = _original(error)
        return self.failure_words(error)

    @staticmethod
    def failure_words(error: BaseException) -> str:
        """Return the type and the message of an exception, without likely secrets."""
        error = _original(error)
        words = server_words(error)
        if (where := unreached(error)) is not None:
            words = f"{words.rstrip('. ')} ({where})"
        text = redact_likely_secrets(words)
        return f"{type(error).__name__}: {text}" if text else type(error).__name__

    def _choose_messages(self, messages: Messages) -> Messages:
        if self._history is None:
            self._history = _histories().policy_history(self._run, self._agent)
        try:
            return self._history.choose(messages)
        except UsageError as error:
            self._policy_error = error
            raise


def _histories() -> ModuleType:
    """Return the module for the runs of which the model is not shown everything."""
    from callslip._runtime import shown_history

    return shown_history


def _original(error: BaseException) -> BaseException:
    """Return the exception that a model raised, if Python has replaced it on its way."""
    cause = error.__cause__
    if not isinstance(error, RuntimeError) or not isinstance(
        cause, (StopIteration, StopAsyncIteration)
    ):
        return error
    # Coroutines and generators pass neither.
    return cause if message_of(error).endswith(f"raised {type(cause).__name__}") else error


def _warn_unruled(tools: list[str]) -> None:
    names = ", ".join(tools)
    warnings.warn(
        f"no arguments fit the schema of {names}: under the grammar any object can be written, and "
        "the check of the arguments refuses it; correct the schema",
        stacklevel=3,
    )
