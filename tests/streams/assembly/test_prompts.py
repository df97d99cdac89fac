"""Prompts as references to earlier triplets come back whole."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.schemas.packing import pack_int32
from headrace.schemas.records import PromptPrefix, Triplet
from headrace.streams.assembly.prompts import common_tokens, pack_prompts, whole_prompts

TOKENS = st.lists(st.integers(0, 3), max_size=40)


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[list[int], list[int]]]:
    """Turns whose prompts may begin with any part of an earlier prompt and response."""
    turns: list[tuple[list[int], list[int]]] = []
    for _ in range(draw(st.integers(1, 8))):
        before: list[int] = []
        if turns and draw(st.booleans()):
            prompt, response = draw(st.sampled_from(turns))
            before = (prompt + response)[: draw(st.integers(0, len(prompt) + len(response)))]
        turns.append((before + draw(TOKENS), draw(TOKENS)))
    return turns


def triplet(prompt: list[int], response: list[int]) -> Triplet:
    return Triplet(prompt_token_ids=pack_int32(prompt), response_token_ids=pack_int32(response), span_id="s")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine draws slowly
@given(conversations())
def test_packed_prompts_come_back(turns: list[tuple[list[int], list[int]]]):
    triplets = [triplet(prompt, response) for prompt, response in turns]
    pack_prompts(triplets)
    assert whole_prompts(triplets) == [pack_int32(prompt) for prompt, _ in turns]


def test_a_conversation_is_written_once():
    turns = 30
    triplets = [triplet(list(range(100 * i)), list(range(100 * i, 100 * i + 50))) for i in range(1, turns)]
    pack_prompts(triplets)
    assert sum(len(t.prompt_token_ids) for t in triplets) <= 4 * (100 + 50 * turns)


@pytest.mark.parametrize("prefix", [PromptPrefix(triplet=1, length=0), PromptPrefix(triplet=0, length=5)])
def test_a_reference_to_what_is_not_there_is_refused(prefix: PromptPrefix):
    second = triplet([1], [2])
    second.prompt_prefix = prefix
    with pytest.raises(ValueError):
        whole_prompts([triplet([1, 2], [3, 4]), second])


@given(TOKENS, TOKENS)
def test_common_tokens(a: list[int], b: list[int]):
    expected = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    assert common_tokens(pack_int32(a), pack_int32(b)) == expected
