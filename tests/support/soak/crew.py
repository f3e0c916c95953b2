"""Agents of every kind, made by chance."""

from __future__ import annotations

import random
from typing import Any

from callslip import Agent, Limits, Role, TicketStore
from soak import tools
from soak.players import ASKING, FORMS, PLAIN, Player

PROTOCOLS = ("ticket", "chatty", "react")


class Crew:
    """Makes agents. They share the tools, so that many runs meet at the gates of those."""

    def __init__(self) -> None:
        self.plain = tools.made()
        self.asking = tools.asking()
        made = [Player(protocol, "async whole", PLAIN, long=False) for protocol in PROTOCOLS]
        helpers = [
            Agent(
                player.model(None),
                protocol=player.protocol,  # type: ignore[arg-type]
                tools=self.plain,
                limits=Limits(turns=5, tickets=8, runs=2, depth=1),
                name=f"helper in {player.protocol}",
            )
            for player in made
        ]
        for agent in helpers:
            # They stay: what they make when it is first needed is to be there from the beginning.
            assert agent._last_setup is not agent._setup
        self.helpers = [agent.as_tool(name="helper", concurrency=2) for agent in helpers]
        self.experts = [agent.as_tool(name="expert", needs_approval=True) for agent in helpers]

    def agent(self, store: TicketStore | None, *, asks: bool, form: str | None = None) -> Agent:
        """Return a new one; `asks` says whether it may have calls that need approval."""
        protocol = random.choice(PROTOCOLS)
        own = [*self.plain, random.choice(self.helpers)]
        names = [*PLAIN, "helper"]
        if asks:
            own += [*self.asking, random.choice(self.experts)]
            names += [*ASKING * 2, "expert"]
        form = form or random.choice(FORMS)
        player = Player(protocol, form, names, long=random.random() < 0.15)
        more: dict[str, Any] = {}
        if protocol == "chatty":
            poet = Player("react", random.choice(FORMS), PLAIN, long=False)
            more["roles"] = {
                "Clerk": Role(limits=Limits(turns=3, depth=0)),
                "Poet": Role(model=poet.model(None), protocol="react", tools=self.plain),
            }
        elif protocol == "react":
            more["delegate"] = True
        return Agent(
            player.model(random.choice((None, None, 1, 3))),
            protocol=protocol,  # type: ignore[arg-type]
            tools=own,
            limits=self.limits(),
            on_limit=random.choice(("answer", "raise")),
            on_open_tickets=random.choice(("wait", "cancel")),
            store=store,
            name=f"{protocol} {form}",
            **more,
        )

    def limits(self) -> Limits:
        seconds = random.choice((None, None, None, random.uniform(0.01, 0.3)))
        return Limits(
            turns=random.choice((3, 8, 20)),
            tickets=random.choice((4, 30)),
            runs=random.choice((1, 6)),
            open_tickets=random.choice((3, 16)),
            tokens=random.choice((None, None, 40)),
            depth=random.choice((0, 1, 2)),
            seconds=seconds,
        )
