"""How a turn ends whose reply is no valid move: cut, or plain text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from callslip.agent._plain_text import plain_text, text_so_far, whole_text
from callslip.errors import ModelError

if TYPE_CHECKING:
    from callslip.agent._agent import Agent
    from callslip.runs import Run

__all__ = ["Ended", "Ends", "Enough"]

_RECENT = 6
"""Events at the end of a log that have the last reply."""


class Ended(NamedTuple):
    """The end of a turn.

    Attributes:
        text: The text for the user.
        reason: `"length"` if it was cut, else `"stop"`.
    """

    text: str
    reason: Literal["stop", "length"]


class Enough(ModelError):  # noqa: N818  # no failure: it ends a run
    """The run asks no more, because its last reply ends the turn. The log shows the message.

    Attributes:
        ended: The end of the turn.
    """

    def __init__(self, ended: Ended) -> None:
        cut = "the reply was cut at max_tokens, and is not asked for again"
        super().__init__(cut if ended.reason == "length" else "plain text is taken as the answer")
        self.ended = ended


@dataclass(frozen=True, slots=True)
class Ends:
    """The replies that end a turn although they are no valid move.

    Attributes:
        at_limit: Whether one that was cut ends it: the client has set the limit. Otherwise it does
            once no further violation is allowed.
        at_text: Whether one that is nothing but text ends it.
        is_plain: Whether every reply ends it: the request has no tools.
    """

    at_limit: bool = False
    at_text: bool = False
    is_plain: bool = False

    def before_next(self, agent: Agent[Any], run: Run[Any]) -> Ended | None:
        """Return the end of a turn before its model is asked again; `None` to ask it."""
        return self._found(agent, run, at_limit=self.at_limit)

    def at_end(self, agent: Agent[Any], run: Run[Any]) -> Ended | None:
        """Return the end of a turn after its last violation; `None` for a fault."""
        return self._found(agent, run, at_limit=True)

    def _found(self, agent: Agent[Any], run: Run[Any], *, at_limit: bool) -> Ended | None:
        reply = _last_reply(run)
        if reply is None:
            return None
        text, is_cut = reply
        if self.is_plain:
            return Ended(whole_text(agent, text), "length" if is_cut else "stop")
        if is_cut:
            return Ended(text_so_far(agent, text), "length") if at_limit else None
        # With a grammar, a model that means an answer can write one.
        if not self.at_text or "grammar" in agent._options:
            return None
        found = plain_text(agent, text)
        return None if not found else Ended(found, "stop")


def _last_reply(run: Run[Any]) -> tuple[str, bool] | None:
    """Return the text of the last reply, and whether it was cut; `None` without a reply."""
    core = run._core
    for record in reversed(core.records(max(0, core.event_count - _RECENT), texts=True)):
        if '"model_replied"' in record:
            replied = json.loads(record)["event"].get("model_replied")
            if replied is not None:
                return replied["text"], replied.get("finish_reason") == "length"
    return None
