"""The records of a closed rollout, made one trajectory. Pure: the same records give the same trajectory."""

from collections import Counter
from collections.abc import Sequence

from headrace.schemas.records import Diagnostics, LogPosition, Trajectory, Triplet, VersionRange
from headrace.streams.assembly.drop import (
    DUPLICATE,
    INSIDE_REWARD,
    NO_MODEL_CALL,
    SUPERSEDED,
    judge_call,
    undelivered_calls,
)
from headrace.streams.assembly.merge import merge_copies
from headrace.streams.assembly.messages.read import conversation_json
from headrace.streams.assembly.names import may_tell_name, own_agent_name
from headrace.streams.assembly.order import OrderBy, call_order, order_of, place_rewards
from headrace.streams.assembly.prompts import pack_prompts
from headrace.streams.assembly.recognise import is_model_call, read_call
from headrace.streams.assembly.records import LoggedReward, LoggedSpan, Positions, RolloutRecords
from headrace.streams.assembly.reward_forms import is_reward_operation, tells_rewards
from headrace.streams.assembly.rewards import choice_of_reward, give_rewards, totals
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.tree import adopt_floating, below_reward_operation, link_parents, nearest_agent_name
from headrace.streams.assembly.values import Call, Node, span_attributes
from headrace.streams.ends import Attempt

LOGPROBS_MISFIT = "logprobs_misfit"


class AttemptCalls:
    """The spans of one attempt, read: nodes, calls (copies merged) and their order."""

    __slots__ = ("by", "calls", "duplicates", "nodes")

    def __init__(self, spans: Sequence[LoggedSpan], settings: AssemblySettings) -> None:
        nodes = [Node(span, index) for index, span in enumerate(spans)]
        found: list[Call] = []
        named = judged = False
        for node in nodes:
            span = node.span
            call = node.call = read_call(node)
            if span.llm is None or may_tell_name(span.attributes):
                node.name = own_agent_name(span.name, node.attributes)
                named = named or node.name is not None
            if call is not None:
                found.append(call)
            elif tells_rewards(span) and is_reward_operation(span.name, node.attributes):
                node.operation = judged = True
        link_parents(nodes)
        if len(found) < len(nodes) and (named or judged):
            adopt_floating(nodes)
        calls = merge_copies(found)
        self.duplicates = [copy for call in calls for copy in call.copies if copy is not call.node]
        self.nodes = nodes
        self.by: OrderBy = order_of(nodes)
        if len(calls) > 1 and (self.by is not OrderBy.LOG or self.duplicates):  # else they are in order
            calls.sort(key=lambda call: call_order(call, self.by))
        if self.duplicates:
            for call in calls:
                for copy in call.copies:
                    copy.call = call
        if named:
            for call in calls:
                call.agent_name = _agent_name(call)
        lost = undelivered_calls(calls)
        for call in calls:
            inside = judged and any(map(below_reward_operation, call.copies))
            judge_call(call, settings, inside, bool(lost) and any(call is other for other in lost))
        self.calls = calls


def read_attempt(records: RolloutRecords, settings: AssemblySettings, limit: Positions | None = None) -> AttemptCalls:
    """The calls of the attempt that makes the trajectory, dropped ones too."""
    return AttemptCalls(_split(records, records.judge.chosen, limit)[0], settings)


def assemble(
    records: RolloutRecords,
    settings: AssemblySettings,
    *,
    assembled_at: int,
    limit: Positions | None = None,
    revision: int = 0,
    supersedes: LogPosition | None = None,
    counters: Counter[str] | None = None,
) -> Trajectory:
    """The trajectory of a closed rollout, from its latest attempt that succeeded, else from its latest.

    Args:
        records: what was read of the rollout.
        settings: how to assemble.
        assembled_at: microseconds since the epoch.
        limit: the barrier; records beyond it are late and left out.
        revision: 0, then one more for each late reward.
        supersedes: where the revision before lies.
        counters: takes what is counted without a call being dropped.

    Raises:
        ValueError: no end closes the rollout.
    """
    judge = records.judge
    closing = judge.closing
    if closing is None:
        raise ValueError(f"rollout {records.rollout_id} is open")
    attempt = judge.chosen
    spans, others = _split(records, attempt, limit)
    read = AttemptCalls(spans, settings)
    rewards = place_rewards(_rewards_of(records, attempt, limit), read.by)
    final, by_name = totals(rewards)
    give_rewards(rewards, read.calls, read.nodes, read.by, settings.reward_policy)

    dropped: dict[str, int] = {}
    if others and (superseded := sum(is_model_call(s.record, span_attributes(s.record)) for s in others)):
        dropped[SUPERSEDED] = superseded
    if read.duplicates:
        inside = sum(map(below_reward_operation, read.duplicates))
        counted = {INSIDE_REWARD: inside, DUPLICATE: len(read.duplicates) - inside}
        dropped |= {reason: n for reason, n in counted.items() if n}
    kept: list[Call] = []
    for call in read.calls:
        if call.reason is None:
            kept.append(call)
        else:
            dropped[call.reason] = dropped.get(call.reason, 0) + 1
    total = len(kept) + sum(dropped.values())
    if not read.calls:
        dropped[NO_MODEL_CALL] = 1

    triplets = _triplets(kept, counters)
    pack_prompts(triplets)
    facts = judge.facts
    policy, versions = _policy(kept)
    trajectory = Trajectory(
        rollout_id=records.rollout_id,
        attempt_id=attempt.attempt_id if attempt is not None else None,
        session_id=_session_id(records),
        status=attempt.end.type if attempt is not None and attempt.end is not None else closing.type,
        triplets=triplets,
        final_reward=final,
        rewards=by_name,
        policy=policy,
        policy_version=versions,
        diagnostics=Diagnostics(calls=total, kept=len(kept), dropped=dropped),
        revision=revision,
        supersedes=supersedes,
        source=records.source(limit),
        assembled_at=assembled_at,
    )
    if settings.conversations:
        trajectory.conversations = conversation_json(kept, read.nodes)
    for node in read.nodes:
        node.call = None  # calls and nodes name each other: freed at once, they are no work for the garbage collector
    if facts is not None:
        trajectory.group_id, trajectory.group_size = facts.group_id, facts.group_size
        trajectory.sample_index, trajectory.mode, trajectory.run_id = facts.sample_index, facts.mode, facts.run_id
        trajectory.origin, trajectory.input, trajectory.resources_id = facts.origin, facts.input, facts.resources_id
    return trajectory


