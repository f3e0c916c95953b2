"""`in_notebook`: the question is asked by the kernel, where its front end allows input."""

import asyncio
import sys

import pytest

from callslip import Agent, ScriptedModel, in_notebook
from payments import made, pay
from scripted import act, finish

pytestmark = pytest.mark.usefixtures("no_payments")


def agent():
    return Agent(ScriptedModel([act("pay", amount=5), finish()]), tools=[pay])


class Kernel:
    """What a kernel has for its cells."""

    def __init__(self, lines, *, allowed=True):
        self._allow_stdin = allowed
        self.lines, self.prompts = list(lines), []

    def raw_input(self, prompt=""):
        self.prompts.append(prompt)
        return self.lines.pop(0)


class Shell:
    """The IPython of a kernel, on a front end that shows plain text."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.display_pub = self

    def publish(self, data):
        assert "<h1>A call needs approval</h1>" in data["text/html"]
        print(data["text/plain"])


class IPython:
    def __init__(self, shell):
        self.shell = shell

    def get_ipython(self):
        return self.shell


def in_kernel(monkeypatch, kernel):
    monkeypatch.setitem(sys.modules, "IPython", IPython(Shell(kernel)))


@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_kernel_asks(monkeypatch, capsys, how):
    kernel = Kernel(["e", '{"amount": "x"}', "e", '{"amount": 7}'])
    in_kernel(monkeypatch, kernel)
    if how == "sync":
        result = agent().run_sync("go", approve=in_notebook)
    else:
        result = asyncio.run(agent().run("go", approve=in_notebook))
    assert (result.value, made, kernel.lines) == ("done", [7], [])
    assert "    amount | 5\n" in (shown := capsys.readouterr().out)
    assert shown.endswith("pay \u2192 5\n")


@pytest.mark.parametrize(
    "module", [IPython(Shell(Kernel([], allowed=False))), IPython(None), IPython(object()), None]
)
def test_nobody_is_asked_where_nobody_can_answer(monkeypatch, module):
    if module is None:
        monkeypatch.delitem(sys.modules, "IPython", raising=False)
    else:
        monkeypatch.setitem(sys.modules, "IPython", module)
    result = agent().run_sync("go", approve=in_notebook)
    assert made == []
    assert "nobody sits at a notebook" in result.tickets[0].error
