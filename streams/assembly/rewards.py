"""Which call gets which reward, and what the rollout earned as a whole."""

from collections.abc import Mapping, Sequence

from headrace.schemas.records import Reward
from headrace.streams.assembly.loose import as_list, read_text
from headrace.streams.assembly.order import OrderBy, PlacedReward, ending
from headrace.streams.assembly.reward_forms import EVALUATED_RESPONSE, LINKS, OPERATION_SPAN, OPERATION_TRACE
from headrace.streams.assembly.settings import RewardPolicy
from headrace.streams.assembly.tree import family
from headrace.streams.assembly.values import Call, Node

PRIMARY = "primary"


def totals(rewards: Sequence[PlacedReward]) -> tuple[float | None, dict[str, float]]:
    """The final reward (the last primary one; None if there is none) and the last value of each name."""
    final: float | None = None
    by_name: dict[str, float] = {}
    for placed in rewards:
        reward = placed.reward.record
        if reward.primary:
            final = reward.value
        if name := reward.name or (PRIMARY if reward.primary else ""):
            by_name[name] = reward.value
    return final, by_name


def give_rewards(
    rewards: Sequence[PlacedReward], calls: Sequence[Call], nodes: Sequence[Node], by: OrderBy, policy: RewardPolicy
) -> None:
    """Set `reward` on the calls that the policy gives one.

    A reward that names a call, or a step above calls, goes there under every policy. Under `first_occurrence` each
    other primary reward goes to the latest call that ended before it and has none; `first_sibling` looks only among
    the calls beside the reward operation. `final_only` gives the last primary reward to the last call that gives a
    triplet, `explicit` gives nothing else.
    """
    takers = [call for call in calls if call.takes_reward]
    if not takers:
        return
    if len(takers) > 1:
        takers.sort(key=lambda call: ending(call, by), reverse=True)
    primary = [placed for placed in rewards if placed.reward.record.primary]
    for placed in primary:
        reward = placed.reward.record
        if names_target(reward):
            target = _named(reward, takers, nodes)
            if target is not None:
                target.reward = reward.value
            continue
        if policy in ("final_only", "explicit"):
            continue
        beside = _beside(reward, nodes) if policy == "first_sibling" else None
        for call in takers:
            if (
                call.reward is None
                and placed.follows(call, by)
                and (beside is None or any(family(copy) == beside for copy in call.copies))
            ):
                call.reward = reward.value
                break
    if policy == "final_only" and primary and not names_target(final := primary[-1].reward.record):
        last = next((call for call in reversed(calls) if call.reason is None), None)
        if last is not None:
            last.reward = final.value


def names_target(reward: Reward) -> bool:
    """Whether the reward says itself what it judges."""
    return reward.span_id is not None or LINKS in reward.metadata or EVALUATED_RESPONSE in reward.metadata


def _named(reward: Reward, takers: Sequence[Call], nodes: Sequence[Node]) -> Call | None:
    """The call a reward names, or the last call below the step it names; `takers` are the latest first."""
    if reward.span_id is not None:
        targets = [node for node in nodes if node.span.span_id == reward.span_id]
    else:
        read = map(as_list, as_list(read_text(reward.metadata.get(LINKS, "[]"))))
        links = [(str(pair[0]), str(pair[1])) for pair in read if len(pair) == 2]
        targets = [node for node in nodes if links and all(_matches(node, key, value) for key, value in links)]
    for call in takers:
        if any(node in call.copies for node in targets):
            return call
    for call in takers:
        if any(ancestor in targets for copy in call.copies for ancestor in copy.ancestors()):
            return call
    return None


def _matches(node: Node, key: str, value: str) -> bool:
    """Whether a span is the one that a link's key and value point at."""
    if key in ("span_id", "trace_id"):
        return value == (node.span.span_id if key == "span_id" else node.span.trace_id)
    if key == EVALUATED_RESPONSE and node.call is not None and node.call.response_id == value:
        return True
    found = node.attributes.get(key)
    return found is not None and str(found) == value


def _beside(reward: Reward, nodes: Sequence[Node]) -> tuple[str, str] | None:
    """The family of the operation that gave the reward; None for a reward that no span of the attempt gave."""
    operation = (reward.metadata.get(OPERATION_TRACE), reward.metadata.get(OPERATION_SPAN))
    for node in nodes:
        if (node.span.trace_id, node.span.span_id) == operation:
            return family(node)
    return None


def choice_of_reward(call: Call, contexts: Mapping[int, bytes], later_prompts: Sequence[bytes]) -> int:
    """Which choice of a call gets its reward: the one that a later prompt continues, else the first.

    Args:
        contexts: prompt and response of each choice that gives a triplet, by position in `call.choices`.
        later_prompts: the prompts of the calls after this one.
    """
    for position, context in contexts.items():
        if any(prompt.startswith(context) for prompt in later_prompts):
            return position
    return next(iter(contexts))
