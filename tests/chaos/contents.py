"""Whether a trajectory has all that was acknowledged before the end of its attempt."""

from collections.abc import Iterable, Iterator, Mapping

from tests.chaos.entries import Entry, Log, Violation, by_key
from tests.chaos.starts import RolloutRead


def check_contents(log: Log, rollouts: Mapping[str, RolloutRead]) -> Iterator[Violation]:
    """Of attempts whose end says that it is `complete`: every model call is counted, and a reward is there if any was.

    A runner waits for the acknowledgement of all of them before it writes such an end, so they stand before it.
    """
    spans, rewards = by_key(log.spans), by_key(log.rewards)
    for trajectory in log.triplets:
        rollout_id = str(trajectory["rollout_id"])
        read = rollouts.get(rollout_id)
        if read is None or (end := read.closing) is None:
            continue
        if trajectory["revision"] or not end["complete"] or end["attempt_id"] != read.chosen:
            continue
        calls = {(e["trace_id"], e["span_id"]) for e in _before(end, spans.get(rollout_id, [])) if e["llm"]}
        counted = int(trajectory["diagnostics"]["calls"])
        if counted < len(calls):
            yield Violation("left_out", rollout_id, f"{counted} of {len(calls)} calls of {end['attempt_id']}")
        rewarded = any(e["primary"] for e in _before(end, rewards.get(rollout_id, [])))
        if rewarded and trajectory["final_reward"] is None:
            yield Violation("left_out", rollout_id, f"the reward of {end['attempt_id']}")


def _before(end: Entry, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Those of the end's attempt that were in the log when it came."""
    return (e for e in entries if e["attempt_id"] == end["attempt_id"] and e.at <= end.at)
