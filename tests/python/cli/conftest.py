"""Commands, called in this process."""

import io
import sys

import pytest

from callslip.cli import main
from model_services import services
from optional import optional_module

TOOLS = '''
import asyncio, os, signal
from callslip import Agent, ScriptedModel, tool
from scripted import act, finish

def weather(city: str) -> str:
    """Get the weather."""
    return f"4 degrees\\x1b[1m in {city}"

@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"

async def press_ctrl_c() -> str:
    """Press Ctrl-C, and wait until it has an effect."""
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()

script = [act("weather", city="Oslo"), finish("4")]
agent = Agent(ScriptedModel(script), tools=[weather]).as_tool()
'''


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A model that replies as the test says, and the folder of its tools."""
    for client in ("openai", "anthropic"):
        optional_module(client)
    (tmp_path / "cli_tools.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "cli_tools", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with services() as one:
        yield one


@pytest.fixture
def replies(server, monkeypatch):
    def set_replies(*texts):
        left = list(texts)
        monkeypatch.setattr(server, "pieces", lambda: [left.pop(0)])

    return set_replies


@pytest.fixture
def call(capsys):
    """Calls a command and returns its output and its errors."""

    def command(*words, status=0):
        assert main([str(word) for word in words]) == status
        return capsys.readouterr()

    return command
