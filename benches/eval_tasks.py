"""Tasks for `eval.py`: what is asked, which calls it needs, and what the answer has to hold.

No prompt of callslip knows these tools or values. Prompts are tuned on `TASKS`; `HELD_OUT` is run
only to report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_tools import EFFECTS, TOOLS

from callslip import Tool, tool

__all__ = ["HELD_OUT", "TASKS", "Task"]


def _tools(*names: str) -> Sequence[Tool[..., Any]]:
    return [tool(readonly=name not in EFFECTS)(TOOLS[name]) for name in names]


HOME = _tools(
    "train_departures",
    "room_temperature",
    "set_alarm",
    "convert_length",
    "switch_light",
    "add_to_list",
)
OFFICE = _tools(
    "parcel_status",
    "population",
    "manager_of",
    "phone_extension",
    "create_invoice",
    "server_load",
)
CITY = _tools(
    "book_price",
    "flight_gate",
    "rename_file",
    "reserve_table",
    "set_volume",
)


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        text: What is asked.
        tools: The tools on offer.
        calls: The calls that it needs: a tool's name, and arguments that have to be as given here.
            None of any kind may be made where there are none.
        values: What the answer has to hold: one of these texts; any answer will do where there are
            none.
        all_values: Whether it has to hold all of them. Default false.
    """

    text: str
    tools: Sequence[Tool[..., Any]]
    calls: Sequence[tuple[str, Mapping[str, object]]]
    values: Sequence[str]
    all_values: bool = False


def _one(
    text: str, tools: Sequence[Tool[..., Any]], name: str, *values: str, **arguments: object
) -> Task:
    return Task(text, tools, [(name, arguments)], values)


TASKS: Sequence[Task] = (
    _one(
        "Which trains leave Graz next?", HOME, "train_departures", "14:07", "Linz", station="Graz"
    ),
    _one("How warm is it in the cellar?", HOME, "room_temperature", "12.9", room="cellar"),
    _one(
        "Wake me at 06:40 for the gym. Which number does the alarm have?",
        HOME,
        "set_alarm",
        "90",
        time="06:40",
    ),
    _one(
        "How many metres are 26 miles?",
        HOME,
        "convert_length",
        "41842.94",
        "41,842.94",
        value=26,
        unit="miles",
    ),
    _one("Turn the light in the hall off.", HOME, "switch_light", "off", room="hall", on=False),
    _one(
        "Put milk and rice on my shopping list. How many items does it have then?",
        HOME,
        "add_to_list",
        "13",
        items=["milk", "rice"],
    ),
    _one("I need the temperature of the attic.", HOME, "room_temperature", "27.3", room="attic"),
    _one("Where is my parcel PK-3058?", OFFICE, "parcel_status", "Leipzig", parcel_id="PK-3058"),
    _one(
        "How many people lived in Bhutan in 2005?",
        OFFICE,
        "population",
        "634982",
        "634,982",
        country="Bhutan",
        year=2005,
    ),
    _one("Who is the manager of Rashid?", OFFICE, "manager_of", "Mirela", employee="Rashid"),
    _one("What is Gustav's extension?", OFFICE, "phone_extension", "6092", employee="Gustav"),
    _one(
        "Write an invoice of 250 euros for Kestrel Ltd and give me its number.",
        OFFICE,
        "create_invoice",
        "INV-3250",
        customer="Kestrel Ltd",
        amount=250,
    ),
    _one(
        "How busy is the processor of the server vega?", OFFICE, "server_load", "83.5", host="vega"
    ),
    Task(
        "What is the extension of the manager of Ines?",
        OFFICE,
        [("manager_of", {"employee": "Ines"}), ("phone_extension", {"employee": "Torvald"})],
        ["5518"],
    ),
    _one("How much does the book Dune cost?", CITY, "book_price", "11.80", title="Dune"),
    _one(
        "From which gate does flight OS417 leave on 2026-03-14?",
        CITY,
        "flight_gate",
        "F23",
        flight="OS417",
        date="2026-03-14",
    ),
    _one(
        "Rename the file notes/a.txt to plan.txt.",
        CITY,
        "rename_file",
        "51",
        "renamed",
        path="notes/a.txt",
        new_name="plan.txt",
    ),
    _one(
        "Book a table for 4 at Lotus at 19:30 and tell me the code.",
        CITY,
        "reserve_table",
        "R41930",
        restaurant="Lotus",
        people=4,
        time="19:30",
    ),
    _one(
        "Set the radio to 35 percent. How loud was it?",
        CITY,
        "set_volume",
        "48",
        device="radio",
        percent=35,
    ),
    Task(
        "What do the books Dune and Emma cost?",
        CITY,
        [("book_price", {"title": "Dune"}), ("book_price", {"title": "Emma"})],
        ["7.45"],
    ),
)


MIXED = _tools(
    "tide_time",
    "feed_pet",
    "exam_grade",
    "plant_water",
    "start_timer",
    "open_window",
)
HELD_OUT: Sequence[Task] = (
    _one("When is high tide in Whitby?", MIXED, "tide_time", "17:38", harbour="Whitby"),
    _one(
        "Give Biscuit 80 grams of food. How much has he had today?",
        MIXED,
        "feed_pet",
        "145",
        pet="Biscuit",
        grams=80,
    ),
    _one(
        "Which grade does Noor have in physics?",
        MIXED,
        "exam_grade",
        "B minus",
        student="Noor",
        subject="physics",
    ),
    _one("How much water does a fern need?", MIXED, "plant_water", "740", plant="fern"),
    _one(
        "Start a timer of 12 minutes and tell me its number.",
        MIXED,
        "start_timer",
        "137",
        minutes=12,
    ),
    _one(
        "Open the bedroom window by 20 percent. What is the humidity?",
        MIXED,
        "open_window",
        "53",
        room="bedroom",
        percent=20,
    ),
    _one(
        "Did Jonas do well in Latin? Tell me his grade.",
        MIXED,
        "exam_grade",
        "A plus",
        student="Jonas",
        subject="latin",
    ),
    _one("High tide in Brest, please.", MIXED, "tide_time", "05:12", "5:12", harbour="Brest"),
    _one("Water for my cactus: how much a week?", MIXED, "plant_water", "55", plant="cactus"),
    Task(
        "How much water do a fern and a cactus need?",
        MIXED,
        [("plant_water", {"plant": "fern"}), ("plant_water", {"plant": "cactus"})],
        ["55"],
    ),
)
