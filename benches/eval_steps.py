"""Twenty tasks of two steps for `eval.py`: the second call needs the result of the first.

No prompt of callslip knows these tools or values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eval_tasks import Task

from callslip import Tool
from callslip.tools._schema_tool import SchemaTool

__all__ = ["STEPS"]

Steps = tuple[str, str, str, Mapping[str, str]]
"""A tool: its name, its parameter, its description, and its result for each argument."""

PAIRS: Sequence[tuple[Steps, Steps, tuple[str, str]]] = (
    (
        (
            "latest_order",
            "customer",
            "Find the number of a customer's latest order.",
            {"Halvorsen": "OR-7714", "Okafor": "OR-3309"},
        ),
        (
            "order_total",
            "order_id",
            "Look up the total of an order.",
            {"OR-7714": "318.60 euros", "OR-3309": "92.15 euros"},
        ),
        ("What is the total of the latest order of {}?", "How much is the newest order of {}?"),
    ),
    (
        (
            "home_city",
            "member",
            "Find the city that a member of the club lives in.",
            {"Sunniva": "Tromso", "Chidi": "Jos"},
        ),
        (
            "rain_today",
            "city",
            "Measure how much rain has fallen in a city today.",
            {"Tromso": "17 mm", "Jos": "43 mm"},
        ),
        (
            "How much rain fell today in the city of {}?",
            "Tell me the rain of today where {} lives.",
        ),
    ),
    (
        (
            "notes_file",
            "project",
            "Find the file that the notes of a project are in.",
            {"Heron": "heron-44.txt", "Alder": "alder-08.txt"},
        ),
        (
            "count_words",
            "file",
            "Count the words of a file.",
            {"heron-44.txt": "2863", "alder-08.txt": "517"},
        ),
        ("How many words have the notes of project {}?", "Count the words in the notes of {}."),
    ),
    (
        (
            "capital_of",
            "kingdom",
            "Give the capital of a kingdom of the game.",
            {"Ostrava": "Velin", "Karthia": "Dunmere"},
        ),
        (
            "distance_to",
            "city",
            "Give the distance to a city of the game.",
            {"Velin": "846 miles", "Dunmere": "1291 miles"},
        ),
        ("How far is it to the capital of {}?", "Which distance is the capital of {} away?"),
    ),
    (
        (
            "author_of",
            "title",
            "Find the author of a book in the library.",
            {"Salt Roads": "Adeyemi", "Pale Lantern": "Vesely"},
        ),
        (
            "shelf_of",
            "author",
            "Find the shelf that the books of an author are on.",
            {"Adeyemi": "shelf 61A", "Vesely": "shelf 27C"},
        ),
        (
            "On which shelf are the books of the author of {}?",
            "Find the shelf of the author who wrote {}.",
        ),
    ),
    (
        (
            "seat_of",
            "guest",
            "Find the table that a guest sits at.",
            {"Wanjiru": "table 9", "Petrov": "table 14"},
        ),
        (
            "waiter_of",
            "table",
            "Tell the waiter of a table.",
            {"table 9": "Lucasta", "table 14": "Bram"},
        ),
        ("Who is the waiter of the table of {}?", "Which waiter serves the guest {}?"),
    ),
    (
        (
            "server_of",
            "service",
            "Find the server that a service runs on.",
            {"billing": "vega-3", "search": "rigel-7"},
        ),
        (
            "uptime_of",
            "server",
            "Tell since when a server is up.",
            {"vega-3": "412 hours", "rigel-7": "96 hours"},
        ),
        ("How long is the server of {} up?", "Tell me the uptime of the server for {}."),
    ),
    (
        (
            "plate_of",
            "driver",
            "Find the licence plate of a driver's van.",
            {"Anouk": "KX-528", "Tibor": "LM-903"},
        ),
        (
            "fuel_of",
            "plate",
            "Measure the fuel in a van.",
            {"KX-528": "31 litres", "LM-903": "58 litres"},
        ),
        ("How much fuel has the van of {}?", "Is there fuel in {}'s van, and how much?"),
    ),
    (
        (
            "room_of",
            "patient",
            "Find the room of a patient.",
            {"Mrs Lindqvist": "room 306", "Mr Abara": "room 118"},
        ),
        (
            "nurse_of",
            "room",
            "Tell the nurse of a room.",
            {"room 306": "Sister Odile", "room 118": "Brother Emil"},
        ),
        ("Which nurse looks after {}?", "Who is the nurse of the room of {}?"),
    ),
    (
        (
            "flight_of",
            "passenger",
            "Find the flight that a passenger has booked.",
            {"Ms Tanaka": "QF-771", "Mr Reyes": "LX-208"},
        ),
        (
            "gate_of",
            "flight",
            "Tell the gate of a flight.",
            {"QF-771": "gate D41", "LX-208": "gate A16"},
        ),
        ("From which gate does the flight of {} leave?", "Where must {} go to board the flight?"),
    ),
)


def _tool(one: Steps) -> Tool[..., Any]:
    name, parameter, description, values = one
    known = {key.casefold(): value for key, value in values.items()}

    def find(arguments: dict[str, str], _: object) -> str:
        return known.get(arguments[parameter].strip().casefold(), "nothing found")

    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string"}},
        "required": [parameter],
        "additionalProperties": False,
    }
    return SchemaTool(find, name=name, description=description, parameters=schema, readonly=True)


def _tasks() -> list[Task]:
    tools = [[_tool(first), _tool(second)] for first, second, _ in PAIRS]
    tasks = []
    for at, (first, second, texts) in enumerate(PAIRS):
        # Two tools of another pair stand beside the two that are needed.
        others = tools[(at + 1) % len(PAIRS)]
        for text, (key, between) in zip(texts, first[3].items(), strict=True):
            calls = [(first[0], {first[1]: key}), (second[0], {second[1]: between})]
            tasks.append(Task(text.format(key), [*tools[at], *others], calls, [second[3][between]]))
    return tasks


STEPS: Sequence[Task] = _tasks()
"""The tasks."""
