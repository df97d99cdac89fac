"""Rollouts of two calls as runners and the gateway write them, for runs whose trajectories are made again."""

import json
import random
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import (
    AttemptEvent,
    Choice,
    ModelCall,
    Record,
    Reward,
    Sampling,
    Span,
    TaskFacts,
    VersionRange,
)
from headrace.streams.assembly.loop import AssemblyProcessor
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.kafka.transactional import TransactionalLoop
from headrace.streams.settings import Settings
from tests.trainers.make import POLICY, RUN
from tests.trainers.pipeline import produce, triplets

GROUP = 4
AGENTS = ("planner", "coder")
WAIT_SECONDS = 90.0
VOCABULARY = 48


def rollout(n: int) -> list[Record]:
    """All records of rollout n in the order of the log; its reward is 0 or 1, and that of its first call 0.25."""
    rng = random.Random(n)
    rollout_id, attempt_id = f"ro-{n}", f"at-{n}"
    group = random.Random(f"g{n // GROUP}")
    context = [group.randrange(VOCABULARY) for _ in range(4)]
    facts = TaskFacts(
        group_id=f"g{n // GROUP}", group_size=GROUP, sample_index=n % GROUP, mode="train", run_id=RUN, input=f"{n}"
    )
    records: list[Record] = [
        AttemptEvent(rollout_id=rollout_id, attempt_id=attempt_id, type="started", task=facts, at=0)
    ]
    for call, agent in enumerate(AGENTS):
        answer = [rng.randrange(VOCABULARY) for _ in range(rng.randrange(1, 4))]
        records.append(_call(rollout_id, attempt_id, call, agent, context, answer, rng))
        value = 0.25 if call == 0 else float(rng.random() < 0.5)
        records.append(
            Reward(
                rollout_id=rollout_id,
                attempt_id=attempt_id,
                reward_id=f"rw-{n}-{call}",
                primary=True,
                value=value,
                source="agent",
                at=0,
            )
        )
        context = [*context, *answer, rng.randrange(VOCABULARY)]
    records.append(
        AttemptEvent(rollout_id=rollout_id, attempt_id=attempt_id, type="succeeded", final=True, complete=True, at=0)
    )
    return records


def _call(
    rollout_id: str, attempt_id: str, call: int, agent: str, prompt: list[int], answer: list[int], rng: random.Random
) -> Span:
    text = " ".join(map(str, answer))
    return Span(
        rollout_id=rollout_id,
        attempt_id=attempt_id,
        source="gateway",
        trace_id=f"{rng.getrandbits(120):032x}",
        span_id=f"{rng.getrandbits(60):016x}",
        name=f"chat {POLICY}",
        kind="CLIENT",
        start=call,
        end=call + 1,
        attributes=json.dumps({"gen_ai.operation.name": "chat", "agent.name": agent}),
        llm=ModelCall(
            model=POLICY,
            policy=POLICY,
            policy_version=VersionRange(min=0, max=0),
            response_id=f"{rollout_id}-{call}",
            prompt_token_ids=pack_int32(prompt),
            choices=[
                Choice(
                    index=0,
                    response_token_ids=pack_int32(answer),
                    logprobs=pack_float32([rng.uniform(-4.5, -3.0) for _ in answer]),
                    finish_reason="stop",
                    text=text,
                )
            ],
            sampling=Sampling(),
            logprobs_mode="processed",
            request=json.dumps({"messages": [{"role": "user", "content": f"call {call}"}]}),
            response=json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}),
        ),
    )


def late_reward(n: int) -> Reward:
    """What a grader says of a rollout after it has closed."""
    return Reward(
        rollout_id=f"ro-{n}", reward_id=f"late-{n}", name="late", primary=True, value=0.75, source="grader", at=0
    )


@contextmanager
def assembler(settings: Settings, choices: AssemblySettings | None = None) -> Generator[Callable[[int], None]]:
    """An assembler for the block; what it gives waits until triplets has so many records."""
    loop = TransactionalLoop(settings, AssemblyProcessor(settings, "a", choices), "a")
    thread = threading.Thread(target=loop.run, args=(lambda: None,))
    thread.start()

    def wait(count: int) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while (there := len(triplets(settings))) < count:
            assert time.monotonic() < deadline, f"{there} of {count} trajectories"
            time.sleep(0.1)

    try:
        yield wait
    finally:
        loop.stop()
        thread.join(WAIT_SECONDS)


def assembled(settings: Settings, groups: Iterable[int], choices: AssemblySettings | None = None) -> int:
    """Writes groups of rollouts and has them assembled, some of them twice: rewards came late. How many records."""
    numbers = [n for group in groups for n in range(GROUP * group, GROUP * (group + 1))]
    with assembler(settings, choices) as wait:
        produce(settings, [record for n in numbers for record in rollout(n)])
        wait(len(numbers))
        late = numbers[::5]
        produce(settings, [late_reward(n) for n in late])
        wait(len(numbers) + len(late))
    return len(numbers) + len(late)
