"""Agent Lightning's store benchmark, version 0.3.0: its seven scenarios and the work of their agent.

The arguments are those of `.github/workflows/benchmark.yml`, the agent that of `tests/benchmark/benchmark_store.py`,
the published rates those of its changelog. What an agent draws comes of its task's name, so that whoever knows the name
knows how long the rollout sleeps.
"""

import random
from dataclasses import dataclass
from enum import StrEnum

REWARD_SHARE = 0.5
FINAL_REWARD = (1.0, 2.0)


class Mode(StrEnum):
    """How tasks are asked for."""

    batch = "batch"  # the next batch when the one before is done
    batch_partial = "batch_partial"  # the next batch when less than `remaining` are under way
    single = "single"  # one by one, at most `in_flight` at once


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One row of the benchmark.

    Attributes:
        batch: tasks asked for at once.
        remaining: of `batch_partial`.
        in_flight: of `single`.
        slots: rollouts that run at once, Agent Lightning's number of runners.
        max_rounds: an agent works 1 to so many rounds.
        sleep: seconds that each of its steps sleeps at most.
        published: rollouts a second that Agent Lightning 0.3.0 names for its stores, by store.
    """

    name: str
    mode: Mode
    tasks: int
    batch: int = 1
    remaining: int = 0
    in_flight: int = 0
    slots: int
    max_rounds: int
    sleep: float
    published: dict[str, float]

    @property
    def ceiling(self) -> float:
        """Rollouts a second if all slots slept all the time."""
        rounds = (1 + self.max_rounds) / 2
        return self.slots / (self.sleep * (rounds + 0.5))

    def task(self, number: int) -> str:
        """The name of a task."""
        return f"{self.name}-task-{number}"


SCENARIOS: dict[str, Scenario] = {
    s.name: s
    for s in (
        Scenario(
            name="minimal",
            mode=Mode.batch,
            tasks=4096,
            batch=256,
            slots=32,
            max_rounds=6,
            sleep=0.5,
            published={"memory": 9.06, "mongo": 8.71},
        ),
        Scenario(
            name="medium",
            mode=Mode.batch,
            tasks=10_000,
            batch=1000,
            slots=100,
            max_rounds=10,
            sleep=0.1,
            published={"memory": 23.26, "mongo": 32.79},
        ),
        Scenario(
            name="mid-high",
            mode=Mode.batch,
            tasks=20_000,
            batch=2048,
            slots=300,
            max_rounds=6,
            sleep=0.1,
            published={"memory": 24.42, "mongo": 40.24},
        ),
        Scenario(
            name="large",
            mode=Mode.batch,
            tasks=50_000,
            batch=8192,
            slots=1000,
            max_rounds=3,
            sleep=0.1,
            published={"memory": 14.60, "mongo": 50.05},
        ),
        Scenario(
            name="long-queue",
            mode=Mode.batch_partial,
            tasks=50_000,
            batch=1024,
            remaining=4096,
            slots=256,
            max_rounds=4,
            sleep=0.1,
            published={"memory": 30.86, "mongo": 57.01},
        ),
        Scenario(
            name="high-concurrency",
            mode=Mode.single,
            tasks=50_000,
            in_flight=2048,
            slots=256,
            max_rounds=2,
            sleep=0.1,
            published={},
        ),
        Scenario(
            name="heavy",
            mode=Mode.batch_partial,
            tasks=10_000,
            batch=1024,
            remaining=256,
            slots=512,
            max_rounds=20,
            sleep=1.0,
            published={"memory": 13.28, "mongo": 29.41},
        ),
    )
}


@dataclass(frozen=True)
class Work:
    """What one agent does.

    Attributes:
        sleeps: seconds; two a round, and one of the final step.
        rewards: one a round, None for none.
        told: the round whose first step carries the task's name.
    """

    sleeps: tuple[float, ...]
    rewards: tuple[float | None, ...]
    told: int
    final_reward: float

    @property
    def seconds(self) -> float:
        """How long the agent sleeps."""
        return sum(self.sleeps)

    @property
    def spans(self) -> int:
        """How many spans it writes."""
        return 3 * len(self.rewards) + 1


def work_of(task: str, max_rounds: int, sleep: float) -> Work:
    """The work of a task."""
    draw = random.Random(task)
    rounds = draw.randint(1, max_rounds)
    told = draw.randrange(rounds)
    return Work(
        sleeps=tuple(draw.uniform(0.0, sleep) for _ in range(2 * rounds + 1)),
        rewards=tuple(draw.random() if draw.random() < REWARD_SHARE else None for _ in range(rounds)),
        told=told,
        final_reward=draw.uniform(*FINAL_REWARD),
    )
