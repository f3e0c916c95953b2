"""Runs that Temporal drives: a workflow says which worker drives which run, and says it again.

Wake(connect, task_queue="agents")          # for Fleet(…, dispatch=…)
Worker(client, task_queue="agents", workflows=[Dispatch], activities=activities(fleet))

The log of a run stays in its store. The history of its workflow has about ten events for each time
that the run is driven, whatever the run does meanwhile, and none while it rests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from inspect import isawaitable
from typing import Any

from callslip._base.extras import needs
from callslip._base.options import check_called_with, check_seconds, check_text, check_type
from callslip.errors import StoreError, UsageError
from callslip.fleet import Fleet

with needs("callslip[temporal]"):
    from temporalio import activity, workflow
    from temporalio.client import Client
    from temporalio.common import RetryPolicy
    from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

__all__ = ["Dispatch", "Wake", "activities"]

_DRIVE = "callslip.drive"
# Temporal wants a bound: the heartbeats are what ends an attempt.
_LONG = timedelta(days=3650)
# Another process may drive the run until its lease ends.
_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=10))


@workflow.defn(name="callslip.Dispatch", sandboxed=False)
class Dispatch:
    """The workflow of one run, whose id is that of the run.

    It drives the run as an activity. While the run rests, it waits for the signal `wake`.
    """

    def __init__(self) -> None:
        self._is_woken = False

    @workflow.signal
    def wake(self) -> None:
        """Drive the run again: it has something to do."""
        self._is_woken = True

    @workflow.run
    async def run(self, run_id: str, heartbeat: float) -> None:
        """Drive a run until it is over.

        Args:
            run_id: The id of the run.
            heartbeat: Seconds after which a worker that says nothing has lost the run.
        """
        while True:
            self._is_woken = False
            state = await workflow.execute_activity(
                _DRIVE,
                run_id,
                result_type=str,
                start_to_close_timeout=_LONG,
                heartbeat_timeout=timedelta(seconds=heartbeat),
                retry_policy=_RETRY,
            )
            if state == "rests":
                await workflow.wait_condition(lambda: self._is_woken)
            elif not self._is_woken:
                return
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(args=[run_id, heartbeat])


def activities(fleet: Fleet) -> list[Callable[..., Any]]:
    """Return the activities of a worker that drives the runs of a fleet.

    Args:
        fleet: The fleet, with agents.

    Raises:
        UsageError: It is no fleet.
    """
    check_type("fleet", fleet, Fleet, "a Fleet")

    @activity.defn(name=_DRIVE)
    async def drive(run_id: str) -> str:
        timeout = activity.info().heartbeat_timeout or timedelta(seconds=30)
        driving = asyncio.create_task(fleet.drive(run_id))
        try:
            while not driving.done():
                activity.heartbeat()
                await asyncio.wait([driving], timeout=timeout.total_seconds() / 3)
            return await driving
        except StoreError as error:
            # Expected, where another process drives the run: it is tried again.
            kind = ApplicationErrorCategory.BENIGN
            raise ApplicationError(str(error), type="StoreError", category=kind) from error
        finally:
            driving.cancel()
            await asyncio.wait([driving])

    return [drive]


def _checked(client: Any) -> Client:
    if not hasattr(client, "start_workflow"):
        raise UsageError(f"expected connect to return a Client: got {client!r}")
    made: Client = client
    return made


class Wake:
    """Starts the workflow of a run, or wakes the one that it has: for `Fleet(…, dispatch=…)`.

    Args:
        connect: An async function without arguments that returns a client of Temporal, called
            once; or a client.
        task_queue: The task queue of the workers.
        heartbeat: Seconds after which a worker that says nothing has lost a run. Another one can
            drive the run once its lease has ended too: `Fleet(lease=…)`. Default: 30.

    Raises:
        UsageError: An argument has a wrong value.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Client]] | Client,
        *,
        task_queue: str,
        heartbeat: float = 30.0,
    ) -> None:
        if not isinstance(connect, Client):
            if not callable(connect):
                raise UsageError(
                    f"expected a Client or an async function that returns one: got {connect!r}; "
                    "pass lambda: Client.connect(address)"
                )
            check_called_with("connect", connect)
        check_text("task_queue", task_queue)
        if not task_queue:
            raise UsageError("expected task_queue to be the name of a task queue: got ''")
        check_seconds("heartbeat", heartbeat, 1)
        self._connect = connect
        self._task_queue = task_queue
        self._heartbeat = float(heartbeat)
        self._client = connect if isinstance(connect, Client) else None

    async def __call__(self, run_id: str) -> None:
        """Start the workflow of a run, or wake it.

        Raises:
            UsageError: `connect` has returned no client.
        """
        if self._client is None:
            assert not isinstance(self._connect, Client)
            made: object = self._connect()
            self._client = _checked(await made if isawaitable(made) else made)
        await self._client.start_workflow(
            Dispatch.run,
            args=[run_id, self._heartbeat],
            id=run_id,
            task_queue=self._task_queue,
            start_signal="wake",
        )
