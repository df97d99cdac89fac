"""Hand-made topics for the checker's tests: three rollouts, one of them started again after a lost delivery."""

from dataclasses import replace
from typing import Any

from tests.chaos.entries import Entry, Log

RUN = "run"
PARTITION = 1


class Builder:
    """Appends records with the offsets and times that a broker would give."""

    def __init__(self) -> None:
        self.log = Log()
        self._now = 1_000

    def add(self, topic: str, key: str, value: dict[str, Any], *, partition: int = PARTITION, skip: int = 0) -> Entry:
        """A record; `skip` leaves offsets to markers of transactions."""
        entries: list[Entry] = getattr(self.log, topic)
        offset = max((e.offset + 1 for e in entries if e.partition == partition), default=0) + skip
        self._now += 10
        entry = Entry(partition, offset, self._now, key, value)
        entries.append(entry)
        return entry

    def event(self, rollout_id: str, kind: str, attempt_id: str | None = None, **more: Any) -> Entry:
        """An attempt event."""
        fields = {
            "attempt": 1,
            "delivery": 1,
            "final": False,
            "complete": False,
            "worker_id": "runner-1",
            "lost_reason": None,
            **more,
        }
        return self.add("attempts", rollout_id, {"type": kind, "attempt_id": attempt_id, **fields})

    def state(self, rollout_id: str, status: str) -> Entry:
        """A rollout's state."""
        return self.add("rollouts", rollout_id, {"rollout_id": rollout_id, "status": status})

    def call(self, rollout_id: str, attempt_id: str) -> None:
        """A model call and its reward."""
        number = len(self.log.spans)
        for span_id, llm in ((f"{number}", {"model": "m"}), (f"{number}-step", None)):
            value = {"attempt_id": attempt_id, "trace_id": "t", "span_id": span_id, "llm": llm}
            self.add("spans", rollout_id, value)
        self.add("rewards", rollout_id, {"attempt_id": attempt_id, "primary": True})

    def trajectory(self, rollout_id: str, attempt_id: str | None, *, revision: int = 0, skip: int = 0) -> Entry:
        """A trajectory of a group of three, with one call and a reward."""
        value = {
            "rollout_id": rollout_id,
            "attempt_id": attempt_id,
            "revision": revision,
            "status": "succeeded",
            "diagnostics": {"calls": 1},
            "final_reward": 1.0,
        }
        return self.add("triplets", "g", value, partition=0, skip=skip)

    def step(
        self,
        number: int,
        samples: list[Entry],
        dropped: dict[str, list[Entry]] | None = None,
        *,
        next: int,
        finished: tuple[tuple[int, int], ...] = (),
        trained: bool = True,
    ) -> Entry:
        """A training step, with its publication where it has trained."""
        if trained:
            self.weights(number)
        window = {
            "position": [
                {"partition": 0, "next": next, "finished": [{"first": a, "last": b} for a, b in finished]},
            ],
            "samples": [_position(e) for e in samples],
            "dropped": [{"reason": r, "samples": [_position(e) for e in of]} for r, of in (dropped or {}).items()],
        }
        state = {"uri": "u", "sha256": "s"} if trained else None
        value = {"step": number, "policy_version": number, "window": window, "state": state}
        return self.add("training", RUN, value, partition=0)

    def weights(self, version: int, *, step: int | None = None) -> Entry:
        """A publication."""
        weights = {"weights_id": "w", "policy": "policy", "version": version}
        value = {"resources": {"policy": weights}, "run_id": RUN, "step": version if step is None else step}
        return self.add("resources", f"policy-v{version}-{len(self.log.resources)}", value, partition=0)


def good() -> Builder:
    """A clean log: a succeeds, b is lost once and succeeds then, c fails, is retried and cancelled before that."""
    b = Builder()
    b.add("training", RUN, {"algorithm": "grpo"}, partition=0)
    b.weights(0)
    for rollout_id in "abc":
        b.add("tasks", rollout_id, {"rollout_id": rollout_id, "attempt": 1})
        b.state(rollout_id, "queuing")
        b.event(rollout_id, "started", f"{rollout_id}-1")
    b.event("a", "heartbeat", "a-1")
    b.call("a", "a-1")
    b.event("a", "succeeded", "a-1", final=True, complete=True)
    b.call("a", "a-1")  # after the end: nobody waits for it
    b.state("a", "succeeded")
    b.call("b", "b-1")
    b.event("b", "lost", "b-1")
    b.event("b", "started", "b-1.2", delivery=2, worker_id="runner-2")
    b.event("b", "succeeded", "b-1", final=True)  # of the lost delivery: it does not count
    b.call("b", "b-1.2")
    b.event("b", "succeeded", "b-1.2", final=True, complete=True)
    b.state("b", "succeeded")
    b.event("c", "failed", "c-1")
    b.state("c", "requeuing")
    b.add("tasks", "c", {"rollout_id": "c", "attempt": 2})
    b.event("c", "cancel_requested", None, attempt=0)
    b.event("c", "cancelled", None, final=True)
    b.state("c", "cancelled")
    first = b.trajectory("a", "a-1")
    second = b.trajectory("b", "b-1.2", skip=1)
    third = b.trajectory("c", "c-1", skip=1)
    b.step(0, [], {"no_reward": [third]}, next=0, finished=((3, 5),), trained=False)
    b.step(1, [first, second], next=6)
    return b


def without(log: Log, topic: str, index: int) -> Log:
    """The log without one record."""
    entries: list[Entry] = getattr(log, topic)
    return replace(log, **{topic: [e for e in entries if e is not entries[index]]})


def changed(log: Log, topic: str, index: int, **changes: Any) -> Log:
    """The log with one record's fields changed."""
    entries = list[Entry](getattr(log, topic))
    entry = entries[index]
    entries[index] = replace(entry, value={**(entry.value or {}), **changes})
    return replace(log, **{topic: entries})


def _position(entry: Entry) -> dict[str, int]:
    return {"partition": entry.partition, "offset": entry.offset}
