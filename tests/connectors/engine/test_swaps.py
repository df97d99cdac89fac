"""New weights while requests are answered."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from headrace.connectors.engine.control import EngineUnreachableError, HttpEngineControl, WeightsRefusedError
from headrace.schemas.records import Weights

Start = Callable[..., Any]


@asynccontextmanager
async def _connected(engine: Any) -> AsyncIterator[tuple[aiohttp.ClientSession, HttpEngineControl]]:
    async with aiohttp.ClientSession(engine.url, connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session, HttpEngineControl(engine.url, session)


def _body(i: int, tokens: int) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": f"Please pick the digit {i % 10}."}],
        "seed": i,
        "temperature": 1.3,
        "max_tokens": tokens,
        "ignore_eos": True,
        "logprobs": True,
        "return_token_ids": True,
    }


async def _ask(session: aiohttp.ClientSession, i: int, tokens: int = 12) -> dict[str, Any]:
    async with session.post("/v1/chat/completions", json=_body(i, tokens)) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


class _Long:
    """A streamed answer of up to 900 tokens, known to have begun.

    Attributes:
        token_ids: all of them, once it has ended.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.token_ids: list[int] = []
        self._last: dict[str, Any] = {}
        self._begun = asyncio.Event()
        self._reading = asyncio.create_task(self._read(session))

    async def _read(self, session: aiohttp.ClientSession) -> None:
        async with session.post("/v1/chat/completions", json=_body(1, 900) | {"stream": True}) as answer:
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    chunk = json.loads(line.removeprefix(b"data: "))
                    self.token_ids += chunk["choices"][0].get("token_ids", [])
                    if self.token_ids:
                        self._last = chunk
                        self._begun.set()

    async def begun(self) -> None:
        async with asyncio.timeout(30):
            await self._begun.wait()

    @property
    def goes_on(self) -> bool:
        return not self._reading.done()

    async def ended(self) -> dict[str, Any]:
        """Its last chunk."""
        await self._reading
        return self._last


async def _under_load(engine: Any, versions: list[Weights], tokens: int) -> list[dict[str, Any]]:
    """Answers of 64 clients that ask on and on while the versions are loaded."""
    answers: list[dict[str, Any]] = []
    async with _connected(engine) as (session, control):
        finished = asyncio.Event()

        async def client(i: int) -> None:
            while not finished.is_set():
                answers.append(await _ask(session, i + 64 * len(answers), tokens))

        clients = [asyncio.create_task(client(i)) for i in range(64)]
        for weights in versions:
            before = len(answers)
            loaded = await control.load(weights)
            assert (loaded.version, loaded.weights_id, loaded.changed) == (weights.version, weights.weights_id, True)
            while len(answers) < before + 20:
                assert not any(client.done() for client in clients)
                await asyncio.sleep(0.005)
        finished.set()
        await asyncio.gather(*clients)
    return answers


def _difference(answer: dict[str, Any], judge: Any, directory: str | Path) -> float:
    (choice,) = answer["choices"]
    wanted = judge(directory, answer["prompt_token_ids"], choice["token_ids"], 1.3)
    found = [entry["logprob"] for entry in choice["logprobs"]["content"]]
    return max(abs(a - b) for a, b in zip(found, wanted, strict=True))


async def test_each_answer_was_computed_with_the_version_that_it_names(
    start_engine: Start, publish: Any, judge: Any, model_dir: Path
) -> None:
    versions = [publish(version) for version in range(1, 21)]
    directories: dict[int, Any] = {0: model_dir} | {w.version: w.uri for w in versions}
    answers = await _under_load(start_engine(model_dir), versions, 12)
    for answer in answers:
        stamp = answer["policy_version"]
        assert stamp["min"] == stamp["max"]
        assert answer["weights_id"] == (f"id-{stamp['max']}" if stamp["max"] else None)
    seen = {answer["policy_version"]["max"] for answer in answers}
    assert len(seen) >= 20
    for answer in sorted(answers, key=lambda answer: answer["policy_version"]["max"])[:: len(answers) // 200 + 1]:
        assert _difference(answer, judge, directories[answer["policy_version"]["max"]]) < 1e-5
    other = next(a for a in answers if a["policy_version"]["max"] == 5)
    assert _difference(other, judge, directories[6]) > 1e-3  # the check can fail


async def test_kept_requests_go_on_with_the_new_weights_and_say_so(
    start_engine: Start, publish: Any, judge: Any, model_dir: Path
) -> None:
    engine = start_engine(model_dir, "--in-flight", "keep")
    weights = publish(1)
    async with _connected(engine) as (session, control):
        long = _Long(session)
        await long.begun()
        await control.load(weights)
        assert long.goes_on
        assert (await long.ended())["policy_version"] == {"min": 0, "max": 1}
        assert len(long.token_ids) == 900
        assert _difference(await _ask(session, 2), judge, weights.uri) < 1e-5


async def test_aborted_requests_end_with_what_they_have(start_engine: Start, publish: Any, model_dir: Path) -> None:
    engine = start_engine(model_dir, "--in-flight", "abort")
    async with _connected(engine) as (session, control):
        weights = publish(1)
        long = _Long(session)
        await long.begun()
        await control.load(weights)
        last = await long.ended()
        assert last["choices"][0]["finish_reason"] == "abort"
        assert 0 < len(long.token_ids) < 900
        assert last["policy_version"] == {"min": 0, "max": 0}


async def test_what_is_refused_changes_nothing(start_engine: Start, publish: Any, judge: Any, model_dir: Path) -> None:
    engine = start_engine(model_dir)
    second = publish(2)
    broken = publish(3)
    Path(broken.uri, "model.safetensors").write_bytes(b"not whole")  # noqa: ASYNC240
    away = msgspec.structs.replace(second, version=4, uri="/nowhere")
    async with _connected(engine) as (session, control):
        assert await control.health()
        assert (await control.loaded()).version == 0
        assert (await control.load(second)).changed
        assert not (await control.load(second)).changed  # the same again
        for weights, reason in [
            (broken, "sha256"),
            (away, "uri"),
            (publish(1), "stale_version"),
            (msgspec.structs.replace(second, weights_id="other"), "version_conflict"),
            (msgspec.structs.replace(second, version=9, policy="judge"), "policy"),
            (msgspec.structs.replace(second, version=9, format="lora"), "missing_file"),  # it is no adapter
            (msgspec.structs.replace(second, version=9, transport="nccl"), "transport"),
        ]:
            with pytest.raises(WeightsRefusedError) as refused:
                await control.load(weights)
            assert refused.value.reason == reason
        loaded = await control.loaded()
        assert (loaded.policy, loaded.version, loaded.weights_id) == ("policy", 2, "id-2")
        assert _difference(await _ask(session, 2), judge, second.uri) < 1e-5
        rollback = msgspec.structs.replace(second, version=5)
        assert (await control.load(rollback)).version == 5
        async with session.post("/headrace/load_weights", data=b"{}") as answer:
            assert answer.status == 422
            assert (await answer.json())["error"]["reason"] == "request"


async def test_an_engine_that_is_not_there_is_unreachable() -> None:
    async with aiohttp.ClientSession() as session:
        control = HttpEngineControl("http://127.0.0.1:9", session)
        assert not await control.health()
        with pytest.raises(EngineUnreachableError, match="is the engine running"):
            await control.loaded()