def _split(
    records: RolloutRecords, attempt: Attempt | None, limit: Positions | None
) -> tuple[list[LoggedSpan], list[LoggedSpan]]:
    """The spans of the attempt and those of the others. A span without an attempt is of the one under way then."""
    spans = records.spans_before(limit)
    chosen = attempt.attempt_id if attempt is not None else None
    ours: list[LoggedSpan] = []
    others: list[LoggedSpan] = []
    if len(records.started_at) <= 1:
        only = next(iter(records.started_at), None) or chosen
        for span in spans:
            owner = span.record.attempt_id
            (ours if (only if owner is None else owner) == chosen else others).append(span)
        return ours, others
    for span in spans:
        owner = span.record.attempt_id
        if owner is None:
            owner = _under_way(records, span.at) or chosen
        (ours if owner == chosen else others).append(span)
    return ours, others


def _under_way(records: RolloutRecords, at: int) -> str | None:
    """The attempt that had started last at an append time; the first one for what came before all."""
    started = records.started_at
    before = [attempt_id for attempt_id, start in started.items() if start <= at]
    return before[-1] if before else next(iter(started))


def _rewards_of(records: RolloutRecords, attempt: Attempt | None, limit: Positions | None) -> list[LoggedReward]:
    """The rewards of the attempt; one that names no attempt belongs to the rollout."""
    chosen = attempt.attempt_id if attempt is not None else None
    return [reward for reward in records.rewards_before(limit) if reward.record.attempt_id in (None, chosen)]


def _agent_name(call: Call) -> str | None:
    for node in sorted(call.copies, key=lambda copy: -len(copy.ancestors())) if len(call.copies) > 1 else call.copies:
        name = nearest_agent_name(node)
        if name is not None:
            return name
    return None


def _triplets(kept: Sequence[Call], counters: Counter[str] | None) -> list[Triplet]:
    """One a call and choice, with whole prompts; the reward on one choice of its call."""
    triplets: list[Triplet] = []
    for position, call in enumerate(kept):
        prompt = call.prompt or b""
        usable = {i: choice for i, choice in enumerate(call.choices) if choice.tokens}
        rewarded = -1
        if call.reward is not None:
            rewarded = next(iter(usable))
            if len(usable) > 1:
                contexts = {i: prompt + (choice.tokens or b"") for i, choice in usable.items()}
                rewarded = choice_of_reward(call, contexts, [later.prompt or b"" for later in kept[position + 1 :]])
        for i, choice in usable.items():
            if choice.logprobs_misfit and counters is not None:
                counters[LOGPROBS_MISFIT] += 1
            triplets.append(
                Triplet(
                    prompt_token_ids=prompt,
                    response_token_ids=choice.tokens or b"",
                    logprobs=choice.logprobs,
                    reward=call.reward if i == rewarded else None,
                    agent_name=call.agent_name,
                    response_id=call.response_id,
                    span_id=call.node.span.span_id,
                    choice=choice.index,
                    model=call.model,
                    policy=call.policy,
                    policy_version=call.policy_version,
                    sampling=call.sampling,
                    logprobs_mode=call.logprobs_mode,
                    finish_reason=choice.finish_reason,
                )
            )
    return triplets


def _policy(kept: Sequence[Call]) -> tuple[str | None, VersionRange | None]:
    """The policy that all calls share, and the range of versions over those that have one."""
    if len(kept) == 1:
        return kept[0].policy, kept[0].policy_version
    if not kept:
        return None, None
    policy = kept[0].policy
    span: VersionRange | None = None
    for call in kept:
        if call.policy != policy:
            return None, None
        version = call.policy_version
        if version is None or version is span:
            continue
        if span is None:
            span = version
        elif version.min < span.min or version.max > span.max:
            span = VersionRange(min=min(span.min, version.min), max=max(span.max, version.max))
    return policy, span


def _session_id(records: RolloutRecords) -> str | None:
    facts = records.judge.facts
    if facts is not None and facts.session_id is not None:
        return facts.session_id
    for span in records.spans.values():
        if span.record.session_id is not None:
            return span.record.session_id
    return None
