"""The types of instructions, deps and agents like others. Read by `make types`, not run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_type

from callslip import (
    Agent,
    Context,
    Limits,
    ReactProtocol,
    Retry,
    ScriptedModel,
    Ticket,
    at_terminal,
    in_notebook,
    tool,
)


@dataclass
class Deps:
    user: str


@tool
def who(context: Context[Deps]) -> str:
    assert_type(context.deps, Deps)
    return context.deps.user


@tool
def anyone(context: Context) -> str:
    assert_type(context.deps, Any)
    return str(context.deps)


@tool
async def number_of(word: str) -> int:
    return len(word)


def plain(number: int) -> float:
    return number / 2


def instructions(context: Context[Deps]) -> str:
    return f"The user is {context.deps.user}."


async def instructions_later(context: Context[Deps]) -> str:
    return f"The user is {context.deps.user}."


def check(value: str, context: Context[Deps]) -> None:
    if context.deps.user not in value:
        raise Retry("name the user")


model = ScriptedModel([])
Agent(model, instructions="You serve the customers of ACME. Be brief.")
Agent(
    model,
    instructions=lambda context: (
        f"Today is {datetime.now(UTC):%x}. The user is {context.deps.user}."
    ),
)
Agent(model, instructions=instructions_later, check_answer=check, tools=[who, anyone])
mixed = [who, number_of, plain]
Agent(model, tools=mixed)
Agent(model, tools=[*mixed, anyone]).replace(tools=mixed)
who(3)  # type: ignore[arg-type]
Agent(model, tools=3)  # type: ignore[call-overload]
Agent(model, instructions=1)  # type: ignore[call-overload]

agent = Agent(model, returns=int, instructions=instructions)
assert_type(agent, Agent[int])
assert_type(agent.replace(model=model, tools=[who], limits=Limits(turns=3)), Agent[int])
assert_type(agent.replace(), Agent[int])
assert_type(agent.replace(returns=str), Agent[str])
assert_type(agent.replace(returns=str, name="other"), Agent[str])
assert_type(agent.replace(returns=None), Agent[Any])
agent.replace(modle=model)  # type: ignore[call-overload]

with agent.override(model=model, tools=[], limits=Limits()) as nothing:
    assert_type(nothing, None)
agent.override(returns=str)  # type: ignore[call-arg]

earlier: list[Mapping[str, str]] = [{"role": "user", "content": "I am Ann."}]
assert_type(
    agent.run_sync("x", deps=Deps("Ann"), limits=Limits(turns=3), messages=earlier).value, int
)
assert_type(agent.resume_sync("x", deps=Deps("Ann")).value, int)
agent.run_sync("x", limits=3)  # type: ignore[arg-type]
assert agent.model is not None
agent.model([{"role": "user", "content": "x"}])
template = ReactProtocol().template


async def main() -> None:
    assert_type((await agent.run("x", deps=Deps("Ann"), messages=earlier)).value, int)
    assert_type((await agent.resume("x", deps=Deps("Ann"))).value, int)
    await agent.resume_all(deps=Deps("Ann"))
    async with agent.stream("x", deps=Deps("Ann"), limits=Limits(), messages=earlier) as run:
        await run.send("more", deps=Deps("Bob"))


def by_amount(ticket: Ticket) -> bool | str | dict[str, int]:
    assert_type(ticket.approval_reason, str | None)
    return {"amount": 5}


async def later(ticket: Ticket) -> bool:
    return True


async def is_large(arguments: dict[str, Any], context: Context) -> bool | str:
    return "large"


@tool(needs_approval=is_large)
def pay(amount: int) -> str:
    return str(amount)


@tool(needs_approval=lambda arguments, context: arguments["amount"] > 100)
def give(amount: int) -> str:
    return str(amount)


for approve in (at_terminal, in_notebook, by_amount, later):
    Agent(ScriptedModel([]), tools=[pay, give]).run_sync("go", approve=approve)
Agent(ScriptedModel([])).run_sync("go", approve=lambda ticket: ticket.call)
Agent(ScriptedModel([])).run_sync("go", approve=5)  # type: ignore[arg-type]
