"""Images from a user to a tool to a model and back, with the libraries of OpenAI and Anthropic."""

import asyncio
import base64
import itertools

import pytest

from callslip import Agent, File, Image, ModelError, TicketStore, as_model, tool
from failing_server import failing_server
from optional import optional_module
from pictures import PDF, count_parts, png
from scripted import act, finish

anthropic = optional_module("anthropic")
openai = optional_module("openai")

CAT, PLOT = png(32, 16), png(64, 48)


@pytest.fixture
def server():
    with failing_server() as server:
        yield server


# The library, and whether it is async and streams.
WIRES = pytest.mark.parametrize(
    "wire",
    list(itertools.product(("openai", "anthropic"), (False, True), (False, True))),
    ids=str,
)


def model_of(server, wire, **options):
    library, is_async, stream = wire
    options = {"model": "m", "stream": stream, **options}
    if library == "openai":
        kind = openai.AsyncOpenAI if is_async else openai.OpenAI
        base = f"{server.base}/v1"
    else:
        kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        base = server.base
    return as_model(kind(base_url=base, api_key="k", max_retries=0), **options)


@tool
def turn_round() -> dict[str, object]:
    """Turn the picture round."""
    return {"picture": Image(PLOT), "notes": File(PDF)}


def run(agent, task, wire):
    return asyncio.run(agent.run(task)) if wire[1] else agent.run_sync(task)


def resume(agent, run_id, wire):
    return asyncio.run(agent.resume(run_id)) if wire[1] else agent.resume_sync(run_id)


def parts_of(body):
    """The label before each image and file of a request, and its bytes."""
    found = []
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, str):
            continue
        assert content[0]["type"] == "text"
        for label, part in zip(content[1::2], content[2::2], strict=True):
            found.append((label["text"], base64.b64decode(_base64(part))))
    return found


def _base64(part):
    if part["type"] in ("image", "document"):
        return part["source"]["data"]
    if part["type"] == "file":
        return part["file"]["file_data"].removeprefix("data:application/pdf;base64,")
    return part["image_url"]["url"].removeprefix("data:image/png;base64,")


@WIRES
def test_from_a_user_to_a_tool_to_a_model_and_back(server, wire):
    server.script = [act("turn_round"), finish("round")]
    result = run(Agent(model_of(server, wire), tools=[turn_round]), ["See", Image(CAT)], wire)
    assert result.value == "round"
    assert result.tickets[0].result == {"picture": Image(PLOT), "notes": File(PDF)}
    first, second = server.bodies
    assert parts_of(first) == [("U1:", CAT)]
    assert parts_of(second) == [("U1:", CAT), ("T1.1:", PLOT), ("T1.2:", PDF)]
    # The prefix stays as it is, for the cache of the service.
    count = len(first["messages"])
    assert second["messages"][:count] == first["messages"]


@WIRES
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_resumed_run_sends_the_same_bytes(server, wire, kind, tmp_path):
    path = tmp_path / "runs.db"
    store = TicketStore(path) if kind == "file" else TicketStore()
    server.script = [act("turn_round"), "400"]
    agent = Agent(model_of(server, wire), tools=[turn_round], store=store)
    with pytest.raises(ModelError, match="no such option"):
        run(agent, ["See", Image(CAT)], wire)
    run_id = store.runs()[0].run_id
    if kind == "file":
        store.close()
        store = TicketStore(path)
    server.script = [finish("round")]
    other = Agent(model_of(server, wire), tools=[turn_round], store=store)
    assert resume(other, run_id, wire).value == "round"
    failed, resumed = server.bodies[1:]
    assert len(parts_of(resumed)) == 3
    # The outcome of the call and all before it.
    count = len(failed["messages"])
    assert resumed["messages"][:count] == failed["messages"]
    store.close()


@WIRES
def test_20_mb_of_images_are_one_line_each_for_a_model_that_takes_none(server, wire):
    large = [png(8, 8, noise=5_000_000 + number) for number in range(4)]

    @tool
    def draw() -> list[Image]:
        """Draw much."""
        return [Image(data) for data in large[2:]]

    server.script = [act("draw"), finish()]
    agent = Agent(model_of(server, wire, parts=()), tools=[draw])
    result = run(agent, ["See", *map(Image, large[:2])], wire)
    assert sum(part.size for part in result.run.parts.values()) > 20_000_000
    for body in server.bodies:
        assert count_parts(body) == 0
        assert all(isinstance(message["content"], str) for message in body["messages"])
    task = server.bodies[0]["messages"][-1]["content"]
    outcome = server.bodies[1]["messages"][-1]["content"]
    assert task.count("[image 8x8, ") == 2
    assert outcome.count("[image 8x8, ") == 2
    assert len(task) < 200
    assert len(outcome) < 400
