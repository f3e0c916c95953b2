"""Fifty tasks: where no tool fits, where a value is missing, and where one call does it.

No prompt of callslip knows these tools or values. Tools that are not `readonly` have an effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from callslip import Tool, tool

__all__ = ["FITTING", "MISSING", "NO_TOOL", "ValueTask"]


@tool
def book_room(room: str, day: str, hours: int) -> str:
    """Book a meeting room on a day, for some hours."""
    return f"booked, door code {len(room) * 311 + hours}"


@tool
def send_mail(to: str, subject: str, body: str) -> str:
    """Send a mail to an address."""
    return "sent"


@tool
def open_incident(service: str, severity: Literal["low", "high"]) -> str:
    """Open an incident of a service."""
    return f"opened as INC-{len(service) * 613}"


@tool
def order_supplies(item: str, quantity: int) -> str:
    """Order a quantity of an item for the office."""
    return f"ordered as PO-{quantity + 5200}"


@tool(readonly=True)
def phone_of(person: str) -> str:
    """Look up the phone number of a colleague."""
    return "extension 6092" if person.lower() == "osei" else "not listed"


@tool
def refund_order(order_id: str, amount: float) -> str:
    """Pay an amount in euros back for an order."""
    return f"refunded, receipt R-{amount * 10:.0f}"


@tool
def ship_order(order_id: str, address: str) -> str:
    """Ship an order to an address."""
    return "shipped with parcel PK-3058"


@tool
def create_customer(name: str, email: str) -> str:
    """Create a customer with a mail address."""
    return f"created as C-{len(name) + 770}"


@tool
def set_price(product: str, price: float) -> str:
    """Set the price of a product in euros."""
    return "price set"


@tool(readonly=True)
def stock_of(product: str) -> str:
    """Count the pieces of a product in stock."""
    return f"{len(product) + 31} pieces"


@tool
def book_table(restaurant: str, people: int, time: str) -> str:
    """Book a table at a restaurant for today, at a time (HH:MM)."""
    return f"booked under the code T{people}{time[:2]}"


@tool
def transfer_money(iban: str, amount: float) -> str:
    """Transfer an amount in euros to an account."""
    return "transferred"


@tool
def set_heating(room: str, celsius: float) -> str:
    """Set the heating of a room to a temperature."""
    return f"the {room} is being heated"


@tool
def set_reminder(date: str, text: str) -> str:
    """Set a reminder on a date (YYYY-MM-DD)."""
    return "reminder set"


@tool(readonly=True)
def weather_in(city: str) -> str:
    """Tell the weather in a city."""
    return f"fog and 6 degrees in {city}"


OFFICE = (book_room, send_mail, open_incident, order_supplies, phone_of)
SHOP = (refund_order, ship_order, create_customer, set_price, stock_of)
HOME = (book_table, transfer_money, set_heating, set_reminder, weather_in)


@dataclass(frozen=True)
class ValueTask:
    """One task.

    Attributes:
        text: What is asked.
        tools: The tools on offer.
        call: The call that it needs, with the arguments that have to be as given here; `None` if no
            call is right.
        wanted: The name of a tool that the task would need; `None` if there is one.
    """

    text: str
    tools: Sequence[Tool[..., Any]]
    call: tuple[str, Mapping[str, object]] | None = None
    wanted: str | None = None


NO_TOOL: Sequence[ValueTask] = (
    ValueTask("Cancel my booking of the room Birch.", OFFICE, wanted="cancel_booking"),
    ValueTask("Close the incident INC-5527.", OFFICE, wanted="close_incident"),
    ValueTask("Translate 'good morning' into Finnish.", OFFICE, wanted="translate_text"),
    ValueTask("Move the mail from Osei into the archive.", OFFICE, wanted="archive_mail"),
    ValueTask("Write two lines of a poem about autumn.", OFFICE, wanted="write_poem"),
    ValueTask("Delete the customer Harlan Voss.", SHOP, wanted="delete_customer"),
    ValueTask("Which product sold best last week?", SHOP, wanted="best_seller"),
    ValueTask("What is the capital of Peru?", SHOP, wanted="capital_of"),
    ValueTask("Cancel the order SO-2291.", SHOP, wanted="cancel_order"),
    ValueTask("Print the label for the order SO-2291.", SHOP, wanted="print_label"),
    ValueTask("Call a taxi to the airport.", HOME, wanted="call_taxi"),
    ValueTask("Cancel the table at Lotus.", HOME, wanted="cancel_table"),
    ValueTask("Play some jazz in the kitchen.", HOME, wanted="play_music"),
    ValueTask("How much money is on my account?", HOME, wanted="account_balance"),
    ValueTask("Turn the oven off.", HOME, wanted="turn_off_oven"),
)
"""No tool does what is asked."""

MISSING: Sequence[ValueTask] = (
    ValueTask("Book a room for me.", OFFICE),
    ValueTask("Book the room Birch for 2 hours.", OFFICE),
    ValueTask("Mail Ruth that the keys are in the safe.", OFFICE),
    ValueTask("Order some pencils.", OFFICE),
    ValueTask("Tell the customer by mail that the repair is done.", OFFICE),
    ValueTask("Refund the order SO-2291.", SHOP),
    ValueTask("Ship the order SO-2291.", SHOP),
    ValueTask("Add a new customer named Tove Lind.", SHOP),
    ValueTask("Give the customer the money back.", SHOP),
    ValueTask("Make the desk lamp cheaper.", SHOP),
    ValueTask("Book a table at Nonna for tonight.", HOME),
    ValueTask("Transfer 40 euros to Wim.", HOME),
    ValueTask("Make the bedroom warmer.", HOME),
    ValueTask("Remind me to buy bread.", HOME),
    ValueTask("Pay the rent.", HOME),
)
"""A tool fits, but the task lacks a value that it requires."""


def _fitting(
    text: str, tools: Sequence[Tool[..., Any]], tool_name: str, /, **arguments: object
) -> ValueTask:
    return ValueTask(text, tools, (tool_name, arguments))


FITTING: Sequence[ValueTask] = (
    _fitting(
        "Book the room Birch on Tuesday for 2 hours.",
        OFFICE,
        "book_room",
        room="Birch",
        day="Tuesday",
        hours=2,
    ),
    _fitting(
        "I need the room Cedar on Friday for 3 hours. What is the door code?",
        OFFICE,
        "book_room",
        room="Cedar",
        day="Friday",
        hours=3,
    ),
    _fitting(
        "Mail ruth@corda.example that the keys are in the safe.",
        OFFICE,
        "send_mail",
        to="ruth@corda.example",
    ),
    _fitting(
        "Open an incident of the service billing with high severity.",
        OFFICE,
        "open_incident",
        service="billing",
        severity="high",
    ),
    _fitting(
        "Order 12 boxes of staples.",
        OFFICE,
        "order_supplies",
        quantity=12,
    ),
    _fitting("What is the phone number of Osei?", OFFICE, "phone_of", person="Osei"),
    _fitting(
        "Refund 25.50 euros for the order SO-2291.",
        SHOP,
        "refund_order",
        order_id="SO-2291",
        amount=25.5,
    ),
    _fitting(
        "Pay twelve euros back for the order SO-1187.",
        SHOP,
        "refund_order",
        order_id="SO-1187",
        amount=12,
    ),
    _fitting(
        "Ship the order SO-4410 to 8 Mill Lane, Leeds.",
        SHOP,
        "ship_order",
        order_id="SO-4410",
        address="8 Mill Lane, Leeds",
    ),
    _fitting(
        "Add the customer Tove Lind, tove@lind.example.",
        SHOP,
        "create_customer",
        name="Tove Lind",
        email="tove@lind.example",
    ),
    _fitting(
        "Set the price of the desk lamp to 39 euros.",
        SHOP,
        "set_price",
        product="desk lamp",
        price=39,
    ),
    _fitting(
        "The oak chair costs 120 euros from now on.",
        SHOP,
        "set_price",
        product="oak chair",
        price=120,
    ),
    _fitting("How many desk lamps are in stock?", SHOP, "stock_of"),
    _fitting(
        "Book a table for 4 at Nonna at 19:30.",
        HOME,
        "book_table",
        restaurant="Nonna",
        people=4,
        time="19:30",
    ),
    _fitting(
        "A table at Lotus for two people at 8 pm, please.",
        HOME,
        "book_table",
        restaurant="Lotus",
        people=2,
        time="20:00",
    ),
    _fitting(
        "Transfer 40 euros to NL91ABNA0417164300.",
        HOME,
        "transfer_money",
        iban="NL91ABNA0417164300",
        amount=40,
    ),
    _fitting("Heat the bedroom to 19 degrees.", HOME, "set_heating", room="bedroom", celsius=19),
    _fitting("Remind me on 2027-03-02 to buy bread.", HOME, "set_reminder", date="2027-03-02"),
    _fitting("Set a reminder for May 9th 2027: call Mum.", HOME, "set_reminder", date="2027-05-09"),
    _fitting("What is the weather in Turin?", HOME, "weather_in", city="Turin"),
)
"""One call does what is asked, with values of the task."""
