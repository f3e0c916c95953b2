"""The agents of a fleet, and a way to give it a task: `python app.py "Refund order 7"`."""

import asyncio
import os
import sys

from callslip import Agent, TicketStore, tool
from callslip.fleet import Fleet


@tool(effect="idempotent")
def refund(order: int) -> str:
    """Refund an order."""
    return f"order {order} is refunded"


def model(messages: list[dict[str, str]]) -> str:
    """In the place of a model: it refunds order 7, and says so."""
    if "is refunded" in messages[-1]["content"]:
        return (
            '{"thought": "It is done.", "action": "FINISH", "final_answer": "Order 7 is refunded.",'
            ' "task_successful": true}'
        )
    return '{"thought": "A refund.", "action": "refund", "args": {"order": 7}}'


support = Agent(model, tools=[refund], name="support")
store = TicketStore(os.environ["DATABASE_URL"])
fleet = Fleet(store, [support])


async def main() -> None:
    run_id = await fleet.submit("support", sys.argv[1])
    result = await fleet.result(run_id, timeout=60)
    print(result.value)


if __name__ == "__main__":
    asyncio.run(main())
