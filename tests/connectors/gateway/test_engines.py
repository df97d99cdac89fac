"""Which engine is called, and the versions recorded for engines that do not report theirs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web

from headrace.connectors.gateway.engines import Engines
from headrace.connectors.gateway.errors import CallError
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
