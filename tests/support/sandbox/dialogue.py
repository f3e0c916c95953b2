"""One dialogue of a script with a person, held in a terminal, in a notebook and by a test."""

from __future__ import annotations

CODE = """
import getpass
name = input("Name? ")
key = getpass.getpass("Key? ")
print(f"hello {name}, {len(key)} letters")
"""
NAME = "Ada"
KEY = "s3cret-4711"
HELLO = f"hello {NAME}, {len(KEY)} letters"

RUN = """
from callslip import PythonRunner
from sandbox.dialogue import CODE
with PythonRunner() as runner:
    result = runner.run(CODE, interactive=True)
print("ended", result.status, flush=True)
"""
ARUN = """
from callslip import PythonRunner
from sandbox.dialogue import CODE
result = await PythonRunner().arun(CODE, interactive=True)
print("ended", result.status, flush=True)
"""

REPLIES = [
    '<tool>[{"call_id": "1", "tool_name": "execute_python_code", "arguments": '
    '{"code": "n = input(\\"Name? \\")\\nprint(\\"hello\\", n)", "interactive": true}}]</tool>',
    "It said hello.",
]
AGENT = """
from callslip import Agent, ScriptedModel
from sandbox.dialogue import REPLIES
model = ScriptedModel(REPLIES)
result = Agent(model, protocol="chatty", python=True).run_sync("Say hello.")
print("answer", result.value, flush=True)
print("told", model.requests[-1].messages[-1]["content"], flush=True)
"""
