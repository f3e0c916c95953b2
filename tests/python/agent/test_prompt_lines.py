"""Names, defaults and descriptions of a schema stay in their line of a prompt."""

import random

import pytest

from callslip import Agent, ScriptedModel, UsageError
from callslip._core import ToolSet
from callslip.tools._schema_tool import SchemaTool
from random_cases import seeds

ODD = [*"\n\r\v\f\t\x85\u2028\u2029\u202e\u202a\u2066\u200b\ufeff\0\x1b"]


def schema_tool(parameters, description="d"):
    return SchemaTool(
        lambda arguments, _: arguments, name="x", description=description, parameters=parameters
    )


def some_text(draw):
    return "".join(draw.choice(["a", "FINISH: ", " ", *ODD]) for _ in range(draw.randrange(1, 9)))


def some_object(draw, depth=0):
    properties = {}
    for _ in range(draw.randrange(1, 4)):
        if depth < 2 and draw.random() < 0.4:
            inner = some_object(draw, depth + 1)
        else:
            inner = draw.choice([{"type": "string"}, {"enum": [some_text(draw), some_text(draw)]}])
            inner = {**inner, "default": some_text(draw)} if draw.random() < 0.5 else inner
        if draw.random() < 0.4:
            inner["description"] = some_text(draw)
        properties[some_text(draw)] = inner
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket"])
def test_no_character_of_a_schema_moves_a_line_of_the_prompt(protocol):
    for seed in seeds(100):
        draw = random.Random(seed)
        tool = schema_tool(some_object(draw), some_text(draw))
        prompt = Agent(ScriptedModel([]), tools=[tool], protocol=protocol).system_prompt
        assert not [one for one in ODD if one not in "\n\t" and one in prompt], seed
        # Text of the schema begins a line only behind an indent.
        assert not [line for line in prompt.split("\n") if line.startswith("FINISH: a")], seed


def test_branches_that_name_properties_alone_are_said():
    branches = [{"properties": {name: {"type": "integer"}}, "required": [name]} for name in "ab"]
    with pytest.raises(UsageError) as raised:
        ToolSet([schema_tool({"type": "object", "anyOf": branches})._spec()]).check("x", "{}")
    assert str(raised.value) == "the arguments must be {a: int}|{b: int}: got an empty object"
