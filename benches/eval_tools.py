"""The tools of `eval_tasks.py` as plain functions, which any client can run.

They import nothing of callslip: other frameworks run them in environments of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

__all__ = ["EFFECTS", "TOOLS"]


def train_departures(station: str, limit: int = 3) -> list[str]:
    """List the next departures from a railway station."""
    return {"graz": ["14:07 Linz", "14:22 Wels"], "ulm": ["09:51 Augsburg"]}.get(
        station.lower(), ["none"]
    )


def room_temperature(room: str) -> float:
    """Measure the temperature in a room of the house, in degrees Celsius."""
    return {"kitchen": 21.4, "cellar": 12.9, "attic": 27.3}.get(room.lower(), 19.0)


def set_alarm(time: str, label: str) -> str:
    """Set an alarm at a time (HH:MM), with a label."""
    return f"alarm number {sum(map(ord, time)) % 90 + 10} is set"  # whatever the label is


def convert_length(value: float, unit: Literal["miles", "feet", "inches"]) -> str:
    """Convert a length to metres."""
    metres = value * {"miles": 1609.344, "feet": 0.3048, "inches": 0.0254}[unit]
    return f"{metres:.2f} m"


def switch_light(room: str, on: bool) -> str:  # noqa: FBT001  # as users write tools
    """Switch the light in a room on or off."""
    return f"the {room.lower()} light is {'on' if on else 'off'}, using {7 if on else 0} watts"


def add_to_list(list_name: str, items: list[str]) -> str:
    """Add items to one of the user's lists."""
    return f"{list_name.lower()} has {len(items) + 11} items now"


def parcel_status(parcel_id: str) -> dict[str, str]:
    """Look up where a parcel is."""
    places = {"PK-3058": "customs in Leipzig", "PK-9020": "depot in Brno"}
    return {"parcel": parcel_id, "place": places.get(parcel_id, "unknown")}


def population(country: str, year: int) -> int:
    """Give the population of a country in a year."""
    return {("bhutan", 2005): 634_982, ("malta", 2011): 417_432}.get((country.lower(), year), 0)


def manager_of(employee: str) -> str:
    """Give the name of an employee's manager."""
    return {"ines": "Torvald", "rashid": "Mirela"}.get(employee.lower(), "Hanneke")


def phone_extension(employee: str) -> int:
    """Give the phone extension of an employee."""
    return {"torvald": 5518, "mirela": 2206, "ines": 7341, "gustav": 6092}.get(
        employee.lower(), 1000
    )


def create_invoice(customer: str, amount: float, currency: str = "EUR") -> dict[str, object]:
    """Create an invoice for a customer."""
    return {"invoice": f"INV-{round(amount) + 3000}", "customer": customer, "currency": currency}


def server_load(host: str) -> dict[str, float]:
    """Report processor and memory load of a server, in percent."""
    return {"vega": {"cpu": 83.5, "memory": 41.2}, "rigel": {"cpu": 12.8, "memory": 66.7}}.get(
        host.lower(), {"cpu": 1.0, "memory": 1.0}
    )


def book_price(title: str) -> str:
    """Find the price of a book in the shop."""
    return {"dune": "11.80 euros", "emma": "7.45 euros"}.get(title.lower(), "not sold")


def flight_gate(flight: str, date: str) -> str:
    """Tell the gate of a flight on a date (YYYY-MM-DD)."""
    return {"OS417": "gate F23", "LX1580": "gate B47"}.get(flight.replace(" ", ""), "gate unknown")


def rename_file(path: str, new_name: str) -> str:
    """Rename a file."""
    return f"renamed, version {len(path) + 40}"


def reserve_table(restaurant: str, people: int, time: str) -> str:
    """Reserve a table at a restaurant for today, at a time (HH:MM)."""
    return f"reserved, code R{people}{time.replace(':', '')}"


def set_volume(device: Literal["radio", "tv", "speaker"], percent: int) -> str:
    """Set the volume of a device."""
    return f"{device} was at {percent + 13} percent before"


def tide_time(harbour: str) -> str:
    """Give the time of the next high tide in a harbour."""
    return {"whitby": "17:38", "brest": "05:12"}.get(harbour.lower(), "12:00")


def feed_pet(pet: str, grams: int) -> str:
    """Feed a pet an amount of food in grams."""
    return f"{pet} has had {grams + 65} grams today"


def exam_grade(student: str, subject: Literal["physics", "history", "latin"]) -> str:
    """Look up a student's grade in a subject."""
    return {("noor", "physics"): "B minus", ("jonas", "latin"): "A plus"}.get(
        (student.lower(), subject), "C"
    )


def plant_water(plant: str) -> str:
    """Say how much water a plant needs a week."""
    return {"fern": "740 ml", "cactus": "55 ml"}.get(plant.lower(), "200 ml")


def start_timer(minutes: int) -> str:
    """Start a timer."""
    return f"timer {minutes * 3 + 101} is running"


def open_window(room: str, percent: float) -> str:
    """Open the window of a room by a percentage."""
    return f"opened, humidity is {percent + 33:.0f}"


TOOLS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        train_departures,
        room_temperature,
        set_alarm,
        convert_length,
        switch_light,
        add_to_list,
        parcel_status,
        population,
        manager_of,
        phone_extension,
        create_invoice,
        server_load,
        book_price,
        flight_gate,
        rename_file,
        reserve_table,
        set_volume,
        tide_time,
        feed_pet,
        exam_grade,
        plant_water,
        start_timer,
        open_window,
    )
}
EFFECTS = frozenset(
    function.__name__
    for function in (
        set_alarm,
        switch_light,
        add_to_list,
        create_invoice,
        rename_file,
        reserve_table,
        set_volume,
        feed_pet,
        start_timer,
        open_window,
    )
)
