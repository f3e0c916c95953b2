"""How much is done of each kind of measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["QUICK", "WHOLE", "Sizes"]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run, and how often it is repeated.

    Attributes:
        turns: Of the runs whose CPU is measured.
        agents: In one process.
        durable: Turns of a run that is kept, and runs at once.
        rounds: Readings of each figure, of which the median is shown.
        imports: The same for imports.
    """

    turns: tuple[int, ...] = (20, 100, 400, 2000)
    agents: tuple[int, ...] = (1000, 5000)
    durable: tuple[tuple[int, int], ...] = ((100, 1), (10, 20))
    rounds: int = 3
    imports: int = 9

    def to_json(self) -> Mapping[str, Any]:
        """Return what the page says of them."""
        return {
            "turns": list(self.turns),
            "agents": list(self.agents),
            "durable": [f"{turns} x {runs}" for turns, runs in self.durable],
            "rounds": self.rounds,
            "imports": self.imports,
        }


WHOLE = Sizes()
QUICK = Sizes(turns=(20, 100), agents=(200,), durable=((10, 1), (5, 10)), rounds=1, imports=3)
