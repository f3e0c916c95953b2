"""200 hostile arguments below the cells of a notebook, as a front end draws them."""

import dataclasses
import sys

import pytest

from browsing import CHROMIUM, Opened
from callslip import Agent, ScriptedModel, TicketStore, in_notebook, tool
from callslip.approval import view
from consoles import leave
from hostile_calls import LOOK, hostile_values, read_back
from optional import optional_module
from scripted import act

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

COUNT = 200
TAGS = ["style", "h1", "h4", "p", "small", "dl", "dt", "dd", "pre", "ul", "li", "bdi"]


@tool(needs_approval=True)
def pay(to: object, amount: int) -> str:
    """Pay."""
    raise AssertionError("it was made")


class Shell:
    """The IPython of a kernel, which keeps what is shown below a cell."""

    def __init__(self):
        self.outputs = []
        self.kernel = self.display_pub = self

    def get_ipython(self):
        return self

    def publish(self, data):
        self.outputs.append({"output_type": "display_data", "metadata": {}, "data": data})

    def raw_input(self, prompt=""):
        # As a front end keeps it, once it is answered.
        self.outputs.append({"output_type": "stream", "name": "stdout", "text": f"{prompt}n\n"})
        return "n"


@pytest.fixture(scope="module")
def tickets():
    store = TicketStore()
    agent = Agent(ScriptedModel([act("pay", to="x", amount=90000)]), tools=[pay], store=store)
    (ticket,) = store.run(leave(agent, "go")).awaiting_approval
    return [
        dataclasses.replace(ticket, arguments={"to": value, "amount": 90000})
        for value in hostile_values(COUNT)
    ]


@pytest.fixture(scope="module")
def notebook(tickets, tmp_path_factory):
    """The page of a notebook in which each cell has asked for one call."""
    nbformat = optional_module("nbformat").v4
    nbconvert = optional_module("nbconvert")
    cells = []
    with pytest.MonkeyPatch.context() as patch:
        for ticket in tickets:
            shell = Shell()
            patch.setitem(sys.modules, "IPython", shell)
            assert in_notebook(ticket) is False
            cells.append(nbformat.new_code_cell("", outputs=shell.outputs))
    exporter = nbconvert.HTMLExporter(template_name="lab", theme="light")
    # Those are of the page of the export, and would be loaded from elsewhere.
    exporter.mathjax_url = exporter.require_js_url = ""
    html, _ = exporter.from_notebook_node(nbformat.new_notebook(cells=cells))
    path = tmp_path_factory.mktemp("notebook") / "notebook.html"
    path.write_text(html, encoding="utf-8")
    return path


ALL = f"""allowed => [...document.querySelectorAll(".jp-Cell")].map(cell => {{
  const look = {LOOK};
  const [box, ...others] = cell.querySelectorAll(".callslip");
  const question = [...cell.querySelectorAll("pre")]
    .filter(one => !one.closest(".callslip") && one.textContent.startsWith("Approve? "));
  const seen = look([box, question[0], allowed]);
  if (others.length || question.length !== 1) seen.problems.push("there are several calls");
  return {{ ...seen, question: question.map(one => one.textContent) }};
}})"""


@pytest.mark.random_cases
def test_what_is_executed_is_on_the_screen_and_nothing_else_looks_like_a_call(
    browser, tickets, notebook
):
    with Opened(browser, notebook, java_script_enabled=True) as opened:
        for width in (1280, 390):
            opened.page.set_viewport_size({"width": width, "height": 800})
            found = opened.page.evaluate(ALL, TAGS)
            assert len(found) == COUNT
            for ticket, one in zip(tickets, found, strict=True):
                assert one["problems"] == [], ticket.arguments
                assert one["names"] == ["to", "amount"]
                shown = dict(zip(one["names"], map(read_back, one["fields"]), strict=True))
                assert shown == ticket.arguments
                assert one["short"] == view(ticket).short
                (question,) = one["question"]
                assert question.startswith("Approve? [y]es, [n]o")
        assert set(opened.asked) == {notebook.as_uri()}
        assert opened.page.title() == "Notebook"
