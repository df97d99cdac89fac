"""What is killed, stopped, added and removed, and when: a pure function of the seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

Op = tuple[float, str, str]
"""Seconds since the first moment of the plan; kill, start, stop, wake or leave; the member's name."""

WEIGHTS = {
    "runner": 6,
    "gateway": 4,
    "engine": 2,
    "sync": 2,
    "lifecycle": 4,
    "assembler": 4,
    "view": 2,
    "trainer": 4,
    "broker": 1,
}
"""How often a part is hit; while the broker is away nothing else goes on."""
MEMBERS = {"runner": 3, "gateway": 2, "lifecycle": 2, "assembler": 2}
"""The most members of a part; parts that are not named have one."""
FIRST = {"runner": 2}
"""The members at the beginning; one where a part is not named."""
KILLS, STOPS = 0.72, 0.16
"""Shares of what happens; the rest are members that come and go."""
LONG_STOPS = 0.35
STOPPED_AT_ONCE = 2
RESTART_SECONDS = 1.0  # a killed process starts again within this
BACK_SECONDS = 20.0  # a member that has left comes back no sooner


@dataclass(frozen=True, kw_only=True)
class PlanSettings:
    """What a plan depends on.

    Attributes:
        kills: how many processes are killed.
        gap: mean seconds between two moments at which something happens.
        short, long: seconds for which a process is stopped; the second outlives a lease.
        parts: those that are disturbed.
    """

    seed: int
    kills: int
    gap: float
    short: float
    long: float
    parts: tuple[str, ...] = tuple(WEIGHTS)


def part_of(name: str) -> str:
    """The part of a member: `runner` of `runner-2`."""
    return name.split("-")[0]


def first_members(parts: tuple[str, ...]) -> list[str]:
    """Who is there at the beginning."""
    return [f"{part}-{n}" for part in parts for n in range(1, FIRST.get(part, 1) + 1)]


def all_members(parts: tuple[str, ...]) -> list[str]:
    """Whoever may ever be there."""
    return [f"{part}-{n}" for part in parts for n in range(1, MEMBERS.get(part, 1) + 1)]


@dataclass
class _Members:
    """Who can be disturbed at a moment."""

    there: set[str]
    away: dict[str, float] = field(default_factory=dict[str, float])  # until when: killed or stopped
    stopped: dict[str, float] = field(default_factory=dict[str, float])
    left: dict[str, float] = field(default_factory=dict[str, float])

    def at(self, now: float) -> None:
        self.away = {n: t for n, t in self.away.items() if t > now}
        self.stopped = {n: t for n, t in self.stopped.items() if t > now}

    def of(self, part: str) -> list[str]:
        return sorted(n for n in self.there if part_of(n) == part and n not in self.away)


def plan(settings: PlanSettings) -> list[Op]:
    """All that happens, in the order of time."""
    return sorted(_ops(settings))


def _ops(settings: PlanSettings) -> Iterator[Op]:
    rng = random.Random(f"chaos {settings.seed}")
    members = _Members(set(first_members(settings.parts)))
    now = 0.0
    left = settings.kills
    while left:
        now = round(now + rng.uniform(0.1, 2 * settings.gap - 0.1), 3)
        members.at(now)
        what = rng.random()
        if what >= KILLS + STOPS:
            change = _change(rng, settings, members, now)
            if change is not None:
                yield change
            continue
        name = _choose(rng, settings, members)
        if name is None:
            continue
        if what < KILLS or len(members.stopped) >= STOPPED_AT_ONCE:
            left -= 1
            again = round(now + rng.uniform(0, RESTART_SECONDS), 3)
            members.away[name] = again
            yield now, "kill", name
            yield again, "start", name
        else:
            until = round(now + (settings.long if rng.random() < LONG_STOPS else settings.short), 3)
            members.away[name] = members.stopped[name] = until
            yield now, "stop", name
            yield until, "wake", name


def _choose(rng: random.Random, settings: PlanSettings, members: _Members) -> str | None:
    parts = [p for p in settings.parts if members.of(p)]
    if not parts:
        return None
    part = rng.choices(parts, [WEIGHTS[p] for p in parts])[0]
    return rng.choice(members.of(part))


def _change(rng: random.Random, settings: PlanSettings, members: _Members, now: float) -> Op | None:
    """A member comes or goes; the first of each part stays."""
    part = rng.choice([p for p in settings.parts if p in MEMBERS] or [""])
    names = [n for n in all_members((part,)) if not n.endswith("-1")] if part else []
    if not names:
        return None
    name = rng.choice(names)
    if name in members.there:
        if name in members.away:
            return None
        members.there.discard(name)
        members.left[name] = now
        return now, "leave", name
    if now - members.left.get(name, -BACK_SECONDS) < BACK_SECONDS:
        return None
    members.there.add(name)
    return now, "start", name
