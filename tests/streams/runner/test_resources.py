"""What agents get of published resources, and where their calls go."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headrace import rollout
from headrace.deploy.local.ports import free_ports
from headrace.schemas.records import LLM, PromptTemplate, ProxyLLM, ResourcesUpdate, Weights, WorkerState
from headrace.streams.kafka.clock import wall_us

pytestmark = pytest.mark.kafka


def update(resources_id: str, version: int, **resources: Any) -> ResourcesUpdate:
    return ResourcesUpdate(
        resources_id=resources_id, name="main", version=version, resources=resources, created_at=wall_us()
    )


def weights(version: int) -> Weights:
    return Weights(policy="tuned", version=version, weights_id="w", uri="/nowhere")


async def test_the_newest_publication_or_the_pinned_one(pipeline) -> None:
    seen: dict[str, Any] = {}

    @rollout
    async def agent(task: Any, llm: Any, prompt_template: Any, rollout: Any) -> None:
        seen[rollout.rollout_id] = (llm.base_url, llm.model, dict(llm.sampling_parameters), prompt_template.format())

    pipeline.settings = pipeline.settings.model_copy(update={"gateway": "http://127.0.0.1:1/"})
    proxy = ProxyLLM(endpoint="", model="policy", sampling_parameters='{"temperature": 0.5}')
    pipeline.produce(
        [
            update("one", 1, llm=LLM(endpoint="http://other/v1", model="m"), p=PromptTemplate(template="old")),
            update("two", 2, llm=proxy, p=PromptTemplate(template="new")),
        ]
    )
    ids = pipeline.tasks(1)
    pinned = pipeline.records("tasks")[0]
    pinned.rollout_id, pinned.resources_id = "pinned", "one"
    missing = pipeline.records("tasks")[0]
    missing.rollout_id, missing.resources_id = "missing", "none"
    pipeline.produce([pinned, missing])
    async with pipeline.runner(agent):
        judges = await pipeline.closed([*ids, "pinned", "missing"])
    assert seen["r0"] == ("http://127.0.0.1:1/rollout/r0/attempt/r0-1/v1", "policy", {"temperature": 0.5}, "new")
    assert seen["pinned"] == ("http://other/v1", "m", {}, "old")
    assert judges["r0"].facts.resources_id == "two"
    assert judges["missing"].closing.type == "failed"
    assert "pins resources 'none'" in judges["missing"].closing.error.message


async def test_an_agent_that_asks_for_what_is_not_published_fails_with_the_reason(pipeline) -> None:
    @rollout
    async def agent(task: Any, prompt_template: Any) -> None: ...

    ids = pipeline.tasks(1)
    async with pipeline.runner(agent):
        judges = await pipeline.closed(ids)
    assert judges["r0"].closing.type == "failed"
    assert "asks for a PromptTemplate" in judges["r0"].closing.error.message


@pytest.fixture
async def listening() -> AsyncIterator[str]:
    """The URL of something that takes connections."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def announced(worker_id: str, endpoint: str) -> WorkerState:
    now = wall_us()
    return WorkerState(
        worker_id=worker_id,
        kind="gateway",
        host="h",
        pid=1,
        endpoint=endpoint,
        status="idle",
        started_at=now,
        last_heartbeat_at=now,
    )


async def test_a_gateway_that_was_killed_gets_no_calls(pipeline, listening) -> None:
    seen: list[str] = []

    @rollout
    async def agent(task: Any, llm: Any) -> None:
        seen.append(llm.base_url)

    (dead,) = free_ports(1)
    pipeline.produce([announced("dead", f"http://127.0.0.1:{dead}"), announced("alive", listening)])
    ids = pipeline.tasks(*range(20))
    async with pipeline.runner(agent):
        await pipeline.closed(ids)
    assert len(seen) == 20
    assert {url.split("/rollout/")[0] for url in seen} == {listening}


async def test_a_gateway_that_goes_while_a_start_is_written_is_waited_for(pipeline, listening) -> None:
    seen: list[str] = []

    @rollout
    async def agent(task: Any, llm: Any) -> None:
        seen.append(llm.base_url)

    (dead,) = free_ports(1)
    async with pipeline.runner(agent) as runner:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", dead)
        pipeline.produce([announced("dies", f"http://127.0.0.1:{dead}")])
        await pipeline.until(lambda: runner._gateways.there())
        send = runner._producer.send

        def send_and_lose_the_gateway(record: Any) -> Any:
            server.close()
            runner._gateways._refusing.add(f"http://127.0.0.1:{dead}")
            return send(record)

        runner._producer.send = send_and_lose_the_gateway
        ids = pipeline.tasks(1)
        await pipeline.until(lambda: bool(pipeline.records("attempts")))
        pipeline.produce([announced("comes", listening)])
        judges = await pipeline.closed(ids)
    assert judges["r0"].closing.type == "succeeded"
    assert seen[0].startswith(listening)


async def test_a_gateway_is_waited_for_and_found_through_its_worker_state(pipeline, listening, caplog) -> None:
    seen: list[tuple[str, str]] = []

    @rollout
    async def agent(task: Any, llm: Any) -> float:
        seen.append((llm.base_url, llm.model))
        return 1.0

    ids = pipeline.tasks(1, 2)
    caplog.set_level("INFO")
    async with pipeline.runner(agent, policy="mine"):
        await pipeline.until(lambda: "waiting for a gateway" in caplog.text)
        assert pipeline.records("attempts") == []
        pipeline.produce([announced("g", listening)])
        await pipeline.closed(ids)
        pipeline.produce([update("w", 1, policy=weights(1))])
        later = pipeline.records("tasks")[0]
        later.rollout_id = "later"
        pipeline.produce([later])
        await pipeline.until(lambda: len(seen) == 3)
    assert {m for _, m in seen[:2]} == {"mine"}
    assert seen[0][0].startswith(f"{listening}/rollout/r")
    assert seen[2][1] in ("tuned", "mine")  # the publication may be read a moment later
