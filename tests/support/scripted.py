"""Replies of models in the four protocols, as scripts of tests write them."""

import json
import re

from callslip import ModelReply
from callslip.models import NativeCall
from callslip.protocols import TicketProtocol

PATIENT = TicketProtocol(grace=60)
"""For scripts that continue with the outcome of a call, which takes its time under load."""


def patient(protocol):
    """Return a protocol of a name, whose model waits for the outcomes of calls."""
    return PATIENT if protocol == "ticket" else protocol


def output(**move):
    """Ticket: one decision."""
    return f"<thoughts>\nplan\n</thoughts>\n<output>\n{json.dumps(move)}\n</output>"


def delegate(task):
    return output(type="DELEGATE", task=task)


def call(route, payload=None, description="d"):
    return output(type="CALL", route=route, payload=payload or {}, description=description)


def wait(ticket):
    return output(type="AWAIT", ticket_id=ticket)


def load(ticket):
    return output(type="LOAD_TICKET", ticket_id=ticket)


def give(value):
    return output(type="RETURN", value=value)


def block(*calls):
    """Chatty: a tool block of `(call_id, tool_name, arguments)`."""
    rows = [
        {"call_id": call_id, "tool_name": name, "arguments": arguments}
        for call_id, name, arguments in calls
    ]
    return f"<tool>{json.dumps(rows)}</tool>"


def spawn(call_id, prompt, role="Worker"):
    return call_id, "spawn_agent", {"role": role, "prompt": prompt}


def wait_for(*agent_ids, call_id="wait"):
    return call_id, "wait_for_agents", {"agent_ids": list(agent_ids)}


def act(name, /, **args):
    """React: one call."""
    return json.dumps({"thought": "t", "action": name, "args": json.dumps(args)})


def finish(answer="done", *, success=True):
    fields = {"action": "FINISH", "final_answer": answer, "task_successful": success}
    return json.dumps({"thought": "t", **fields})


def native(*calls, text=""):
    """Native: calls of `(id, name, arguments)`, beside a text."""
    made = [NativeCall(own, name, json.dumps(arguments)) for own, name, arguments in calls]
    return ModelReply(text, calls=made)


def call_once(protocol, name, arguments, *, answer="done", description="d"):
    """A run's replies in any protocol: one call, and an answer after its result."""
    scripts = {
        "react": [act(name, **arguments), finish(answer)],
        "chatty": [block(("c", name, arguments)), answer],
        "ticket": [call(f"/{name}", arguments, description), wait("T1"), give(answer)],
        "native": [native(("c", name, arguments)), answer],
    }
    return scripts[protocol]


def asked(messages):
    """The messages from the task on: without the prompt and the examples that follow it."""
    rest = messages[1:]
    while rest and rest[0]["content"].startswith("Example: "):
        answer = next(
            at
            for at, one in enumerate(rest)
            if one["role"] == "assistant" and "Wexcombe 8264" in one["content"]
        )
        rest = rest[answer + 1 :]
    return rest


def without_example(result):
    """The messages of a run: the prompt, and those from the task on."""
    return [result.messages[0], *asked(result.messages)]


def turn_of(messages):
    """How many replies there were before."""
    return sum(message["role"] == "assistant" for message in asked(messages))


def task_of(messages):
    """The run's task, without the ticket list or the reminder that may follow it."""
    said = asked(messages)[0]["content"].split("\n\nTickets:")[0]
    return said.removesuffix("\n\nCall a tool first if one of them can give the answer.")


def results_of(message):
    """What a chatty message says of the calls of a block, by `call_id`."""
    lines = message["content"].partition("TOOL_EXECUTION_RESULT\n")[2].split("\n\n")[0]
    results = {}
    for line in lines.split("\n"):
        call_id, text = re.fullmatch(r".+? \((.*?)\): (.*)", line).groups()
        try:
            results[call_id] = json.loads(text)
        except ValueError:
            results[call_id] = text.removeprefix("error: ")
    return results
