"""Which engine is called, and the versions recorded for engines that do not report theirs."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web

from headrace.connectors.gateway.engines import DOWN_SECONDS, STICKY_SLACK, Engines
from headrace.connectors.gateway.errors import CallError
from headrace.connectors.gateway.retry_after import seconds_of
from headrace.schemas.records import WorkerState

StartGateway = Callable[..., Awaitable[Any]]


def engine(name: str, loaded: int | None = 0, policy: str = "policy", started_at: int = 1) -> WorkerState:
    return WorkerState(
        worker_id=name,
        kind="engine",
        host="h",
        pid=1,
        endpoint=f"http://{name}",
        policy=policy,
        loaded_version=loaded,
        status="idle",
        started_at=started_at,
        last_heartbeat_at=1,
    )


def make(*states: WorkerState) -> tuple[Engines, list[WorkerState]]:
    live = list(states)
    engines = Engines(lambda: live)
    engines.refresh()
    return engines, live


async def test_the_newest_version_first_then_the_least_busy() -> None:
    engines, _ = make(engine("a", 1), engine("b", 2), engine("c", 2))
    first = engines.pick(None)
    assert first is not None
    assert first.endpoint in ("http://b", "http://c")
    first.in_flight = 1
    second = engines.pick("policy")
    assert second is not None
    assert {first.endpoint, second.endpoint} == {"http://b", "http://c"}


async def test_an_engine_that_refused_is_passed_over() -> None:
    engines, _ = make(engine("a", 2), engine("b", 1))
    found = engines.pick(None)
    assert found is not None
    engines.mark_down(found)
    other = engines.pick(None)
    assert other is not None
    assert other.endpoint == "http://b"


async def test_the_model_names_the_policy_where_there_are_several() -> None:
    engines, _ = make(engine("a", policy="p"), engine("b", policy="q"))
    found = engines.pick("q")
    assert found is not None
    assert found.endpoint == "http://b"
    with pytest.raises(CallError) as caught:
        engines.pick("gpt-4")
    assert caught.value.status == 404


async def test_versions_come_from_what_was_acknowledged_before_and_what_had_begun() -> None:
    engines, live = make(engine("a", 3))
    (found,) = engines.all()
    before = found.loaded
    live[:] = [msgspec.structs.replace(live[0], loading_version=4)]
    engines.refresh()
    versions = found.versions(before)
    assert versions is not None
    assert (versions.min, versions.max) == (3, 4)
    assert engines.all() == [found]


async def test_who_falls_silent_is_forgotten() -> None:
    engines, live = make(engine("a"))
    live.clear()
    engines.refresh()
    assert engines.pick(None) is None


@pytest.mark.kafka
async def test_a_load_that_began_in_the_middle_of_a_call_is_its_newest_version(
    start_gateway: StartGateway, stub: Any, make_completion: Any
) -> None:
    gateway = await start_gateway()
    announcer = await gateway.announce(stub.url, loaded_version=3)

    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        await announcer.announce(loading_version=4)
        await asyncio.sleep(0.2)
        return web.json_response(make_completion(fields))

    stub.handler = answer
    await gateway.chat()
    versions = (await gateway.span()).llm.policy_version
    assert (versions.min, versions.max) == (3, 4)


async def test_a_rollout_goes_back_to_the_engine_of_its_last_call() -> None:
    engines, live = make(engine("a"), engine("b"), engine("c"))
    chosen = {r: await engines.acquire(None, 0, r) for r in ("r1", "r2", "r3")}
    assert len({found.endpoint for found in chosen.values() if found}) == 3
    for rollout_id, found in reversed(chosen.items()):
        assert found is not None
        found.in_flight = STICKY_SLACK
        assert engines.pick(None, rollout_id) is found
        found.in_flight += 1
        assert engines.pick(None, rollout_id) is not found
        found.in_flight = 0
    first = chosen["r1"]
    assert first is not None
    live[:] = [msgspec.structs.replace(s, loaded_version=1) if s.endpoint != first.endpoint else s for s in live]
    engines.refresh()
    assert engines.pick(None, "r1") is not first  # an older version


async def test_the_rollouts_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.connectors.gateway.engines.REMEMBERED", 2)
    engines, _ = make(engine("a"), engine("b"))
    for rollout_id in ("r1", "r2", "r1", "r3"):
        await engines.acquire(None, 0, rollout_id)
    remembered = engines._last  # pyright: ignore[reportPrivateUsage]
    assert list(remembered) == ["r1", "r3"]


async def test_an_engine_that_goes_on_refusing_is_let_alone_longer() -> None:
    engines, _ = make(engine("a"))
    (found,) = engines.all()

    def pauses(seconds: float, *wanted: float) -> bool:
        began = time.monotonic()
        engines.mark_down(found, *wanted)
        return began + seconds <= found.down_until <= time.monotonic() + seconds

    for seconds in (0.25, 0.5, 1, 2, 2, 2):
        assert pauses(seconds)
        again = found.down_until
        engines.mark_down(found)  # calls that fail together count once
        assert found.down_until - again < DOWN_SECONDS
        found.down_until = 0
    assert pauses(30, 30)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3),
        (" 0.5 ", 0.5),
        ("Thu, 01 Jan 1970 00:01:00 GMT", 40),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0),
        ("soon", None),
        ("-1", None),
        ("", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str, seconds: float | None) -> None:
    assert seconds_of(value, now=20) == seconds
