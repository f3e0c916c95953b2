"""The options of an agent, and the checks of some."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from callslip._base.options import (
    check_called_with,
    check_flag,
    check_type,
    check_whole,
    checked_texts,
    hint_of_class,
)
from callslip._protocols import PROTOCOL_NAMES
from callslip._scripts.runner import ScriptRunner
from callslip.errors import TemplateError, ToolError, UsageError
from callslip.models._call import ModelCall
from callslip.protocols import find_protocol

if TYPE_CHECKING:
    from callslip._runtime.setup import RunSetup
    from callslip.agent._agent import Agent
    from callslip.agent._answers import AnswerCheck
    from callslip.agent._instructions import InstructionsOption
    from callslip.history import HistoryPolicy, Summarize
    from callslip.limits import Limits
    from callslip.models._reply import Messages, Model
    from callslip.protocols import Protocol, ProtocolName
    from callslip.roles import Role
    from callslip.sandbox import PythonRunner
    from callslip.store import TicketStore
    from callslip.tools import Context, Tools, ValueLevel
    from callslip.tools._toolbox import Toolbox

__all__ = [
    "AgentOptions",
    "AnyRunner",
    "OverrideOptions",
    "RunnerOption",
    "TaskCheck",
    "accepted_options",
    "check_takes_tools",
    "check_template",
    "check_tool_names",
    "checked_model",
    "checked_task_check",
    "history_of",
    "no_model",
    "requested_options",
    "runner_of",
    "store_of",
]


AnyRunner: TypeAlias = "PythonRunner | ScriptRunner"
"""A runner for the scripts of a model."""

RunnerOption: TypeAlias = "AnyRunner | bool"
"""The option `python`: `True` is a `PythonRunner` with its defaults."""

TaskCheck: TypeAlias = "Callable[[str, Context[Any]], Awaitable[None] | None]"
"""Called with a task. It returns `None`, or raises to refuse it."""


class AgentOptions(TypedDict, total=False):
    """The options of `Agent` except its model and `returns`, on which its own type depends."""

    protocol: Protocol | ProtocolName
    instructions: InstructionsOption | None
    check_task: TaskCheck | None
    check_answer: AnswerCheck | None
    tools: Tools
    limits: Limits | None
    on_limit: Literal["answer", "raise"]
    on_open_tickets: Literal["wait", "cancel"]
    store: TicketStore | str | os.PathLike[str] | None
    name: str
    delegate: bool | None
    python: RunnerOption
    roles: Mapping[str, Agent[Any] | Role] | None
    history: HistoryPolicy | Summarize | None
    grammar: bool
    seed: int | None
    max_tokens: int | None
    stop: Sequence[str]
    values: ValueLevel | None


class OverrideOptions(AgentOptions, total=False):
    """The options of `Agent.override`."""

    model: Model


def requested_options(
    grammar: bool,  # noqa: FBT001  # an option
    seed: int | None,
    max_tokens: int | None,
    stop: Sequence[str],
) -> dict[str, Any]:
    """Return the options for a model that accepts them.

    Raises:
        UsageError: One of them is of a wrong type.
    """
    check_flag("grammar", grammar)
    if seed is not None:
        check_type("seed", seed, int, "a whole number or None")
    check_whole("max_tokens", max_tokens, 1, none="the default of the model")
    return {
        "grammar": grammar,
        "seed": seed,
        "max_tokens": max_tokens,
        "stop": checked_texts("stop", stop),
    }


def no_model(messages: Messages) -> str:  # noqa: ARG001
    """Stand in for the model of an agent that has none.

    Raises:
        UsageError: It is called.
    """
    raise UsageError(
        "expected a model: got None; pass one to Agent, or use agent.override(model=…)"
    )


def checked_model(model: object) -> ModelCall:
    """Return a model prepared for runs, and warn of a context that is lost.

    Raises:
        UsageError: It is no model.
    """
    call = ModelCall(no_model if model is None else model)
    for one in call.leaves():
        if one.hides_context:
            warnings.warn(
                f"the model '{one.name}' is a function that calls a model with a known context, "
                "and has none itself: a long run is shortened only after a request has failed; "
                f"use @functools.wraps(model), or set {one.name}.context",
                stacklevel=4,
            )
    return call


def accepted_options(
    model: ModelCall, requested: Mapping[str, Any], protocol: Protocol
) -> dict[str, Any]:
    """Return the options that a model is passed: those that are set, and that it accepts."""
    # The service of a model holds it to the form of its own tool calls.
    left_out = {"grammar"} if protocol.native.takes_calls else set()
    return {
        name: value
        for name, value in requested.items()
        if name in model.accepts - left_out and value is not False and value not in (None, [])
    }


def check_takes_tools(model: ModelCall, protocol: Protocol) -> None:
    """Raise `UsageError` if the model takes no tools, and the protocol needs that."""
    if not protocol.native.takes_calls or model.model is no_model:
        return
    for one in model.leaves():
        if not one.takes_tools:
            raise UsageError(
                f"expected a model that takes tools for the {protocol.name} protocol: got "
                f"{one.name}: pass protocol='react', or WithTools(model) as the model"
            )


def check_tool_names(protocol: Protocol, tools: Toolbox) -> None:
    """Raise `ToolError` if a tool has the name of a move."""
    reserved = protocol.native.reserved_tool_name
    takes_calls = protocol.native.takes_calls
    for name in tools.names:
        if takes_calls and not _NATIVE_NAME.fullmatch(name):
            raise ToolError(
                f"expected 1 to 64 letters, digits, _ and - as the name of a tool of the "
                f"{protocol.name} protocol: got '{name}': {tools.rename_advice(name)}"
            )
        if reserved is not None and name.upper() == reserved.upper():
            raise ToolError(
                f"a tool of the {protocol.name} protocol can't be named '{name}', the word that "
                f"ends a run: {tools.rename_advice(name)}"
            )


_NATIVE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def checked_task_check(check: TaskCheck | None) -> TaskCheck | None:
    """Return the option `check_task`.

    Raises:
        UsageError: It is not a function of a task and a context.
    """
    if check is not None:
        check_called_with("check_task", check, "the task", "the Context")
    return check


_DELEGATE_MOVE = re.compile(r"""["'`]DELEGATE["'`]""")


def check_template(
    protocol: Protocol, setup: RunSetup, *, delegate: bool, depth: int | None
) -> None:
    """Raise `TemplateError` if the user's template teaches a move that is not offered.

    Args:
        protocol: The protocol.
        setup: The tools of the agent's runs.
        delegate: Whether the agent was made with `delegate=True`.
        depth: Its limit `depth`.
    """
    if not protocol._has_own_template:
        return
    # Without the tools, because their descriptions do not matter to the template.
    template = protocol.system_prompt()
    delegates = delegate and depth != 0
    missing = [
        "delegate=True" if not delegate else "",
        "Limits(depth=1) or more" if depth == 0 else "",
    ]
    delegation = "pass " + " and ".join(filter(None, missing))
    advice = {"execute_python_code": "pass python=True"}
    for name, owners in _delegation_tools().items():
        if protocol.name not in owners:
            advice[name] = f"only the {' and the '.join(owners)} protocol has it"
        elif not delegates:
            advice[name] = delegation
    for name, words in advice.items():
        if name in template and name not in setup.toolbox.names:
            raise TemplateError(
                f"the template teaches '{name}', which this agent does not offer: {words}"
            )
    if protocol.native.delegates and not delegates and _DELEGATE_MOVE.search(template):
        raise TemplateError(
            f"the template teaches 'DELEGATE', which this agent does not offer: {delegation}, or "
            "write {{delegate}} in its place"
        )


def _delegation_tools() -> dict[str, list[str]]:
    """Return the tools by which runs give tasks away, with the protocols that have each."""
    owners: dict[str, list[str]] = {}
    for name in PROTOCOL_NAMES:
        for spec in find_protocol(name).native.delegation([]):
            owners.setdefault(json.loads(spec)["name"], []).append(name)
    return owners


def history_of(policy: HistoryPolicy | Summarize | None) -> HistoryPolicy | Summarize | None:
    """Return a history policy, which is checked."""
    if policy is not None:
        from callslip.history._history import check_policy

        check_policy(policy)
    return policy


def runner_of(
    python: RunnerOption,
) -> AnyRunner | None:
    """Return the runner of scripts; `None` if there is to be none."""
    if python is False:
        return None
    if isinstance(python, ScriptRunner):
        return python
    from callslip.sandbox._runner import runner_for

    return runner_for(python)


def store_of(store: TicketStore | str | os.PathLike[str] | None) -> TicketStore | None:
    """Return a store, or the store in the file of a path."""
    if store is None:
        return None
    from callslip.store import TicketStore

    if isinstance(store, TicketStore):
        return store
    if isinstance(store, str | os.PathLike):
        return TicketStore(store)
    raise UsageError(
        "expected store as a TicketStore, the path of a file or the URL of a database: got "
        f"{store!r}{hint_of_class(store) or '; pass one of them'}"
    )
