"""Every text of a log may be hostile: no page has an element that is not the console's own."""

import json
import random

import pytest

from callslip import Agent, CallslipError, ScriptedModel, TicketStore, tool
from callslip.look._outputs import bundle_of_trace
from consoles import leave_waiting, opened, pay_call
from hostile import Page
from random_cases import seeds
from scripted import act, finish

MARK = "\"'><form id=taken></form><b>taken</b>&amp;\u202e"


@tool
def look(what: str) -> str:
    """Look."""
    return what


@tool(untrusted=True)
def read() -> dict:
    """Read."""
    return {"text": "look here"}


@pytest.fixture(scope="module")
def logs():
    store = TicketStore()
    waiting = leave_waiting(store, act("look", what="x"), pay_call(invoice=7, note="n"))
    model = ScriptedModel(["no move", act("look", what="x"), finish("done")])
    done = Agent(model, tools=[look], store=store).run_sync("Look.").run.id
    model = ScriptedModel([act("read"), act("look", what="here"), act("look", what="x"), finish()])
    agent = Agent(model, tools=[read, look], store=store, values="trusted")
    traced = agent.run_sync("Look.", approve=lambda _: True).run.id
    return [store.run(one).export().splitlines() for one in (waiting, done, traced)]


def texts(value, place=()):
    """The places of all texts of a JSON value."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from texts(one, (*place, key))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from texts(one, (*place, at))


def mutated(lines, chance):
    """A log in which some texts have markup."""
    events = [json.loads(line) for line in lines]
    found = [(at, place) for at, event in enumerate(events) for place in texts(event)]
    for at, place in chance.sample(found, chance.choice([1, 1, 1, 3])):
        holder = events[at]
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] += MARK
    return [json.dumps(event, separators=(",", ":"), ensure_ascii=False) for event in events]


def check(html):
    page = Page(html)
    assert "b" not in page.elements
    assert ("form", "id") not in page.attributes
    assert "\u202e" not in html


@pytest.mark.parametrize("seed", seeds(4))
def test_markup_in_any_text_of_a_store_is_text_on_every_page(logs, seed):
    chance = random.Random(seed)
    store = TicketStore()
    for _ in range(25):
        try:
            # Another id for each, so that all are in one store.
            lines = mutated(chance.choice(logs), chance)
            new = f"r{chance.getrandbits(40):x}"
            old = json.loads(lines[0])["event"]["run_started"]["run_id"]
            store.import_run([lines[0].replace(json.dumps(old)[1:-1], new, 1), *lines[1:]])
        except (CallslipError, KeyError):
            continue  # a text that the log cannot have
    runs = store.runs()
    assert len(runs) > 5
    with opened(store) as client:
        check(client.get("/").text)
        check(client.get("/", params={"agent": MARK, "text": MARK}).text)
        for run in runs:
            check(client.get(f"/runs/{run.run_id}").text)
            check(store.run(run.run_id).to_html())
            check(bundle_of_trace(store.run(run.run_id).trace())["text/html"])
    check(store.to_html())
