"""Tasks for `eval.py`: what is asked, which calls it needs, and what the answer has to hold.

No prompt of callslip knows these tools or values. Prompts are tuned on `TASKS`; `HELD_OUT` is run
only to report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from callslip import Tool, tool

__all__ = ["HELD_OUT", "TASKS", "Task"]


@tool(readonly=True)
def train_departures(station: str, limit: int = 3) -> list[str]:
    """List the next departures from a railway station."""
    return {"graz": ["14:07 Linz", "14:22 Wels"], "ulm": ["09:51 Augsburg"]}.get(
        station.lower(), ["none"]
    )


@tool(readonly=True)
def room_temperature(room: str) -> float:
    """Measure the temperature in a room of the house, in degrees Celsius."""
    return {"kitchen": 21.4, "cellar": 12.9, "attic": 27.3}.get(room.lower(), 19.0)


@tool
def set_alarm(time: str, label: str) -> str:
    """Set an alarm at a time (HH:MM), with a label."""
    return f"alarm number {sum(map(ord, time)) % 90 + 10} is set"  # whatever the label is


@tool(readonly=True)
def convert_length(value: float, unit: Literal["miles", "feet", "inches"]) -> str:
    """Convert a length to metres."""
    metres = value * {"miles": 1609.344, "feet": 0.3048, "inches": 0.0254}[unit]
    return f"{metres:.2f} m"


@tool
def switch_light(room: str, on: bool) -> str:  # noqa: FBT001  # as users write tools
    """Switch the light in a room on or off."""
    return f"the {room.lower()} light is {'on' if on else 'off'}, using {7 if on else 0} watts"


@tool
def add_to_list(list_name: str, items: list[str]) -> str:
    """Add items to one of the user's lists."""
    return f"{list_name.lower()} has {len(items) + 11} items now"


@tool(readonly=True)
def parcel_status(parcel_id: str) -> dict[str, str]:
    """Look up where a parcel is."""
    places = {"PK-3058": "customs in Leipzig", "PK-9020": "depot in Brno"}
    return {"parcel": parcel_id, "place": places.get(parcel_id, "unknown")}


@tool(readonly=True)
def population(country: str, year: int) -> int:
    """Give the population of a country in a year."""
    return {("bhutan", 2005): 634_982, ("malta", 2011): 417_432}.get((country.lower(), year), 0)


@tool(readonly=True)
def manager_of(employee: str) -> str:
    """Give the name of an employee's manager."""
    return {"ines": "Torvald", "rashid": "Mirela"}.get(employee.lower(), "Hanneke")


@tool(readonly=True)
def phone_extension(employee: str) -> int:
    """Give the phone extension of an employee."""
    return {"torvald": 5518, "mirela": 2206, "ines": 7341, "gustav": 6092}.get(
        employee.lower(), 1000
    )


@tool
def create_invoice(customer: str, amount: float, currency: str = "EUR") -> dict[str, object]:
    """Create an invoice for a customer."""
    return {"invoice": f"INV-{round(amount) + 3000}", "customer": customer, "currency": currency}


@tool(readonly=True)
def server_load(host: str) -> dict[str, float]:
    """Report processor and memory load of a server, in percent."""
    return {"vega": {"cpu": 83.5, "memory": 41.2}, "rigel": {"cpu": 12.8, "memory": 66.7}}.get(
        host.lower(), {"cpu": 1.0, "memory": 1.0}
    )


@tool(readonly=True)
def book_price(title: str) -> str:
    """Find the price of a book in the shop."""
    return {"dune": "11.80 euros", "emma": "7.45 euros"}.get(title.lower(), "not sold")


@tool(readonly=True)
def flight_gate(flight: str, date: str) -> str:
    """Tell the gate of a flight on a date (YYYY-MM-DD)."""
    return {"OS417": "gate F23", "LX1580": "gate B47"}.get(flight.replace(" ", ""), "gate unknown")


@tool
def rename_file(path: str, new_name: str) -> str:
    """Rename a file."""
    return f"renamed, version {len(path) + 40}"


@tool
def reserve_table(restaurant: str, people: int, time: str) -> str:
    """Reserve a table at a restaurant for today, at a time (HH:MM)."""
    return f"reserved, code R{people}{time.replace(':', '')}"


@tool
def set_volume(device: Literal["radio", "tv", "speaker"], percent: int) -> str:
    """Set the volume of a device."""
    return f"{device} was at {percent + 13} percent before"


HOME: Sequence[Tool[..., Any]] = (
    train_departures,
    room_temperature,
    set_alarm,
    convert_length,
    switch_light,
    add_to_list,
)
OFFICE: Sequence[Tool[..., Any]] = (
    parcel_status,
    population,
    manager_of,
    phone_extension,
    create_invoice,
    server_load,
)
CITY: Sequence[Tool[..., Any]] = (book_price, flight_gate, rename_file, reserve_table, set_volume)


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


@tool(readonly=True)
def tide_time(harbour: str) -> str:
    """Give the time of the next high tide in a harbour."""
    return {"whitby": "17:38", "brest": "05:12"}.get(harbour.lower(), "12:00")


@tool
def feed_pet(pet: str, grams: int) -> str:
    """Feed a pet an amount of food in grams."""
    return f"{pet} has had {grams + 65} grams today"


@tool(readonly=True)
def exam_grade(student: str, subject: Literal["physics", "history", "latin"]) -> str:
    """Look up a student's grade in a subject."""
    return {("noor", "physics"): "B minus", ("jonas", "latin"): "A plus"}.get(
        (student.lower(), subject), "C"
    )


@tool(readonly=True)
def plant_water(plant: str) -> str:
    """Say how much water a plant needs a week."""
    return {"fern": "740 ml", "cactus": "55 ml"}.get(plant.lower(), "200 ml")


@tool
def start_timer(minutes: int) -> str:
    """Start a timer."""
    return f"timer {minutes * 3 + 101} is running"


@tool
def open_window(room: str, percent: float) -> str:
    """Open the window of a room by a percentage."""
    return f"opened, humidity is {percent + 33:.0f}"


MIXED: Sequence[Tool[..., Any]] = (
    tide_time,
    feed_pet,
    exam_grade,
    plant_water,
    start_timer,
    open_window,
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
