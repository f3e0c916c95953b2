"""The agent of the desk, and its four tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from callslip import Agent, Context, Fail, tool
from callslip.protocols import Protocol, ProtocolName

INSTRUCTIONS = "You work at the desk of a shop. Never promise what a tool has not confirmed."


@dataclass
class Shop:
    """What the shop knows."""

    stock: dict[str, int] = field(default_factory=lambda: {"cup": 12, "plate": 0})
    orders: dict[int, float] = field(default_factory=lambda: {7: 25.0, 8: 4.5})
    sent: list[tuple[str, str]] = field(default_factory=list)


@tool(readonly=True)
def stock(item: str, context: Context[Shop]) -> int:
    """Return how many pieces of an item are in stock."""
    if item not in context.deps.stock:
        raise Fail(f"there is no item {item!r}: the items are {', '.join(context.deps.stock)}")
    return context.deps.stock[item]


@tool(readonly=True)
def order(number: int, context: Context[Shop]) -> str:
    """Look up an order by its number."""
    if number not in context.deps.orders:
        raise Fail(f"there is no order {number}")
    return f"order {number}: {context.deps.orders[number]:.2f} euros"


@tool(needs_approval=True)
def refund(number: int, context: Context[Shop]) -> str:
    """Refund an order."""
    return f"{context.deps.orders.pop(number):.2f} euros refunded"


@tool
def write(to: str, text: str, context: Context[Shop]) -> str:
    """Send a mail to a customer."""
    context.deps.sent.append((to, text))
    return "sent"


TOOLS = [stock, order, refund, write]


def desk(model: Callable[..., object], protocol: ProtocolName | Protocol = "react") -> Agent[str]:
    """Return the agent of the desk."""
    return Agent(model, protocol=protocol, tools=TOOLS, instructions=INSTRUCTIONS, name="desk")
