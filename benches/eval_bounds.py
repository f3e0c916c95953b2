"""Twelve tasks for `eval.py` whose tools have bounds, patterns and fields inside of objects.

Most tasks say a value in another form than the tool takes: "8 of 10 points" is 4 of 5 stars. A
model can't know that without the bound. No prompt of callslip knows these tools or values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from eval_tasks import Task
from pydantic import Field

from callslip import Tool, tool

__all__ = ["BOUNDED"]

Clock = Annotated[str, Field(pattern=r"^\d\d:\d\d$")]


class Stop(TypedDict):
    """A stop of a tour."""

    city: str
    nights: Annotated[int, Field(ge=1, le=14)]


class Guest(TypedDict):
    """A guest."""

    name: Annotated[str, Field(description="Family name alone, in capitals.")]
    floor: Annotated[int, Field(ge=1, le=6)]


class Recipient(TypedDict):
    """Who gets a parcel."""

    name: str
    country: Annotated[str, Field(pattern="^[A-Z]{2}$")]


@tool
def send_money(
    to: str,
    amount: Annotated[float, Field(gt=0)],
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")],
) -> str:
    """Send money to somebody."""
    return f"sent, reference {round(amount) + 700}-{currency}"


@tool
def dim_lamp(room: str, level: Annotated[float, Field(ge=0, le=1)]) -> str:
    """Dim the lamp in a room."""
    return f"the lamp in the {room} uses {level * 60:.0f} watts"


@tool
def rate_film(title: str, stars: Annotated[int, Field(ge=1, le=5)]) -> str:
    """Rate a film."""
    return f"{title} has {stars + 210} votes now"


@tool
def remind(text: str, at: Clock) -> str:
    """Set a reminder."""
    return f"reminder {sum(map(ord, at)) % 90 + 10} is set"


@tool(readonly=True)
def invoices(month: Annotated[str, Field(pattern=r"^\d{4}-\d{2}$")]) -> str:
    """Count the invoices of a month."""
    return f"{sum(map(ord, month)) % 80 + 20} invoices"


@tool
def order_parts(
    part: Annotated[str, Field(pattern=r"^P-\d{4}$")], count: Annotated[int, Field(multiple_of=10)]
) -> str:
    """Order spare parts."""
    return f"order {part[2:]}{count} is placed"


@tool(readonly=True)
def flights(
    origin: Annotated[str, Field(pattern="^[A-Z]{3}$")],
    destination: Annotated[str, Field(pattern="^[A-Z]{3}$")],
) -> str:
    """Find the next flight between two airports."""
    return {("VIE", "OSL"): "OS335 at 10:05"}.get((origin, destination), "none")


@tool
def plan_tour(stops: Annotated[list[Stop], Field(min_length=2, max_length=5)]) -> str:
    """Plan a tour with several stops."""
    return f"a tour of {sum(stop['nights'] for stop in stops) + 30} kilometres"


@tool
def check_in(guest: Guest) -> str:
    """Check a guest in."""
    return f"room {guest['floor']}17 for {guest['name']}"


@tool
def send_parcel(recipient: Recipient, service: Literal["fast", "slow"] = "slow") -> str:
    """Send a parcel."""
    return f"parcel {recipient['country']}-881 is on its way"


@tool
def set_oven(
    degrees: Annotated[int, Field(ge=50, le=250, multiple_of=10)], minutes: int = 30
) -> str:
    """Heat the oven.

    Args:
        degrees: Of Celsius.
    """
    return f"the oven is ready in {degrees // 10} minutes"


@tool
def set_share(name: str, share: Annotated[float, Field(gt=0, lt=1)]) -> str:
    """Set the share of a partner in the profit."""
    return f"{name} gets {share * 5200:.0f} euros"


HOME: Sequence[Tool[..., Any]] = (dim_lamp, rate_film, remind, set_oven)
TRAVEL: Sequence[Tool[..., Any]] = (flights, plan_tour, check_in, send_parcel)
MONEY: Sequence[Tool[..., Any]] = (send_money, invoices, order_parts, set_share)


def _one(
    text: str, tools: Sequence[Tool[..., Any]], called: str, value: str, /, **arguments: object
) -> Task:
    return Task(text, tools, [(called, arguments)], [value])


BOUNDED: Sequence[Task] = (
    _one(
        "Dim the lamp in the hall to 40 percent. How many watts does it use?",
        HOME,
        "dim_lamp",
        "24",
        room="hall",
        level=0.4,
    ),
    _one(
        "Give the film Alien 8 of 10 points. How many votes does it have now?",
        HOME,
        "rate_film",
        "214",
        title="Alien",
        stars=4,
    ),
    _one(
        "Remind me at 7 in the morning of the bins. Which number does the reminder have?",
        HOME,
        "remind",
        "87",
        at="07:00",
    ),
    _one("Heat the oven to 180 degrees. When is it ready?", HOME, "set_oven", "18", degrees=180),
    _one(
        "Which flight is the next from Vienna to Oslo?",
        TRAVEL,
        "flights",
        "OS335",
        origin="VIE",
        destination="OSL",
    ),
    _one(
        "Plan a tour with two nights in Graz and a week in Linz. How long is it?",
        TRAVEL,
        "plan_tour",
        "39",
        stops=[{"city": "Graz", "nights": 2}, {"city": "Linz", "nights": 7}],
    ),
    _one(
        "Check Ida Moreau in on the third floor. Which room does she get?",
        TRAVEL,
        "check_in",
        "317",
        guest={"name": "MOREAU", "floor": 3},
    ),
    _one(
        "Send a parcel to Ines in Norway and give me its number.",
        TRAVEL,
        "send_parcel",
        "NO-881",
        recipient={"name": "Ines", "country": "NO"},
    ),
    _one(
        "Send 40 euros to Ines and tell me the reference.",
        MONEY,
        "send_money",
        "740-EUR",
        to="Ines",
        amount=40,
        currency="EUR",
    ),
    _one("How many invoices were there in March 2025?", MONEY, "invoices", "45", month="2025-03"),
    _one(
        "Order 30 of part 7731. Which number does the order have?",
        MONEY,
        "order_parts",
        "773130",
        part="P-7731",
        count=30,
    ),
    _one(
        "Set the share of Kwame to 25 percent. How much does he get?",
        MONEY,
        "set_share",
        "1300",
        name="Kwame",
        share=0.25,
    ),
)
