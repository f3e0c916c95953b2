"""The policy that replaces the oldest exchanges by a summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_whole
from callslip.history._exchange import Exchange
from callslip.models._call import ModelCall
from callslip.models._context import TokenCounter
from callslip.models._reply import Message

__all__ = ["Summarize", "summary_of"]

_PROMPT = (
    "You summarize the older part of a conversation between a user and an assistant that works "
    "with tools. The assistant continues the conversation with your summary in the place of that "
    "part, so keep all it may still need: the wishes of the user, decisions, results with their "
    "exact names, numbers and ids, failures, and the work that is left. Reply with the summary "
    "alone, as plain text of at most 300 words."
)
_REPLY = 1_024
"""Tokens that are left for the summary."""
_END_OF_THOUGHTS = "</think>"


@knows_names_of_class({"llm": "model=…", "keep_last": "keep=…"})
@dataclass(frozen=True, slots=True)
class Summarize:
    """Replaces the oldest exchanges with a summary written by a model of your choice.

    Once the exchanges exceed `after` tokens, or two fifths of the context of the agent's model, all
    but the last `keep` exchanges are summarized, together with the previous summary. The log
    records the summary (`history_shortened`), so a resumed run uses it too, and its usage counts
    towards the limits of the run. If the summary model fails, the exchanges are dropped without a
    summary, and the log records the error. The prompt, the task and the user's last message are
    never dropped.

    Args:
        model: Any model, sync or async; the limits of a `BoundedModel` do not apply to it.
        after: Length in tokens above which exchanges are summarized, 1 or more: counted by the
            agent's model (`count_tokens`), or estimated as one token for three bytes of text.
            Default: 8,000.
        keep: The number of recent exchanges to keep, 1 or more. Default: 4.

    Raises:
        UsageError: The model cannot be called, or a number is less than 1.
    """

    model: Callable[..., object]
    after: int = field(default=8_000, kw_only=True)
    keep: int = field(default=4, kw_only=True)
    _call: ModelCall = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, value in (("after", self.after), ("keep", self.keep)):
            check_whole(f"Summarize({name}=…)", value, 1)
        object.__setattr__(self, "_call", ModelCall(self.model))

    def request(
        self, task: str, summary: str | None, exchanges: Sequence[Exchange]
    ) -> list[Message]:
        """Return the messages that ask for a summary.

        Args:
            task: The task of the run.
            summary: The summary so far; `None` if there is none.
            exchanges: The exchanges to summarize.
        """
        parts = [f"The task of the user:\n{task}"]
        if summary is not None:
            parts.append(f"Summary of the conversation before this part:\n{summary}")
        for one in exchanges:
            parts.append(f"The assistant:\n{one.reply['content']}")
            parts.append(f"Its outcome:\n{one.outcome['content']}")
        text = "\n\n".join(self._fit(parts))
        return [{"role": "system", "content": _PROMPT}, {"role": "user", "content": text}]

    def _fit(self, parts: list[str]) -> list[str]:
        """Return the parts, the longest truncated so that all fit the context of the model."""
        context = self._call.context
        if context is None:
            return parts
        count = TokenCounter(self._call.count_tokens)
        room = max(context - min(_REPLY, context // 4) - count(_PROMPT), 1)
        tokens = sum(map(count, parts))
        longest = max(map(len, parts))
        while tokens > room and longest > 80:
            longest = max(longest * 3 // 4, 80)
            parts = [_truncate(part, longest) for part in parts]
            tokens = sum(map(count, parts))
        return parts


def summary_of(text: str) -> str:
    """Return the summary in a reply. A model may have written down its reasoning before it."""
    return text.rpartition(_END_OF_THOUGHTS)[2].strip()


def _truncate(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    half = length // 2
    return f"{text[:half]} […] {text[-half:]}"
