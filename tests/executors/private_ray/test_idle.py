"""When a supervisor may end."""

import asyncio

from pitchpipe.executors.private_ray.supervisor import IdleClock
from pitchpipe.executors.simulated import VirtualClock


async def waiting_until_idle(idle: IdleClock) -> asyncio.Task[None]:
    """Wait for the end as a supervisor does; return that task when the idle time has begun."""
    waiting = asyncio.create_task(idle.wait(list))
    idle.release()
    async with asyncio.timeout(5.0):
        while not idle.is_idle:
            await asyncio.sleep(0)
    return waiting


async def test_leaves_at_once_when_the_last_lease_wanted_that() -> None:
    idle = IdleClock()
    idle.lease(0.0)
    idle.lease(0.0)
    waiting = asyncio.create_task(idle.wait(list))
    idle.release()
    await asyncio.sleep(0)
    assert not waiting.done()
    idle.release()
    await asyncio.wait_for(waiting, 5.0)


async def test_stays_while_agents_live_and_no_manager_does() -> None:
    looks = [["exp/a"], ["exp/a"], []]
    idle = IdleClock()
    idle.lease(0.0)
    idle.release()
    await asyncio.wait_for(idle.wait(lambda: looks.pop(0)), 5.0)
    assert looks == []


def test_largest_timeout_of_a_busy_period_counts():
    idle = IdleClock()
    idle.lease(5.0)
    idle.lease(300.0)
    idle.lease(0.0)
    assert idle.timeout == 300.0


async def test_timeout_is_that_of_the_next_busy_period_after_an_idle_one() -> None:
    idle = IdleClock(VirtualClock())
    idle.lease(3000.0)
    waiting = await waiting_until_idle(idle)
    idle.lease(0.0)
    assert idle.timeout == 0.0
    idle.release()
    await asyncio.wait_for(waiting, 5.0)


async def test_idle_time_begins_with_the_end_of_the_last_lease() -> None:
    clock = VirtualClock()
    idle = IdleClock(clock)
    idle.lease(10.0)
    clock.advance_to(1000.0)
    waiting = await waiting_until_idle(idle)
    assert not waiting.done()
    waiting.cancel()
