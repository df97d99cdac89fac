"""Which versions sync loads into which engines, and when."""

import asyncio
from typing import Any

import pytest

pytestmark = pytest.mark.kafka


async def test_every_engine_loads_a_version_within_a_second(
    publications: Any, start_sync: Any, make_engine: Any
) -> None:
    async with make_engine().serving() as one, make_engine().serving() as two:
        await publications.announce(one)
        await publications.announce(two)
        await start_sync()
        await publications.publish(1)
        await asyncio.gather(one.becomes(1), two.becomes(1))
        await publications.publish(2)
        await asyncio.gather(one.becomes(2), two.becomes(2))
        assert one.asked == two.asked == [1, 2]


async def test_versions_that_were_overtaken_are_skipped(publications: Any, start_sync: Any, make_engine: Any) -> None:
    async with make_engine().serving() as engine, make_engine().serving() as other:
        for version in (1, 2, 3):
            await publications.publish(version)
        await publications.announce(engine)
        await publications.announce(other)
        engine.held = True
        await start_sync()
        await engine.reached.wait()
        for version in (4, 5, 6):
            await publications.publish(version)
        await other.becomes(6)  # so all of them were read
        engine.held = False
        await engine.becomes(6)
        assert engine.asked == [3, 6]


async def test_a_refused_version_is_not_tried_again_and_the_next_is(
    publications: Any, start_sync: Any, make_engine: Any
) -> None:
    async with make_engine().serving() as engine:
        engine.broken = {2}
        await publications.announce(engine)
        await start_sync()
        for version in (1, 2, 3):
            await publications.publish(version)
            await engine.until(lambda wanted=version: engine.asked[-1:] == [wanted])
        await engine.becomes(3)
        assert engine.asked == [1, 2, 3]


async def test_an_engine_that_is_down_holds_up_no_other_and_catches_up(
    publications: Any, start_sync: Any, make_engine: Any
) -> None:
    async with make_engine().serving() as engine, make_engine().serving() as other:
        await publications.announce(other)
        await start_sync()
    # `other` and `engine` are closed now; only `engine` comes back at once.
    async with engine.serving():
        await publications.announce(engine)
        await publications.publish(1)
        await engine.becomes(1)
        await publications.publish(2)
        await engine.becomes(2)
        async with other.serving():
            await other.becomes(2)
            assert other.asked == [2]


async def test_an_engine_that_comes_late_gets_the_newest(publications: Any, start_sync: Any, make_engine: Any) -> None:
    await start_sync()
    await publications.publish(7)
    async with make_engine().serving() as engine:
        await publications.announce(engine)
        await engine.becomes(7)


@pytest.mark.parametrize("by_url", [True, False])
async def test_an_engine_started_again_is_brought_up_again(
    publications: Any, start_sync: Any, make_engine: Any, by_url: bool
) -> None:
    async with make_engine().serving() as engine:
        await publications.publish(4)
        await publications.announce(engine)
        await start_sync(engine_urls=(engine.url,) if by_url else ())
        await engine.becomes(4)
        engine.version = 0
        await engine.becomes(4)
        assert engine.asked == [4, 4]


async def test_other_policies_are_left_alone(publications: Any, start_sync: Any, make_engine: Any) -> None:
    async with make_engine().serving() as engine, make_engine().serving() as foreign:
        await publications.announce(engine)
        await publications.announce(foreign, policy="other")
        await start_sync(policy="policy")
        await publications.publish(9, policy="other")
        await publications.publish(1)
        await engine.becomes(1)
        assert (engine.asked, foreign.asked) == ([1], [])
