"""A chat at the terminal: streamed answers, approvals, a conversation that is kept.

    python examples/terminal_chat.py                    # a new conversation
    python examples/terminal_chat.py --run 0123abcd…    # go on with one
    OPENAI_API_KEY=… python examples/terminal_chat.py --model gpt-4.1-mini

Without `--model` a few lines of Python answer in place of a model. Leave with an empty line or
Ctrl-D; the program then prints the id of the conversation, which is kept in `chat.sqlite`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from callslip import Agent, Delta, Ticket, as_model, tool
from callslip.events import ArgumentsFilled, TicketOpened
from callslip.models import Model


@tool(needs_approval=True)
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"The mail to {to} was sent, with {len(text)} characters."


def stand_in(messages: list[dict[str, str]]) -> Iterator[str]:
    """Answer in place of a model."""
    last = messages[-1]["content"].partition("\n\n")[0]
    if last.startswith("TOOL_EXECUTION_RESULT"):
        yield "The mail is on its way." if "was sent" in last else "Then I leave it."
    elif "mail" in last:
        arguments = {"to": "anna@example.org", "text": last}
        call = {"call_id": "mail", "tool_name": "send_mail", "arguments": arguments}
        yield f"<tool>{json.dumps([call])}</tool>"
    else:
        for word in f"You said: {last}".split(" "):
            yield word + " "


def answer(agent: Agent, text: str, run_id: str | None) -> str:
    """Print the answer to a message as it comes. Returns the id of the conversation."""
    stream = agent.stream_sync(text) if run_id is None else agent.stream_sync(run=run_id, say=text)
    for event in stream:
        match event:
            case Delta.Text(text=part) | Delta.Answer(text=part):
                print(part, end="", flush=True)
            case TicketOpened(needs_approval=True) | ArgumentsFilled(needs_approval=True):
                for ticket in stream.run.awaiting_approval:
                    if why := refusal(ticket):
                        stream.run.deny(ticket, why)
                    else:
                        stream.run.approve(ticket)
    print()
    return stream.run.id


def refusal(ticket: Ticket) -> str:
    """Ask whether a call may be made. Returns the reason against it."""
    reply = input(f"{ticket.call}\nMay this be done? [y or a reason not to] ").strip()
    return "" if reply == "y" else reply or "no"


def main() -> None:
    """Talk."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="a model of OpenAI; default: a few lines of Python")
    parser.add_argument("--store", default="chat.sqlite")
    parser.add_argument("--run", help="the id of a conversation to go on with")
    options = parser.parse_args()
    model: Model = stand_in
    if options.model:
        from openai import AsyncOpenAI

        model = as_model(AsyncOpenAI(), model=options.model)
    agent = Agent(model, protocol="chatty", tools=[send_mail], store=options.store)
    run_id = options.run
    while text := ask():
        run_id = answer(agent, text, run_id)
    if run_id:
        print(f"Go on with --run {run_id}")


def ask() -> str:
    """Return the next message; nothing at the end."""
    try:
        return input("> ").strip()
    except EOFError:
        print()
        return ""


if __name__ == "__main__":
    main()
