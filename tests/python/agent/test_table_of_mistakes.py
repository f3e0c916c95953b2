"""Mistakes of newcomers, with essential words of each message. None of the code waits."""

import asyncio
import contextlib
import gc
import warnings
from importlib import import_module

import pytest

import callslip
from callslip.cli import main

SETUP = """
import asyncio, datetime
from pathlib import Path
from callslip import *
from callslip.fleet import Fleet
from callslip.mcp import MCPServer
from fastapi import FastAPI

FINISH = '{"thought": "t", "action": "FINISH", "final_answer": "42", "task_successful": true}'
ACT = '{"thought": "t", "action": "look", "args": {"word": "x"}}'

def model(messages):
    return FINISH

def look(word: str) -> str:
    "Look a word up."
    return word

class City:
    def __init__(self, name): self.name = name

agent = Agent(model)
result = agent.run_sync("?")
asking = Agent(ScriptedModel([ACT, FINISH]), tools=[tool(needs_approval=True)(look)])
"""

MISTAKES = """
# the model
Agent() | expected model of Agent: got none; pass Agent(model, …)
Agent([look]) | pass one model, and functions as tools=[…]
Agent("gpt-5-mini") | pass as_model('openai:gpt-5-mini')
Agent("openai:gpt-5-mini") | pass as_model('openai:gpt-5-mini')
Agent({"model": "x"}) | wrap a client with as_model(client
Agent(lambda: "x") | add a parameter
Agent(ScriptedModel) | got the class ScriptedModel: pass an instance of it
Agent(lambda messages: None).run_sync("?") | does the function return its reply?
as_model("gpt-5-mini") | one of 'openai:NAME', 'anthropic:NAME': got 'gpt-5-mini'; pass one of them
as_model("opnai:gpt-5") | pass one of them
as_model(None) | pass a callable from messages to text
Retrying([model]) | pass one model
Retrying(model, max_retries=3) | pass tries=…
Fallback() | pass Fallback(first, second)
Fallback(models=[model]) | pass the models one by one
BoundedModel(model, rpm=60) | pass per_minute=…
Priced(model) | pass its prices, Priced(model, input=…, output=…)
Priced(model, input_price=1) | pass input=…
ScriptedModel() | pass ScriptedModel(replies, …)
ScriptedModel(FINISH) | put it into a list
ScriptedModel(FINISH, FINISH) | expected only replies by position
ScriptedModel(responses=[FINISH]) | pass replies=[…]
# options of agents
Agent(model, [look]) | expected only model by position in Agent(…): got 2; pass
Agent(model, "Be brief.") | pass the others by their names: protocol=…, instructions=…
Agent(model, system_prompt="Be brief.") | pass instructions=…
Agent(model, output_type=int) | pass returns=…
Agent(model, memory=True) | pass store=…
Agent(model, deps=3) | pass it to the run
Agent(model, deps_type=City) | annotate tools with Context[Deps]
agent.replace(model) | pass them by name: replace(name=value)
agent.override(model) | pass them by name: override(name=value)
Agent(model, protocol="reakt") | pass one of them
Agent(model, protocol=TicketProtocol) | pass TicketProtocol()
ReactProtocol(exmples=True) | pass examples=…
ReactProtocol("You are.") | expected nothing by position
Agent(model, instructions=["a"]) | expected instructions as text
Agent(model, instructions=lambda: "x") | expected instructions to take the Context
Agent(model, limits=3) | pass Limits(turns=…)
Agent(model, limits=Limits) | pass Limits(…)
Limits(3) | pass the others by their names: turns=…
Limits(max_turns=3) | pass turns=…
Limits(turns="3") | a whole number
Limits(seconds=datetime.timedelta(seconds=3)) | to be a number
Agent(model, store=TicketStore) | pass TicketStore(…), an object of it
Agent(model, store=":memory:") | use TicketStore() for memory
Agent(model, store="sqlite:///runs.db") | pass the path alone: 'runs.db'
Agent(model, store="no/such/runs.sqlite") | create it
Agent(model, returns=3) | pass a type that has JSON
Agent(model, returns=City) | a dataclass, a TypedDict or a pydantic model
Agent(model, returns={"type": "text"}) | a valid JSON Schema
Agent(model, check_answer=lambda value: True) | to take the answer and the Context
Agent(model, check_answer=lambda value, context: False).run_sync("?") | raise Retry('why')
Agent(model, history=20) | expected history=KeepLast(…)
KeepLast(max_messages=20) | pass exchanges=…
Summarize() | pass Summarize(model, …)
Agent(model, protocol="chatty", roles=[agent]) | expected roles={'Reviewer': Role(…)}
Agent(model, protocol="chatty", roles={"A": Role}) | pass Role(…), an object of it
Role(instructions="x") | pass an Agent(…, instructions=…)
Agent(model, python=PythonRunner) | expected python=True, False or a PythonRunner
Agent(model, stop="END") | pass ['END']
Agent(model, on_limit="stop") | 'answer' or 'raise': got 'stop'; pass one of them
Agent(model, store=3) | the URL of a database: got 3; pass one of them
# tools
Agent(model, tools=look) | pass it in a list
Agent(model, tools={"look": look}) | pass a list of its values
Agent(model, tools=["look"]) | pass the function itself, not its name
Agent(model, tools=[None]) | pass a function
Agent(model, tools=[[look]]) | pass its items
Agent(model, tools=[agent]) | pass agent.as_tool()
Agent(model, tools=[FastAPI()]) | got an app of FastAPI; pass OpenAPI.from_app(app)
Agent(model, tools=[MCPServer]) | pass an object of it, such as tools=[MCPServer(…)]
Agent(model, tools=[asyncio.sleep(0)]) | pass the async function itself, without calling it
Agent(model, tools=[{"type": "function"}]) | pass a schema to Tool.from_schema
Agent(model, tools=[lambda x: x]) | use tool(name=…)
Agent(model, tools=[look, look]) | give one of them another name
Agent(model, tools=[print]) | declare a list parameter instead
tool("look") | pass the function itself, not its name
tool(read_only=True)(look) | pass readonly=True
tool(timeout="3s")(look) | a number of seconds
tool(effect="twice")(look) | 'once' or 'idempotent' or 'pure'
tool(needs_approval="yes")(look) | pass one of them, 'untrusted', or a function
tool(look).invoke("x") | use the tool as a function
tool(look).args_schema | use tool.parameters
def f(x: any): ...; Agent(model, tools=[f]) | use a type that has JSON
def f(x: "Missing"): ...; Agent(model, tools=[f]) | import the name
def f(context: Context[str]): ...; Agent(model, tools=[f]).run_sync("?") | pass deps=… to the run
Tool.from_schema(look, parameters="{}") | pass {'type': 'object'
Tool.from_schema(look, schema={}) | pass parameters=…
# runs
agent.run_sync() | pass run_sync(task, …)
agent.run_sync(None) | pass text
agent.run_sync("") | pass text
agent.run_sync({"input": "x"}) | pass text
agent.run_sync(b"x") | pass text
agent.run_sync("?", {"user": 1}) | pass the others by their names: deps=…
agent.run_sync("?", context={}) | pass deps=…
agent.run_sync("?", messages="Hello.") | expected messages=[
agent.run_sync("?", messages=result) | call run.send(…)
agent.run_sync("?", messages=result.messages) | leave out the prompt of an earlier run
agent.run_sync("?", key="k") | pass one, as in Agent(…, store='runs.sqlite')
agent.run_sync("?", approve=True) | to be a function: got True; pass one that takes the Ticket
agent.start("?") | call run_sync or stream_sync
asking.run_sync("?") | pass approve=…
Agent(model, tools=[ask_user]).run_sync("?") | pass answer=…
agent.resume_sync("x") | pass one, as in Agent(…, store='runs.sqlite')
Agent(model, store=TicketStore()).resume_sync(result.run) | pass its .id
Agent(model, store=TicketStore()).resume_sync(result) | pass its .run.id
agent.hand_over_sync(result) | pass result.run
agent.check("runs.sqlite") | pass store.run(run_id)
agent.invoke("?") | use agent.run_sync(task)
agent.chat("?") | use agent.run_sync(task)
agent.run_stream("?") | use async with agent.stream(task) as run
agent.tool(look) | use Agent(…, tools=[…])
agent.tools | use Agent(…, tools=[…])
result.output | use result.value
result.final_output | use result.value
result.all_messages() | use result.messages
result.tool_calls | use result.tickets
result.cost | use result.usage.cost
result.run.output | (await run).value
result.usage.total_tokens | use usage.input_tokens + usage.output_tokens
result.run.log[0].type | use event.kind
result.run.log[0].ticket | use event.ticket_id
asking.run_sync("?", approve=lambda ticket: ticket.args) | use ticket.arguments
asking.run_sync("?", approve=lambda ticket: ticket.name == "look") | use ticket.tool
show(result) | pass result.run
show("runs.sqlite") | pass agent.stream(…)
# async
for event in agent.stream("?"): ... | use async with agent.stream(…) as run
with agent.stream("?"): ... | use async with agent.stream(…) as run
await agent.stream("?") | use async with agent.stream(…) as run
async for event in agent.stream("?"): ... | enter the stream first
async with agent.stream_sync("?"): ... | use async with agent.stream(…) as run
async for event in agent.stream_sync("?"): ... | use async with agent.stream(…) as run
await asyncio.sleep(0); agent.run_sync("?") | use await agent.run(…)
await asyncio.sleep(0); agent.start("?").value | use (await run).value
await asyncio.sleep(0); show(agent.stream("?")) | use await show(…)
show(agent.run("?")) | pass agent.stream(…) in place of agent.run(…)
# stores, scripts, servers, fleets
TicketStore(3) | the path of a file or the URL of a database
TicketStore(url="postgresql://x") | pass the URL as the path
TicketStore().get("x") | use store.run(run_id)
TicketStore().list() | use store.runs()
PythonRunner(timeout=3) | pass limits=ScriptLimits(wall_seconds=…)
PythonRunner(packages=["x"]) | pass deps=…
ScriptLimits(memory=1) | pass memory_bytes=…
CommandRunner() | pass CommandRunner(command, …)
CommandRunner("docker") | ['docker', 'run', …]
MCPServer() | pass MCPServer(transport, …)
MCPServer("npx -y server") | use MCPServer.http(url) or MCPServer.stdio(command)
MCPServer(url="http://127.0.0.1") | pass MCPServer.http(url)
OpenAPI() | pass OpenAPI(document, …)
OpenAPI("shop.json") | use OpenAPI.from_file(path) or OpenAPI.from_url(url)
OpenAPI(url="http://127.0.0.1") | pass OpenAPI.from_url(url)
Fleet("runs.sqlite", [agent]) | pass TicketStore("postgresql://…")
"""

