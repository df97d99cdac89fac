"""What of the samples of a run can change a step, from the log."""

import hashlib
from collections.abc import Iterable

from headrace.schemas.records import Trajectory
from headrace.streams.assembly.prompts import whole_prompts
from headrace.streams.settings import Settings
from headrace.trainers.groups import At
from headrace.trainers.replay.diff import SampleFacts
from headrace.trainers.replay.reader import SampleReader


def facts_of(trajectory: Trajectory) -> SampleFacts:
    """Of one trajectory."""
    digest = hashlib.sha256()
    for triplet, prompt in zip(trajectory.triplets, whole_prompts(trajectory.triplets), strict=True):
        for part in (prompt, triplet.response_token_ids, triplet.logprobs or b"", repr(triplet.sampling).encode()):
            digest.update(len(part).to_bytes(8, "little") + part)
    rewards = tuple(triplet.reward for triplet in trajectory.triplets)
    return SampleFacts(trajectory.rollout_id, trajectory.final_reward, digest.hexdigest(), rewards)


def read_facts(settings: Settings, positions: Iterable[At]) -> dict[At, SampleFacts]:
    """By position, as far as the log has them; what it holds besides is not kept in memory."""
    wanted = list(positions)
    reader = SampleReader(settings, wanted)
    return {at: facts_of(reader.read([at])[at].trajectory) for at in wanted if at not in reader.gone}
