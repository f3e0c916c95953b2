"""What a model does after the name of no tool, as the runtime answers it.

The first reply of each run is given. Where no tool fits, it calls the tool that the task would
need; where one fits, it makes the due call with a wrong name. The model writes the next replies
without a grammar, which would admit no other name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from callslip import Agent, Limits, LocalModel, Run, RunFailed
from callslip.events import RunFinished
from callslip.protocols import ProtocolName
from values.tasks import FITTING, NO_TOOL, ValueTask
from values.whole_runs import calls_made

__all__ = ["after_unknown_names"]

MISSPELT: Mapping[str, str] = {
    "book_room": "book_romm",
    "send_mail": "sendMail",
    "open_incident": "open_incidents",
    "order_supplies": "order_suplies",
    "phone_of": "get_phone_of",
    "refund_order": "order_refund",
    "ship_order": "ship_orders",
    "create_customer": "create_costumer",
    "set_price": "setprice",
    "stock_of": "stock_off",
    "book_table": "book-table",
    "transfer_money": "transfer",
    "set_heating": "set_heatin",
    "set_reminder": "add_reminder",
    "weather_in": "weather",
}
"""A name that was meant for each tool: slips, other word orders and styles, and words left out."""


def after_unknown_names(
    model: LocalModel, protocol: ProtocolName, tasks: int | None = None
) -> tuple[Counter[str], list[str]]:
    """Count what runs do after an unknown name.

    Returns:
        The counts, and one line for each run.
    """
    counts: Counter[str] = Counter()
    notes = []
    fitting = {task.call[0]: task for task in FITTING if task.call is not None}.values()
    for task in [*NO_TOOL[:tasks], *list(fitting)[:tasks]]:
        if task.call is None:
            name, arguments = cast("str", task.wanted), {}
        else:
            name, arguments = MISSPELT[task.call[0]], dict(task.call[1])
        made, answer = _run(model, protocol, task, _reply(protocol, name, arguments))
        kind = "none fits" if task.call is None else "misspelt"
        if task.call is not None and any(name == task.call[0] for name, _ in made):
            what = "due call"
        elif made:
            effects = {tool.name for tool in task.tools if not tool.readonly}
            what = "wrong call" if any(name in effects for name, _ in made) else "look-up"
        else:
            what = "answer" if answer else "nothing"
        counts[f"{kind}: {what}"] += 1
        notes.append(f"{what}: {task.text} {name} -> {made} {answer!r}")
    return counts, notes


def _run(
    local: LocalModel, protocol: ProtocolName, task: ValueTask, first: str
) -> tuple[list[tuple[str, Any]], str]:
    replies = 0

    def model(messages: Sequence[Mapping[str, str]]) -> Iterable[Any]:
        nonlocal replies
        replies += 1
        return [first] if replies == 1 else local(messages, max_tokens=160)

    agent = Agent(
        model,
        protocol=protocol,
        tools=task.tools,
        limits=Limits(turns=3),
        on_limit="raise",
    )
    try:
        run = agent.run_sync(task.text).run
    except RunFailed as failure:
        run = cast("Run", failure.run)
    ended = [event for event in run.log if isinstance(event, RunFinished)]
    answers = [str(event.value) for event in ended if event.value is not None]
    return calls_made(run), "".join(answers[-1:])


def _reply(protocol: ProtocolName, name: str, arguments: Mapping[str, object]) -> str:
    if protocol == "react":
        return json.dumps({"thought": "", "action": name, "args": json.dumps(arguments)})
    call = {"call_id": "call_1", "tool_name": name, "arguments": arguments}
    return f"<tool>{json.dumps([call])}</tool>"
