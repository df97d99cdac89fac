"""When tasks are asked for, and how long a scenario takes where nothing but sleeping takes time. Pure."""

from collections import deque
from heapq import heappop, heappush

from headrace.bench.scenarios import Mode, Scenario, work_of


def tasks_to_ask(scenario: Scenario, asked: int, done: int) -> int:
    """How many tasks are to be asked for now."""
    left = scenario.tasks - asked
    under_way = asked - done
    if scenario.mode is Mode.single:
        return min(left, scenario.in_flight - under_way)
    return min(left, scenario.batch) if under_way < (1 if scenario.mode is Mode.batch else scenario.remaining) else 0


def done_until_next(scenario: Scenario, asked: int) -> int:
    """How many rollouts have to be done until more tasks are asked for, or all is over."""
    if asked >= scenario.tasks:
        return scenario.tasks
    limit = {Mode.batch: 1, Mode.batch_partial: scenario.remaining, Mode.single: scenario.in_flight}[scenario.mode]
    return asked - limit + 1


def ideal_seconds(scenario: Scenario) -> float:
    """The scenario's seconds if a free slot took the next task at once and nothing but the agents' sleeps took time.

    Above `tasks / ceiling` by what the mode leaves slots empty: at the end of a batch most of them wait for the last.
    """
    ends: list[float] = []
    waiting: deque[float] = deque()
    now = 0.0
    asked = done = 0
    while done < scenario.tasks:
        while more := tasks_to_ask(scenario, asked, done):
            for number in range(asked, asked + more):
                waiting.append(work_of(scenario.task(number), scenario.max_rounds, scenario.sleep).seconds)
            asked += more
        while waiting and len(ends) < scenario.slots:
            heappush(ends, now + waiting.popleft())
        now = heappop(ends)
        done += 1
    return now
