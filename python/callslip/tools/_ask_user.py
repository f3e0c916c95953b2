"""Questions of the model to the user."""

from __future__ import annotations

from callslip.tools._external import ExternalTool
from callslip.tools._tool import Tool

__all__ = ["ask_user"]


def _ask_user(
    question: str,
    choices: list[str] = [],  # noqa: B006  # the model is shown the default
    several: bool = False,  # noqa: FBT001, FBT002  # models pass arguments by name
) -> str | list[str]:
    """Ask the user a question, and wait for the answer.

    Args:
        question: The question, as the user reads it.
        choices: The answers to choose from. Leave it out for an answer in the user's own words.
        several: Whether the user may choose several of them.
    """
    raise NotImplementedError(question, choices, several)


ask_user: Tool[..., str | list[str]] = ExternalTool(_ask_user, name="ask_user", asks=True)
"""A tool with which the model asks the user: `Agent(…, tools=[ask_user])`.

`ask_user(question, choices=[], several=False)` waits for `Run.answer`, as every tool with
`external=True` does. The answer is one of `choices` if there are any, or a list of them with
`several`; otherwise it is text, or a list of texts. `Ticket.answers` has its JSON Schema.
"""
