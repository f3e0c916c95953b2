"""The work of the gateway itself for a request, counted in calls of functions."""

import asyncio
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from optional import optional_module, require

require("starlette")

BENCH = Path(__file__).parents[3] / "benches" / "gateway.py"


def bench():
    spec = spec_from_file_location("gateway_bench", BENCH)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def counted(tools, *, stream):
    """The calls of functions for a request with tools that were sent before."""
    module = bench()

    async def model(messages):
        return module.CALL

    app = optional_module("callslip.gateway").gateway(model)
    body = module.request(tools, stream=stream)
    for _ in range(3):
        await module.post(app, body)
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        sent = await module.post(app, body)
    finally:
        sys.setprofile(None)
    assert b"tool_calls" in sent
    return calls


@pytest.mark.parametrize("stream", [False, True])
def test_128_tools_take_few_more_calls_than_one(stream, monkeypatch):
    def refuse(*_):
        raise AssertionError("the event of the start has all tools")

    monkeypatch.setattr("callslip.runs._feed.read_event", refuse)
    one = asyncio.run(counted(1, stream=stream))
    many = asyncio.run(counted(128, stream=stream))
    assert many < 1.2 * one + 128
