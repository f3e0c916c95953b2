"""Sixty tasks for `eval.py` on what a model decides: which tool, how many calls, or none.

No prompt of callslip knows these tools or values. Prompts and settings are tuned on the tasks at
even positions; those at odd ones are run only to report. Half of the tasks that no tool fits are
near misses: a tool has to do with what is asked, and does something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from eval_tasks import Task

from callslip import Tool, tool

__all__ = ["DECISIONS", "half"]

Call = tuple[str, Mapping[str, object]]


@tool(readonly=True)
def ferry_times(island: str) -> list[str]:
    """List the next ferries to an island."""
    known = {"hven": ["08:25", "10:55"], "sark": ["07:40", "13:15"], "bressay": ["06:05"]}
    return known.get(island.lower(), ["none"])


@tool(readonly=True)
def water_level(river: str) -> str:
    """Measure the water level of a river today."""
    return {"drava": "184 cm", "tay": "97 cm", "loire": "226 cm"}.get(river.lower(), "no gauge")


@tool
def rent_boat(boat: str, hours: int) -> str:
    """Rent a boat at the harbour for some hours."""
    return f"rented, key number {len(boat) * 37 + hours}"


@tool
def report_damage(boat: str, part: str) -> str:
    """Report a damaged part of a boat to the workshop."""
    return f"reported as D-{len(part) + 480}"


@tool(readonly=True)
def berth_of(boat: str) -> str:
    """Find the berth that a boat lies at."""
    return {"petrel": "berth K7", "curlew": "berth C12"}.get(boat.lower(), "not here")


@tool(readonly=True)
def fee_of(berth: str) -> str:
    """Look up the yearly fee of a berth."""
    fees = {"k7": "1,340 crowns", "c12": "875 crowns"}
    return fees.get(berth.lower().removeprefix("berth "), "unknown berth")


@tool(readonly=True)
def blood_group(patient: str) -> str:
    """Look up the blood group of a patient."""
    return {"runa": "AB negative", "okonjo": "0 positive"}.get(patient.lower(), "not recorded")


@tool(readonly=True)
def doctor_of(patient: str) -> str:
    """Find the doctor of a patient."""
    return {"runa": "Dr Halloran", "teodor": "Dr Abiola"}.get(patient.lower(), "none")


@tool(readonly=True)
def office_hours(doctor: str) -> str:
    """Look up the office hours of a doctor."""
    known = {"halloran": "Tuesday 14:20", "abiola": "Friday 08:45"}
    return known.get(doctor.lower().removeprefix("dr ").removeprefix("dr. "), "not known")


@tool
def book_visit(patient: str, day: Literal["monday", "tuesday", "friday"]) -> str:
    """Book a visit of a patient on a day of this week."""
    return f"booked as visit {len(patient) * 19 + len(day)}"


@tool
def order_medicine(name: str, packs: int) -> str:
    """Order packs of a medicine for the practice."""
    return f"ordered as M-{packs + 2040}"


@tool(readonly=True)
def medicine_stock(name: str) -> int:
    """Count the packs of a medicine in the store."""
    return {"ibuprofen": 58, "amoxicillin": 17}.get(name.lower(), 0)


@tool(readonly=True)
def film_length(title: str) -> str:
    """Tell the length of a film in minutes."""
    return {"stalker": "162 minutes", "alien": "117 minutes"}.get(title.lower(), "not found")


@tool(readonly=True)
def director_of(title: str) -> str:
    """Find the director of a film."""
    return {"silver tide": "Maren Quill", "low orbit": "Ivo Banerjee"}.get(
        title.lower(), "not found"
    )


@tool(readonly=True)
def awards_of(director: str) -> str:
    """Count the awards of a director."""
    return {"maren quill": "14 awards", "ivo banerjee": "3 awards"}.get(director.lower(), "none")


@tool
def reserve_seat(hall: str, row: int) -> str:
    """Reserve a seat in a row of a cinema hall for tonight."""
    return f"reserved, code {hall[:1].upper()}{row * 11}"


@tool
def set_projector(hall: str, mode: Literal["day", "night"]) -> str:
    """Set the mode of the projector of a hall."""
    return f"the lamp of {hall} is at {140 if mode == 'day' else 65} watts"


@tool(readonly=True)
def ticket_sales(hall: str) -> int:
    """Count the tickets that were sold for a hall today."""
    return {"aurora": 213, "lumen": 78}.get(hall.lower(), 0)


HARBOUR: Sequence[Tool[..., Any]] = (
    ferry_times,
    water_level,
    rent_boat,
    report_damage,
    berth_of,
    fee_of,
)
PRACTICE: Sequence[Tool[..., Any]] = (
    blood_group,
    doctor_of,
    office_hours,
    book_visit,
    order_medicine,
    medicine_stock,
)
CINEMA: Sequence[Tool[..., Any]] = (
    film_length,
    director_of,
    awards_of,
    reserve_seat,
    set_projector,
    ticket_sales,
)


def _one(text: str, tools: Sequence[Tool[..., Any]], call: Call, *values: str) -> Task:
    return Task(text, tools, [call], values)


ONE_STEP: Sequence[Task] = (
    _one("When do ferries leave for Hven?", HARBOUR, ("ferry_times", {"island": "Hven"}), "08:25"),
    _one("How high is the Tay today?", HARBOUR, ("water_level", {"river": "Tay"}), "97"),
    _one(
        "Rent the boat Avocet for 3 hours and tell me the number of the key.",
        HARBOUR,
        ("rent_boat", {"boat": "Avocet", "hours": 3}),
        "225",
    ),
    _one(
        "The rudder of the Curlew is broken. Report it.",
        HARBOUR,
        ("report_damage", {"boat": "Curlew", "part": "rudder"}),
        "486",
        "reported",
    ),
    _one("At which berth is the Petrel?", HARBOUR, ("berth_of", {"boat": "Petrel"}), "K7"),
    _one("What does berth C12 cost a year?", HARBOUR, ("fee_of", {}), "875"),
    _one("I want to go to Sark. Which ferries are there?", HARBOUR, ("ferry_times", {}), "07:40"),
    _one("Which blood group has Runa?", PRACTICE, ("blood_group", {"patient": "Runa"}), "AB"),
    _one("Who is the doctor of Teodor?", PRACTICE, ("doctor_of", {"patient": "Teodor"}), "Abiola"),
    _one("When can I see Dr Halloran?", PRACTICE, ("office_hours", {}), "14:20"),
    _one(
        "Book a visit for Okonjo on Friday.",
        PRACTICE,
        ("book_visit", {"patient": "Okonjo", "day": "friday"}),
        "120",
        "booked",
    ),
    _one(
        "Order 12 packs of Loratadine. What is the number of the order?",
        PRACTICE,
        ("order_medicine", {"name": "Loratadine", "packs": 12}),
        "2052",
    ),
    _one("How much amoxicillin is left?", PRACTICE, ("medicine_stock", {}), "17"),
    _one("How long is the film Stalker?", CINEMA, ("film_length", {"title": "Stalker"}), "162"),
    _one("Who directed Low Orbit?", CINEMA, ("director_of", {}), "Banerjee"),
    _one("How many awards has Maren Quill won?", CINEMA, ("awards_of", {}), "14"),
    _one(
        "Reserve a seat in row 6 of the hall Lumen and give me the code.",
        CINEMA,
        ("reserve_seat", {"hall": "Lumen", "row": 6}),
        "L66",
    ),
    _one(
        "Set the projector of Aurora to night. How many watts does the lamp take?",
        CINEMA,
        ("set_projector", {"hall": "Aurora", "mode": "night"}),
        "65",
    ),
    _one("How many tickets were sold for Aurora?", CINEMA, ("ticket_sales", {}), "213"),
    _one("Tell me the length of Alien.", CINEMA, ("film_length", {"title": "Alien"}), "117"),
)


def _two(text: str, tools: Sequence[Tool[..., Any]], first: Call, second: Call, *both: str) -> Task:
    return Task(text, tools, [first, second], both, all_values=True)


INDEPENDENT: Sequence[Task] = (
    _two(
        "When are the next ferries to Hven and to Sark?",
        HARBOUR,
        ("ferry_times", {"island": "Hven"}),
        ("ferry_times", {"island": "Sark"}),
        "08:25",
        "07:40",
    ),
    _two(
        "Compare the levels of the Drava and the Loire.",
        HARBOUR,
        ("water_level", {"river": "Drava"}),
        ("water_level", {"river": "Loire"}),
        "184",
        "226",
    ),
    _two(
        "Where do the Petrel and the Curlew lie?",
        HARBOUR,
        ("berth_of", {"boat": "Petrel"}),
        ("berth_of", {"boat": "Curlew"}),
        "K7",
        "C12",
    ),
    _two(
        "Which ferries go to Bressay, and how high is the Tay?",
        HARBOUR,
        ("ferry_times", {"island": "Bressay"}),
        ("water_level", {"river": "Tay"}),
        "06:05",
        "97",
    ),
    _two(
        "What are the blood groups of Runa and Okonjo?",
        PRACTICE,
        ("blood_group", {"patient": "Runa"}),
        ("blood_group", {"patient": "Okonjo"}),
        "AB",
        "0 pos",
    ),
    _two(
        "How many packs of ibuprofen and of amoxicillin are there?",
        PRACTICE,
        ("medicine_stock", {"name": "ibuprofen"}),
        ("medicine_stock", {"name": "amoxicillin"}),
        "58",
        "17",
    ),
    _two(
        "Who is Teodor's doctor, and how much ibuprofen is in stock?",
        PRACTICE,
        ("doctor_of", {"patient": "Teodor"}),
        ("medicine_stock", {"name": "ibuprofen"}),
        "Abiola",
        "58",
    ),
    _two(
        "How long are the films Stalker and Alien?",
        CINEMA,
        ("film_length", {"title": "Stalker"}),
        ("film_length", {"title": "Alien"}),
        "162",
        "117",
    ),
    _two(
        "Give me today's ticket sales of Aurora and of Lumen.",
        CINEMA,
        ("ticket_sales", {"hall": "Aurora"}),
        ("ticket_sales", {"hall": "Lumen"}),
        "213",
        "78",
    ),
    _two(
        "Who directed Silver Tide, and how long is Alien?",
        CINEMA,
        ("director_of", {"title": "Silver Tide"}),
        ("film_length", {"title": "Alien"}),
        "Quill",
        "117",
    ),
)


def _chain(text: str, tools: Sequence[Tool[..., Any]], first: Call, then: str, value: str) -> Task:
    return Task(text, tools, [first, (then, {})], [value])


DEPENDENT: Sequence[Task] = (
    _chain(
        "What is the yearly fee of the berth of the Petrel?",
        HARBOUR,
        ("berth_of", {"boat": "Petrel"}),
        "fee_of",
        "1,340",
    ),
    _chain(
        "How much does the Curlew pay for its berth?",
        HARBOUR,
        ("berth_of", {"boat": "Curlew"}),
        "fee_of",
        "875",
    ),
    _chain(
        "When are the office hours of Runa's doctor?",
        PRACTICE,
        ("doctor_of", {"patient": "Runa"}),
        "office_hours",
        "14:20",
    ),
    _chain(
        "Teodor wants to see his doctor. When is that possible?",
        PRACTICE,
        ("doctor_of", {"patient": "Teodor"}),
        "office_hours",
        "08:45",
    ),
    _chain(
        "How many awards has the director of Silver Tide?",
        CINEMA,
        ("director_of", {"title": "Silver Tide"}),
        "awards_of",
        "14",
    ),
    _chain(
        "Count the awards of whoever directed Low Orbit.",
        CINEMA,
        ("director_of", {"title": "Low Orbit"}),
        "awards_of",
        "3 awards",
    ),
    _chain(
        "Find the berth of the Petrel, and then its fee.",
        HARBOUR,
        ("berth_of", {"boat": "Petrel"}),
        "fee_of",
        "1,340",
    ),
    _chain(
        "First find out who Runa's doctor is. Then tell me the doctor's office hours.",
        PRACTICE,
        ("doctor_of", {"patient": "Runa"}),
        "office_hours",
        "14:20",
    ),
    _chain(
        "Look up who made the film Low Orbit, and how many awards that person has.",
        CINEMA,
        ("director_of", {"title": "Low Orbit"}),
        "awards_of",
        "3",
    ),
    _chain(
        "The owner of the Curlew asks what the place where it lies costs.",
        HARBOUR,
        ("berth_of", {"boat": "Curlew"}),
        "fee_of",
        "875",
    ),
)


def _none(text: str, tools: Sequence[Tool[..., Any]], *values: str) -> Task:
    return Task(text, tools, [], values)


NONE_NEEDED: Sequence[Task] = (
    _none("Say hello to Marit in one sentence.", HARBOUR, "Marit"),
    _none("How much is 7 plus 5?", HARBOUR, "12", "twelve"),
    _none("Write the word harbour in capital letters.", HARBOUR, "HARBOUR"),
    _none("Thank you, that was all for today.", HARBOUR),
    _none("What is the opposite of 'healthy'?", PRACTICE, "sick", "unhealthy", "ill"),
    _none("How many days has a week?", PRACTICE, "7", "seven"),
    _none("Write one friendly sentence for patients who have to wait.", PRACTICE),
    _none("What is the plural of 'mouse'?", CINEMA, "mice"),
    _none("Which colour do blue and yellow make?", CINEMA, "green"),
    _none("Make up a title for a film about bees.", CINEMA),
)

NONE_FITS: Sequence[Task] = (
    _none("Give the boat Avocet back: I do not need it any more.", HARBOUR),
    _none("Cancel the report about the rudder of the Curlew.", HARBOUR),
    _none("Play the song Blue Moon.", HARBOUR),
    _none("What does a kilo of cherries cost at the market?", HARBOUR),
    _none("Cancel the visit of Okonjo on Friday.", PRACTICE),
    _none("Change Teodor's address to 14 Mill Lane.", PRACTICE),
    _none("Send a bunch of flowers to my mother.", PRACTICE),
    _none("Sell the seat in row 6 of Lumen to somebody else.", CINEMA),
    _none("Translate the title Silver Tide into Welsh.", CINEMA),
    _none("Turn on the dishwasher.", CINEMA),
)

DECISIONS: Mapping[str, Sequence[Task]] = {
    "one step": ONE_STEP,
    "two independent calls": INDEPENDENT,
    "two dependent calls": DEPENDENT,
    "no tool needed": NONE_NEEDED,
    "no tool fits": NONE_FITS,
}


def half(tasks: Sequence[Task], *, held_out: bool) -> Sequence[Task]:
    """Return the tasks that settings are tuned on, or the others."""
    return tasks[1 if held_out else 0 :: 2]
