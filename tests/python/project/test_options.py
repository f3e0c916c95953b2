"""Options that cross to the core as JSON: unknown names are errors, and both halves agree."""

import json
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from callslip import Agent, Limits, _core, ask_user, tool
from callslip.errors import UsageError
from callslip.models.testing import ScriptedModel
from callslip.openapi._traits import _traits
from callslip.sandbox import ScriptLimits
from callslip.sandbox._limits import OF_PACKAGES

DOCUMENT = (
    b'{"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {"/a": {"get": {}}}}'
)
PLAIN: dict[str, Any] = {"name": "f", "description": "d", "parameters": {"type": "object"}}


def native() -> _core.Setup:
    return Agent(ScriptedModel([]), limits=Limits(turns=7))._setup_at(None).native


def run(**options: Any) -> _core.Run:
    return _core.Run(native(), run_id="r", agent="a", **options)


def give_tool(spec: dict[str, Any]) -> object:
    return _core.ToolSet([json.dumps({**PLAIN, **spec})])


def give_traits(traits: dict[str, Any]) -> object:
    return _core.Document(DOCUMENT).only(["GET /a"], json.dumps({"GET /a": traits}))


GIVEN: dict[str, Callable[[dict[str, Any]], object]] = {
    "limits": lambda given: run(limits=json.dumps(given)),
    "tool": give_tool,
    "external": lambda given: give_tool({"external": given}),
    "traits": give_traits,
}
if sys.platform == "linux":
    GIVEN["script limits"] = lambda given: _core.ScriptJob.run(json.dumps({"limits": given}))


def known(kind: str) -> set[str]:
    """Return the names that the core knows, as its error lists them."""
    with pytest.raises((UsageError, ValueError), match="unknown field `surprise`") as raised:
        GIVEN[kind]({"surprise": 1})
    return set(re.findall("`(.*?)`", str(raised.value).partition("expected one of")[2]))


@tool
def plain(price: Decimal) -> str:
    """Return the price."""
    return str(price)


@tool(effect="idempotent", untrusted=True, queue="q", needs_approval=True, values="stated")
def marked(text: str) -> str:
    """Return the text."""
    return text


@tool(needs_approval="untrusted")
def asking(text: str) -> str:
    """Return the text."""
    return text


@tool(external=True, timeout=3)
def outside(text: str) -> int:
    """Return a number."""
    raise NotImplementedError


def spec(made: Any) -> dict[str, Any]:
    return json.loads(made._spec())


def specs() -> list[dict[str, Any]]:
    agent = Agent(ScriptedModel([]), name="expert")
    return [spec(made) for made in (plain, marked, asking, outside, ask_user, agent.as_tool())]


def test_a_name_that_the_core_lacks_is_an_error():
    for give in GIVEN.values():
        with pytest.raises(
            (UsageError, ValueError), match=r"^expected .*: got unknown field `max_x`"
        ):
            give({"max_x": 1})


def test_both_halves_have_the_same_names():
    assert known("limits") == json.loads(Limits()._to_json()).keys()
    # Scripts alone are of another kind.
    assert known("tool") == {"kind", *set().union(*specs())}
    externals = [one["external"] for one in specs() if "external" in one]
    assert known("external") == set().union(*externals)
    assert known("traits") == _traits(marked, asks=True, repeats=True, untrusted=True).keys()


@pytest.mark.skipif(sys.platform != "linux", reason="scripts are run elsewhere")
def test_both_halves_have_the_same_limits_of_scripts():
    assert known("script limits") == ScriptLimits().to_dict().keys() - set(OF_PACKAGES)


def test_both_halves_have_the_same_defaults():
    assert run(limits="{}").limits == run(limits=Limits()._to_json()).limits


def test_a_log_of_another_version_may_have_other_limits():
    kept = {**json.loads(run().limits), "max_x": 1}
    del kept["tokens"]
    assert run(kept_limits=json.dumps(kept)).limits == run().limits
