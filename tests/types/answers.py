"""The types that type checkers must infer of answers. Read by `make types`, not run."""

from typing import Any, Literal, assert_type

from pydantic import BaseModel

from callslip import Agent, RunResult, ScriptedModel


class City(BaseModel):
    name: str


model = ScriptedModel([])
agent = Agent(model, returns=City)
assert_type(agent, Agent[City])
assert_type(agent.run_sync("x"), RunResult[City])
assert_type(agent.run_sync("x").value, City)
assert_type(agent.resume_sync("x").value, City)
assert_type(agent.resume_all_sync(), dict[str, RunResult[City] | Exception])
assert_type(Agent(model, returns=int).run_sync("x").value, int)
assert_type(Agent(model, returns=list[City], protocol="ticket").run_sync("x").value, list[City])
assert_type(Agent(model).run_sync("x").value, Any)
assert_type(Agent(model, returns=City | None).run_sync("x").value, Any)
either: Agent[City | Literal["unknown"]] = Agent(model, returns=City | Literal["unknown"])
assert_type(either.run_sync("x").value, City | Literal["unknown"])


async def main() -> None:
    assert_type((await agent.run("x")).value, City)
    assert_type((await agent.resume("x")).value, City)
    async with agent.stream("x") as run:
        assert_type(run.result.value, City)
        assert_type((await run.send("more")).value, City)
