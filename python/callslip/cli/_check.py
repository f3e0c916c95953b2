"""`callslip check`."""

from __future__ import annotations

import argparse

from callslip._runtime.differences import open_runs, refusal
from callslip.agent import Agent
from callslip.cli._files import open_store
from callslip.cli._imports import imported
from callslip.cli._output import print_text
from callslip.errors import UsageError

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print the open runs that an agent cannot continue. The store may be in use meanwhile."""
    agent = imported("the agent", options.agent, "an agent as module:name")
    if not isinstance(agent, Agent):
        raise UsageError(
            f"expected {options.agent} to be an Agent: got {type(agent).__name__}; pass the name "
            "of an agent"
        )
    with open_store(options.file) as file:
        runs = open_runs([one for one in file.runs(agent=agent.name) if one.status == "running"])
        found = [refused for run_id in runs if (refused := refusal(agent, file.run(run_id)))]
    for one in found:
        print_text(one)
    if not found:
        print_text(f"{agent.name} can continue all its open runs: {len(runs)}")
    return 1 if found else 0
