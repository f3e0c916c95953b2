"""Tools whose calls need approval, and the payments that they made in a test.

A test that uses them has the fixture `no_payments`.
"""

from callslip import tool

made = []


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    made.append(amount)
    return f"paid {amount}"


@tool(name="pay", needs_approval=True)
def pay_to(to: str, amount: int) -> str:
    """Pay."""
    made.append((to, amount))
    return f"paid {amount}"
