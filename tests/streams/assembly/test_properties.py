"""What holds for any traces, however odd."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.records import AttemptEvent, Span, SpanStatus, TaskFacts, Trajectory
from headrace.streams.assembly.messages.read import read_conversation
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.reward_forms import read_rewards
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble, read_attempt
from headrace.streams.assembly.values import span_attributes
from tests.streams.assembly.odd import KEYS, TEXTS

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 2**40)
    | st.floats(-2, 2)
    | st.sampled_from([10**400, 2**64, {"doubleValue": 10**400}])
    | st.sampled_from(TEXTS),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "id", "0"]), below),
    max_leaves=6,
)
IDS = tuple("abcdefgh")


@st.composite
def spans(draw: st.DrawFn) -> list[Span]:
    found: list[Span] = []
    for i in range(draw(st.integers(0, 7))):
        start = draw(st.integers(1, 50))
        found.append(
            Span(
                rollout_id="ro",
                attempt_id=draw(st.sampled_from(["at", "at", "other", None])),
                sequence=draw(st.none() | st.integers(0, 5)),
                source=draw(st.sampled_from(["otlp", "gateway", "runner"])),
                trace_id="t",
                span_id=IDS[i],
                parent_id=draw(st.none() | st.sampled_from(IDS)),
                name=draw(st.sampled_from(["x", "litellm_request", "openai.chat.completion", "agentlightning.reward"])),
                status=SpanStatus(code=draw(st.sampled_from(["UNSET", "OK", "ERROR"]))),
                start=start,
                end=start + draw(st.integers(-2, 30)),
                attributes=json.dumps(draw(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=9))),
                events=draw(st.sampled_from(["[]", '[{"name": "gen_ai.choice", "attributes": {"message": 5}}]', "5"])),
            )
        )
    return found


def rollout(given_spans: list[Span]) -> RolloutRecords:
    records = RolloutRecords("ro")
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="at", type="started", task=TaskFacts(), at=0), 0, 0)
    for offset, span in enumerate(given_spans):
        records.add_span(span, offset, offset)
        for reward in read_rewards(span, span_attributes(span)).rewards:
            records.add_reward(reward, len(records.rewards), offset)
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="at", type="succeeded", final=True, at=0), 1, 99)
    return records


SETTINGS = st.builds(
    AssemblySettings,
    agent_match=st.sampled_from([None, "plan"]),
    reward_policy=st.sampled_from(["first_occurrence", "first_sibling", "final_only", "explicit"]),
    keep_incomplete=st.booleans(),
    conversations=st.booleans(),
)


def made(given_spans: list[Span], chosen: AssemblySettings) -> Trajectory:
    return assemble(rollout(given_spans), chosen, assembled_at=0)


@settings(max_examples=120, deadline=None)
@given(spans(), SETTINGS)
def test_no_trace_is_too_odd_and_every_call_is_accounted_for(given_spans: list[Span], chosen: AssemblySettings):
    trajectory = made(given_spans, chosen)
    diagnostics = trajectory.diagnostics
    dropped = {reason: n for reason, n in diagnostics.dropped.items() if reason != "no_model_call"}
    assert diagnostics.calls == diagnostics.kept + sum(dropped.values())
    assert len({(t.span_id, t.choice) for t in trajectory.triplets}) == len(trajectory.triplets)
    for triplet in trajectory.triplets:
        assert triplet.response_token_ids
        assert triplet.logprobs is None or len(triplet.logprobs) == len(triplet.response_token_ids)
    assert made(given_spans, chosen) == trajectory


@settings(max_examples=80, deadline=None)
@given(spans())
def test_messages_are_read_from_anything(given_spans: list[Span]):
    read = read_attempt(rollout(given_spans), AssemblySettings())
    for call in read.calls:
        conversation = read_conversation(call, read.nodes)
        assert conversation.answered
        assert all(isinstance(message.role, str) for message in conversation.sent)
