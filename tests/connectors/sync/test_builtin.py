"""The builtin engine behind gateway and sync, all by their public commands: spans hold what the model computed."""

import asyncio
import hashlib
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
import torch
from safetensors.torch import load_file, save_file

from headrace.demo.tasks import PICK_DIGIT
from headrace.demo.tinymodel.create import create_model
from headrace.schemas.packing import float32_array, unpack_int32
from headrace.schemas.records import ResourcesUpdate, Span, Weights
from headrace.streams.codec import Codec
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from tests.processes import running

pytestmark = [pytest.mark.alone, pytest.mark.kafka, pytest.mark.slow]
PUBLICATIONS, CALLERS, TOLERANCE = 20, 64, 1e-5


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("models") / "tiny"
    create_model(directory, PICK_DIGIT, seed=1, steps=5)
    return directory


@pytest.fixture
def checkpoint(model: Path, tmp_path: Path) -> Callable[[int], Weights]:
    """Writes version n: the model with noise of its own."""

    def write(version: int) -> Weights:
        directory = tmp_path / f"v{version}"
        directory.mkdir()
        generator = torch.Generator().manual_seed(version)
        tensors = load_file(model / "model.safetensors")
        changed = {k: t + 0.05 * torch.randn(t.shape, generator=generator) for k, t in tensors.items()}
        save_file(changed, directory / "model.safetensors", metadata={"format": "pt"})
        (directory / "config.json").write_bytes((model / "config.json").read_bytes())
        digest = hashlib.sha256((directory / "model.safetensors").read_bytes()).hexdigest()
        return Weights(
            policy="policy",
            version=version,
            weights_id=f"w{version}",
            uri=str(directory),
            sha256={"model.safetensors": digest},
        )

    return write


@cache
def judge(directory: str) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()


@cache
def recomputed(directory: str, prompt: tuple[int, ...], response: tuple[int, ...], temperature: float) -> Any:
    """Log-probabilities of the response by transformers alone."""
    with torch.no_grad():
        logits = judge(directory)(torch.tensor([[*prompt, *response]])).logits[0, len(prompt) - 1 : -1]
    table = (logits / temperature).log_softmax(-1)
    return table.gather(1, torch.tensor(response)[:, None])[:, 0].numpy()


def spans_of(settings: Settings) -> list[Span]:
    codec = Codec(settings)
    messages = read_topic(settings, settings.topic("spans"), range(settings.partitions), client_id="test")
    return [codec.decode_as(Span, message.value()) for message in messages]


async def publish(producer: AckedProducer, weights: Weights) -> None:
    await producer.send(
        ResourcesUpdate(
            resources_id=uuid.uuid4().hex,
            name=weights.policy,
            version=weights.version,
            resources={weights.policy: weights},
            created_at=1,
        )
    )


@pytest.mark.timeout(300)
async def test_every_answer_is_that_of_the_version_recorded(
    settings: Settings, model: Path, checkpoint: Callable[[int], Weights]
) -> None:
    with ExitStack() as stack:
        ready = await asyncio.to_thread(
            lambda: [
                stack.enter_context(running(settings, *command))
                for command in (("engine", "builtin", str(model)), ("gateway", "--policy", "policy"), ("sync",))
            ]
        )
        gateway = ready[1]["url"]
        producer = AckedProducer(settings, "test", linger_ms=0)
        published = {0: str(model)}
        done = asyncio.Event()
        answers: dict[str, Any] = {}
        shared = openai.AsyncOpenAI(api_key="none", base_url=gateway, max_retries=0)

        async def calls(caller: int) -> None:
            number = 0
            while not done.is_set() or number < 2:
                rollout = f"{caller}-{number}"
                client = shared.with_options(base_url=f"{gateway}/rollout/{rollout}/attempt/{rollout}/v1")
                answers[rollout] = await client.chat.completions.create(
                    model="policy",
                    messages=[{"role": "user", "content": f"Please pick the digit {caller % 10}."}],
                    max_tokens=4,
                    temperature=0.5 + (caller % 3) / 2,
                    logprobs=True,
                    extra_body={"return_token_ids": True},
                )
                number += 1

        calling = [asyncio.create_task(calls(caller)) for caller in range(CALLERS)]
        for version in range(1, PUBLICATIONS + 1):
            weights = await asyncio.to_thread(checkpoint, version)
            published[version] = weights.uri
            await publish(producer, weights)
            await asyncio.sleep(0.1)
        done.set()
        await asyncio.gather(*calling)
        await shared.close()
        await producer.close()
        spans = await asyncio.to_thread(spans_of, settings)
    assert {span.rollout_id for span in spans} == answers.keys()
    versions: Counter[int] = Counter()
    for span in spans:
        call, answer = span.llm, answers[span.rollout_id]
        assert call is not None
        assert call.policy_version is not None
        assert call.sampling is not None
        assert call.policy_version.min == call.policy_version.max
        (choice,) = call.choices
        prompt, response = unpack_int32(call.prompt_token_ids), unpack_int32(choice.response_token_ids)
        assert (prompt, response) == (answer.prompt_token_ids, answer.choices[0].token_ids)
        given = [entry.logprob for entry in answer.choices[0].logprobs.content]
        recorded = float32_array(choice.logprobs or b"")
        assert np.array_equal(recorded, np.array(given, dtype=np.float32))
        version = call.policy_version.min
        versions[version] += 1
        expected = recomputed(published[version], tuple(prompt), tuple(response), call.sampling.temperature)
        assert np.abs(recorded - expected).max() < TOLERANCE
    assert max(versions) == PUBLICATIONS
    assert len(versions) > PUBLICATIONS // 2
