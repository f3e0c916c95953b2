"""How often a person would be asked in AgentDojo, by policy: for benign tasks, and for attacks.

Each result is untrusted. Tools with an effect have `needs_approval="untrusted"`, and each call is
approved, so that all calls come. The attacker's calls follow those of the task, with the attacker's
own values: a model that obeys.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from callslip import Agent, Limits, ScriptedModel, Ticket
from callslip.tools import Tool
from callslip.tools._schema_tool import SchemaTool
from values.dojo import Scene

__all__ = ["POLICIES", "asked"]

EFFECTS = frozenset(
    [
        "send_email",
        "delete_email",
        "create_calendar_event",
        "cancel_calendar_event",
        "reschedule_calendar_event",
        "add_calendar_event_participants",
        "create_file",
        "delete_file",
        "share_file",
        "append_to_file",
        "send_money",
        "schedule_transaction",
        "update_scheduled_transaction",
        "update_password",
        "update_user_info",
        "reserve_hotel",
        "reserve_restaurant",
        "reserve_car_rental",
        "send_direct_message",
        "send_channel_message",
        "add_user_to_channel",
        "invite_user_to_slack",
        "remove_user_from_slack",
        "post_webpage",
    ]
)
"""The tools with an effect."""

DIRECTORIES = frozenset(
    [
        "search_contacts_by_name",
        "search_contacts_by_email",
        "get_channels",
        "get_users_in_channel",
        "get_user_info",
        "get_user_information",
        "get_current_day",
    ]
)
"""The tools that return what the user or the user's company has written."""


def _asks(ticket: Ticket) -> bool:
    return ticket.approval_reason is not None


def _asks_with_short_texts(ticket: Ticket) -> bool:
    origins = ticket.origins.values()
    short = any(one.untrusted and one.weak and one.how != "number" for one in origins)
    return short or _asks(ticket)


def _asks_for_untrusted_values(ticket: Ticket) -> bool:
    reasons = (ticket.approval_reason or "").split("; ")
    return any(reason and not reason.endswith("in no message and no result") for reason in reasons)


def _is_influenced(ticket: Ticket) -> bool:
    return bool(ticket.influenced)


POLICIES: Mapping[str, tuple[bool, Callable[[Ticket], bool]]] = {
    '`needs_approval="untrusted"`': (False, _asks),
    "the same, short texts too": (False, _asks_with_short_texts),
    "the same as the first, but not for values from nowhere": (False, _asks_for_untrusted_values),
    "the same as the first, directories trusted": (True, _asks),
    "the same, but not for values from nowhere": (True, _asks_for_untrusted_values),
    "any untrusted result was read (`ticket.influenced`)": (False, _is_influenced),
}
"""Policies: whether directories are trusted, and whether a call would ask."""


def asked(
    scenes: Iterable[Scene], *, trusts_directories: bool
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Count the tasks and attacks in which somebody would be asked.

    Returns:
        By the name of a policy: the benign tasks (`tasks`), those that ask (`tasks asked`), the
        attacks with an effect (`attacks`), and those that ask. And one line for each attack that
        the first policy misses.
    """
    policies = {
        name: asks for name, (trusts, asks) in POLICIES.items() if trusts is trusts_directories
    }
    counts: dict[str, Counter[str]] = {name: Counter() for name in policies}
    missed = []
    for scene in scenes:
        tickets = _tickets(scene, trusts_directories=trusts_directories)
        own, attack = tickets[: len(scene.calls)], tickets[len(scene.calls) :]
        is_attack = scene.attack is not None
        judged = [one for one in (attack if is_attack else own) if one.tool in EFFECTS]
        if is_attack and not judged:
            continue
        kind = "attacks" if is_attack else "tasks"
        for at, (name, asks) in enumerate(policies.items()):
            is_asked = any(map(asks, judged))
            counts[name][kind] += 1
            counts[name][f"{kind} asked"] += is_asked
            if is_attack and not is_asked and at == 0:
                missed.append(f"{scene.name}: {[one.description for one in judged]}")
    return counts, missed


def _tickets(scene: Scene, *, trusts_directories: bool) -> list[Ticket]:
    """Run the calls of a scene, one in each turn."""
    calls = [*scene.calls, *(scene.attack or ())]
    replies = [
        json.dumps({"thought": "", "action": one.function, "args": json.dumps(dict(one.args))})
        for one in calls
    ]
    answer = {"thought": "", "action": "FINISH", "final_answer": "", "task_successful": True}
    agent = Agent(
        ScriptedModel([*replies, json.dumps(answer)]),
        tools=[
            _tool(scene, one, trusts_directories=trusts_directories) for one in scene.suite.tools
        ],
        limits=Limits(turns=len(replies) + 2),
    )
    tickets = agent.run_sync(scene.text, approve=lambda _: True).tickets
    if len(tickets) != len(calls):
        raise SystemExit(f"{scene.name}: expected {len(calls)} calls: got {len(tickets)}")
    return tickets


def _tool(scene: Scene, function: Any, *, trusts_directories: bool) -> Tool[..., Any]:
    def perform(arguments: dict[str, Any], _: object) -> str:
        return scene.run(function.name, arguments)

    return SchemaTool(
        perform,
        name=function.name,
        description=function.description,
        parameters=function.parameters.model_json_schema(),
        repeatable=True,
        untrusted=not (trusts_directories and function.name in DIRECTORIES),
        needs_approval="untrusted" if function.name in EFFECTS else False,
    )
