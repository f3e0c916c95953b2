"""Scripts that ask a person at a notebook, in a real kernel."""

from __future__ import annotations

import threading
import time

import pytest

from notebooks import Kernel, running_kernel
from optional import optional_module
from sandbox import dialogue
from sandbox.cases import SUPPORT
from sandbox.dialogue import HELLO, KEY, NAME
from sandbox.offered import need

optional_module("ipykernel")
optional_module("jupyter_client")
# Jupyter's own warnings are none of ours.
pytestmark = pytest.mark.filterwarnings("default")


PICTURE = """
import base64, os
os.makedirs("out", exist_ok=True)
pixel = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJ"
    "RU5ErkJggg=="
)
open("out/p.png", "wb").write(base64.b64decode(pixel))
print("<b>not markup</b>")
"""


@pytest.fixture(scope="module")
def started():
    need("auto")
    with running_kernel(SUPPORT) as parts:
        yield parts


@pytest.fixture
def kernel(started):
    return Kernel(*started)


@pytest.mark.parametrize("program", [dialogue.RUN, dialogue.ARUN], ids=["run", "arun"])
def test_a_dialogue_in_a_cell(kernel, program):
    text, status = kernel.run(program, [NAME, KEY])
    assert kernel.prompts == [("[script] Name? ", False), ("[script] Key? ", True)]
    assert (text, status) == (f"[script] {HELLO}\nended ok\n", "ok")


def test_an_agent_s_script_asks_in_the_cell(kernel):
    text, _ = kernel.run(dialogue.AGENT, [NAME])
    assert kernel.prompts == [("[script] Name? ", False)]
    assert f"hello {NAME}" in text
    assert "answer It said hello." in text


def test_a_cell_without_input_refuses_at_once(kernel):
    text, status = kernel.run(dialogue.RUN, allow_stdin=False)
    assert status == "error"
    assert "ScriptRefused" in text
    assert kernel.prompts == []


@pytest.mark.parametrize("program", [dialogue.RUN, dialogue.ARUN], ids=["run", "arun"])
def test_an_interrupt_of_the_kernel_ends_the_script(kernel, program):
    quiet = "import time; time.sleep(60)"
    code = program.replace("CODE,", f"{quiet!r},")
    code = code.replace("PythonRunner()", "PythonRunner(ask=lambda request: '')")
    timer = threading.Timer(2.0, kernel.manager.interrupt_kernel)
    timer.start()
    began = time.monotonic()
    text, status = kernel.run(code)
    assert status == "error"
    assert "KeyboardInterrupt" in text or "CancelledError" in text
    assert time.monotonic() - began < 20
    # And the kernel goes on.
    text, status = kernel.run(
        "from callslip import PythonRunner; print(PythonRunner().run('print(1)').stdout)"
    )
    assert (text, status) == ("1\n\n", "ok")


def test_a_picture_is_shown_in_the_cell(kernel):
    _, status = kernel.run(f"from callslip import PythonRunner; PythonRunner().run({PICTURE!r})")
    assert status == "ok"
    (shown,) = kernel.displayed
    assert "data:image/png;base64," in shown["text/html"]
    assert "&lt;b&gt;not markup&lt;/b&gt;" in shown["text/html"]
    assert "<b>not markup" not in shown["text/html"]
