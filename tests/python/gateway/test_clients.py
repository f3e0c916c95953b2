"""Clients of other projects, unchanged, through a gateway."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from callslip import ScriptedModel
from gateways import act, finish, opened
from optional import optional_module, require

require("langchain_openai")
require("litellm")
require("httpx")

CALL = act("get_weather", city="Oslo")
END = finish("It is cold.")


@pytest.mark.parametrize("streamed", [False, True])
def test_langchain(streamed):
    langchain = optional_module("langchain_openai")

    def get_weather(city: str) -> str:
        """Get the weather of a city."""
        return f"4 degrees in {city}"

    with opened(ScriptedModel([CALL, END], chunk_size=3)) as (address, model):
        chat = langchain.ChatOpenAI(model="m", base_url=f"{address}/v1", api_key="x")
        bound = chat.bind_tools([get_weather])

        def ask(messages):
            if not streamed:
                return bound.invoke(messages)
            chunks = list(bound.stream(messages))
            return sum(chunks[1:], chunks[0])

        messages = [("user", "Weather in Oslo?")]
        reply = ask(messages)
        (call,) = reply.tool_calls
        assert (call["name"], call["args"]) == ("get_weather", {"city": "Oslo"})
        result = {
            "role": "tool",
            "content": get_weather(**call["args"]),
            "tool_call_id": call["id"],
        }
        assert ask([*messages, reply, result]).content == "It is cold."
        assert model.requests[1].messages[-1]["content"] == "Observation: 4 degrees in Oslo"


def test_langchain_types_an_answer():
    langchain = optional_module("langchain_openai")
    schema = {
        "title": "weather",
        "type": "object",
        "properties": {"t": {"type": "integer"}},
        "required": ["t"],
    }
    with opened([finish("cold"), finish({"t": 4})]) as (address, _):
        chat = langchain.ChatOpenAI(model="m", base_url=f"{address}/v1", api_key="x")
        typed = chat.with_structured_output(schema, method="json_schema")
        assert typed.invoke("Weather in Oslo?") == {"t": 4}


@pytest.mark.filterwarnings("ignore:.*:Warning")
def test_litellm():
    litellm = optional_module("litellm")
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "get_weather", "description": "d", "parameters": schema}
    with opened([CALL]) as (address, _):
        reply = litellm.completion(
            "openai/m",
            messages=[{"role": "user", "content": "Weather in Oslo?"}],
            tools=[{"type": "function", "function": function}],
            api_base=f"{address}/v1",
            api_key="x",
        )
        (call,) = reply.choices[0].message.tool_calls
        assert (call.function.name, call.function.arguments.replace(" ", "")) == (
            "get_weather",
            '{"city":"Oslo"}',
        )


MODEL = """\
- model_id: small
  model_name: small
  api_base: {address}/v1
  supports_tools: true
  can_stream: {streamed}
"""


@pytest.mark.parametrize("streamed", ["true", "false"])
def test_a_command_line_program_calls_two_tools(tmp_path, streamed):
    require("llm")
    # Earlier calls have the thought of the example.
    version, clock = (
        act(name, thought=f"I call {name}().") for name in ("llm_version", "llm_time")
    )
    with opened([version, clock, finish("It is late.")]) as (address, model):
        config = MODEL.format(address=address, streamed=streamed)
        (tmp_path / "extra-openai-models.yaml").write_text(config)
        program = [sys.executable, "-m", "llm", "-m", "small", "-T", "llm_version", "-T"]
        done = subprocess.run(
            [*program, "llm_time", "--key", "x", "Which version, and what time is it?"],
            # Not the plugins of this environment, which lack their own packages.
            env={**os.environ, "LLM_USER_PATH": str(tmp_path), "LLM_LOAD_PLUGINS": ""},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "It is late."
    told = [one["content"] for one in model.requests[2].messages[-4:]]
    assert told[0] == version
    assert re.fullmatch(r"Observation: [\d.]+\w*", told[1])
    assert told[2] == clock
    assert "timezone" in told[3]
