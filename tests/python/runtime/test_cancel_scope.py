"""The cancel scope: which of three kinds of `CancelledError` ends where."""

import asyncio

import pytest

from callslip._runtime.cancel_scope import CancelScope, cancellations_before, raise_cancelled


def own_task():
    task = asyncio.current_task()
    assert task is not None
    return task


async def sleep_for_ever():
    await asyncio.Event().wait()


def soon(function):
    asyncio.get_running_loop().call_soon(function)


def test_cancel_ends_the_work_and_not_the_task():
    async def main():
        scope = CancelScope(own_task())
        with scope:
            soon(scope.cancel)
            await sleep_for_ever()
        await asyncio.sleep(0)
        assert (scope.cancel_called, scope.cancelled_caught) == (True, True)
        assert not scope.is_task_cancelled
        return own_task().cancelling()

    assert asyncio.run(main()) == 0


def test_cancel_twice_is_one_cancellation():
    async def main():
        scope = CancelScope(own_task())
        with scope:
            soon(scope.cancel)
            soon(scope.cancel)
            await sleep_for_ever()
        return own_task().cancelling()

    assert asyncio.run(main()) == 0


def test_the_work_may_end_without_being_cancelled():
    async def main():
        with CancelScope(own_task()) as scope:
            await asyncio.sleep(0)
        return scope.cancel_called, scope.cancelled_caught, scope.is_task_cancelled

    assert asyncio.run(main()) == (False, False, False)


def test_exceptions_of_the_work_pass():
    async def main():
        scope = CancelScope(own_task())
        with pytest.raises(KeyError), scope:
            soon(scope.cancel)
            try:
                await sleep_for_ever()
            finally:
                raise KeyError("x")
        return scope.cancelled_caught, own_task().cancelling()

    assert asyncio.run(main()) == (False, 0)


def test_a_cancellation_of_the_task_passes():
    async def main():
        scope = CancelScope(own_task())
        with pytest.raises(asyncio.CancelledError), scope:
            soon(own_task().cancel)
            await sleep_for_ever()
        return scope.is_task_cancelled, scope.cancelled_caught, own_task().uncancel()

    assert asyncio.run(main()) == (True, False, 0)


def test_a_cancellation_of_the_task_passes_also_beside_one_of_the_scope():
    async def main():
        scope = CancelScope(own_task())
        with pytest.raises(asyncio.CancelledError), scope:
            soon(scope.cancel)
            soon(own_task().cancel)
            await sleep_for_ever()
        return scope.is_task_cancelled, scope.cancelled_caught, own_task().uncancel()

    assert asyncio.run(main()) == (True, False, 0)


def test_something_awaited_may_be_cancelled():
    async def main():
        scope = CancelScope(own_task())
        future = asyncio.get_running_loop().create_future()
        with pytest.raises(asyncio.CancelledError), scope:
            future.cancel()
            await future
        return scope.is_task_cancelled, scope.cancelled_caught

    assert asyncio.run(main()) == (False, False)


@pytest.mark.parametrize("by", ["scope", "task"])
def test_work_that_ignores_a_cancellation(by):
    async def main():
        scope = CancelScope(own_task())
        with scope:
            soon(scope.cancel if by == "scope" else own_task().cancel)
            try:
                await sleep_for_ever()
            except asyncio.CancelledError:
                assert scope.is_task_cancelled == (by == "task")
        assert not scope.cancelled_caught
        return scope.is_task_cancelled, own_task().cancelling()

    assert asyncio.run(main()) == ((False, 0) if by == "scope" else (True, 1))


def test_work_that_cancels_itself_is_cancelled_at_its_next_await():
    async def main():
        passed = []
        with CancelScope(own_task()) as scope:
            scope.cancel()
            passed.append(1)
            await sleep_for_ever()
            passed.append(2)
        return passed, scope.cancelled_caught, own_task().cancelling()

    assert asyncio.run(main()) == ([1], True, 0)


def test_work_that_cancels_itself_and_ends_is_not_cancelled():
    async def main():
        with CancelScope(own_task()) as scope:
            scope.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return scope.cancel_called, scope.cancelled_caught, own_task().cancelling()

    assert asyncio.run(main()) == (True, False, 0)


def test_a_task_cancelled_before_the_scope_delivers_is_cancelled():
    async def main():
        scope = CancelScope(own_task())
        with pytest.raises(asyncio.CancelledError), scope:
            scope.cancel()
            own_task().cancel()
            await sleep_for_ever()
        return scope.is_task_cancelled, own_task().uncancel()

    assert asyncio.run(main()) == (True, 0)


def test_cancel_after_the_end_does_nothing():
    async def main():
        with CancelScope(own_task()) as scope:
            pass
        soon(scope.cancel)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return own_task().cancelling()

    assert asyncio.run(main()) == 0


@pytest.mark.parametrize("by", ["scope", "task", None])
def test_cancellations_from_before_the_work_do_not_count(by):
    async def main():
        task = own_task()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleep_for_ever()
        scope = CancelScope(task, cancellations_before(task))
        try:
            with scope:
                if by is not None:
                    soon(scope.cancel if by == "scope" else task.cancel)
                    await sleep_for_ever()
        except asyncio.CancelledError:
            assert by == "task"
        return scope.cancelled_caught, scope.is_task_cancelled, task.cancelling()

    expected = {"scope": (True, False, 1), "task": (False, True, 2), None: (False, False, 1)}
    assert asyncio.run(main()) == expected[by]


def test_a_cancellation_still_to_be_raised_is_not_from_before():
    async def main():
        task = own_task()
        before = cancellations_before(task)
        task.cancel()
        pending = cancellations_before(task)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        return before, pending, cancellations_before(task)

    assert asyncio.run(main()) == (0, 0, 1)


@pytest.mark.parametrize("is_pending", [False, True])
def test_an_ignored_cancellation_is_raised_once(is_pending):
    async def main():
        task = own_task()
        if is_pending:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await raise_cancelled()
        await asyncio.sleep(0)

    asyncio.run(main())


def test_scopes_can_be_nested():
    async def main():
        outer, inner = CancelScope(own_task()), CancelScope(own_task())
        passed = []
        with outer:
            with inner:
                soon(outer.cancel)
                await sleep_for_ever()
            passed.append("the inner scope does not end the outer one's cancellation")
        return passed, outer.cancelled_caught, inner.cancelled_caught, own_task().cancelling()

    assert asyncio.run(main()) == ([], True, False, 0)