ROWS = [
    tuple(part.strip() for part in line.rsplit(" | ", 1))
    for line in MISTAKES.splitlines()
    if line and not line.startswith("#")
]


def message_of(code):
    """Return the message of the exception and the warnings of the code."""
    names = {}
    exec(SETUP, names)  # the code of this file
    code = code.replace("): ...; ", "): ...\n")
    is_async = code.startswith(("await", "async"))
    text = f"async def typed():\n    {code}" if is_async else code
    raised = ""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(text, names)
            if is_async:
                asyncio.run(names["typed"]())
        except Exception as error:
            raised = f"{type(error).__name__}: {error}"
        gc.collect()
    return "\n".join([raised, *(str(one.message) for one in warned)])


@pytest.mark.parametrize(("code", "words"), ROWS, ids=[code for code, _ in ROWS])
def test_the_message_says_what_to_do(code, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in message_of(code)


@pytest.mark.parametrize(
    ("name", "words"),
    [("RunContext", "use Context"), ("function_tool", "use tool"), ("OpenAI", "as_model(")],
)
def test_names_of_other_libraries(name, words):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; ") as caught:
        getattr(callslip, name)
    assert words in str(caught.value)


MODULES = ["callslip", "callslip.models", "callslip.testing", "callslip.web"]


@pytest.mark.parametrize("module", MODULES)
def test_a_name_with_a_slip(module):
    """Of each public name without its last letter."""
    found = import_module(module)
    for name in found.__all__:
        if not name.startswith("_") and name[:-1] not in found.__all__:
            with pytest.raises(AttributeError, match=f"'{module}' has no attribute .*; use "):
                getattr(found, name[:-1])


def test_a_private_name_has_no_hint():
    with pytest.raises(AttributeError, match="has no attribute '_Agent'$"):
        _ = callslip._Agent


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "app:agent"], "got 'run'; use ask"),
        (["aks"], "got 'aks'; use ask"),
        (["resume", "x"], "use chat --resume RUN"),
        (["version"], "use --version"),
        (["xyzzy"], "use one of them"),
        (["runs"], "required: STORE"),
        (["ask", "hello"], "required: -m/--model"),
        (["ask", "-m", "gpt-5-mini", "hello"], "expected openai:NAME, anthropic:NAME or local"),
        (["check", "nowhere:agent", "no.sqlite"], "there is no module nowhere in this folder"),
        (["migrate", "runs.sqlite"], "expected the URL of a database"),
    ],
)
def test_words_at_a_shell(words, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(SystemExit):
        main(words)
    assert told in capsys.readouterr().err
