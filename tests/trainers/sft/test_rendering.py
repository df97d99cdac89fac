"""Masks by prefix difference, on templates of several kinds, against what templates mark themselves."""

import json
from typing import Any

import pytest

from headrace.schemas.packing import pack_int32
from headrace.schemas.records import Trajectory
from headrace.streams.chat_template import ChatTemplate
from headrace.trainers.batch import TokenRow
from headrace.trainers.sft.rendering import Renderer, RenderError
from headrace.trainers.sft.samples import MARKED, ImitationRules, imitated_rows
from tests.trainers.make import POLICY, triplet

END = "<|im_end|>"
CHATML = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.arguments.a }}</call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MARKING = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.arguments.a }}</call>{% endfor %}"
    "<|im_end|>{% endgeneration %}"
    "{{ '\\n' }}{% else %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Earlier turns lose their thoughts, as Qwen3's and DeepSeek's templates do.
FORGETTING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] }}"
    "{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA2 = (
    "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% elif m.role == 'assistant' %} {{ m.content }}</s>{% endif %}{% endfor %}"
)
PREFILLED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "1 + 1?"},
    {"role": "assistant", "content": "<think>easy</think>2"},
    {"role": "user", "content": [{"type": "text", "text": "and "}, {"type": "text", "text": "2 + 2?"}]},
    {"role": "assistant", "content": "<think>hm</think>4"},
]
CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 5}'}}
WITH_TOOLS: list[dict[str, Any]] = [
    {"role": "user", "content": "add"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "5", "tool_call_id": "c"},
    {"role": "assistant", "content": "It is 5."},
]
TOOLS = [{"type": "function", "function": {"name": "add"}}]
RULES = ImitationRules(policy=POLICY, recorded="own", level="trajectory", vocab_size=300, max_row_tokens=4000)


def encode(text: str) -> list[int]:
    """A character a token, but the ends of turns."""
    ids: list[int] = []
    while text:
        for number, special in enumerate((END, "<|im_start|>", "</s>")):
            if text.startswith(special):
                ids.append(256 + number)
                text = text[len(special) :]
                break
        else:
            ids.append(ord(text[0]))
            text = text[1:]
    return ids


def decode(ids: list[int]) -> str:
    return "".join(chr(i) if i < 256 else (END, "<|im_start|>", "</s>")[i - 256] for i in ids)


def renderer(source: str) -> Renderer:
    return Renderer(ChatTemplate(source, {}), encode, [END, "</s>"])


def calls_of(messages: list[dict[str, Any]], tools: list[Any] | None = None) -> str:
    """A call an assistant turn, as the assembler writes conversations."""
    places = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
    calls = [{"span_id": f"{i}", "choice": 0, "messages": messages[: i + 1], "tools": tools} for i in places]
    return json.dumps(calls)


def rows(source: str, conversations: str, **changes: Any) -> tuple[list[TokenRow], dict[str, int]]:
    made = Trajectory(rollout_id="r", status="succeeded", conversations=conversations, assembled_at=0)
    rules = ImitationRules(**{name: getattr(RULES, name) for name in RULES.__dataclass_fields__} | changes)
    found, refused = imitated_rows(made, rules, renderer(source), rollout=0)
    return found, {reason: n for reason, n in refused.items() if n}


def trained(row: TokenRow) -> str:
    """What is trained, with a bar between what is not."""
    text, last = "", -1
    for place, (token, mask) in enumerate(zip(row.token_ids.tolist(), row.loss_mask, strict=True)):
        if mask:
            text += ("|" if last >= 0 and place != last + 1 else "") + decode([token])
            last = place
    return text


def test_turns_that_continue_each_other_are_one_row() -> None:
    (row,), refused = rows(CHATML, calls_of(CONVERSATION))
    assert trained(row) == f"<think>easy</think>2{END}|<think>hm</think>4{END}"
    assert "and 2 + 2?" in decode(row.token_ids.tolist())
    assert refused == {}


def test_a_template_that_rewrites_earlier_turns_gives_a_row_a_turn() -> None:
    first, second = rows(FORGETTING, calls_of(CONVERSATION))[0]
    assert trained(first) == f"<think>easy</think>2{END}"
    assert trained(second) == f"<think>hm</think>4{END}"
    assert "easy" not in decode(second.token_ids.tolist())


def test_a_turn_may_end_without_a_line_break() -> None:
    conversation = [m for m in CONVERSATION if m["role"] != "system"]
    (row,), _ = rows(LLAMA2, calls_of(conversation))
    assert trained(row) == " <think>easy</think>2</s>| <think>hm</think>4</s>"


def test_tools_are_rendered_and_called() -> None:
    (row,), _ = rows(CHATML, calls_of(WITH_TOOLS, TOOLS))
    assert trained(row) == f"<call>5</call>{END}|It is 5.{END}"
    assert '"name": "add"' in decode(row.token_ids.tolist())


@pytest.mark.parametrize(("messages", "tools"), [(CONVERSATION, None), (WITH_TOOLS, TOOLS)])
def test_masks_are_those_that_a_template_marks(messages: list[dict[str, Any]], tools: list[Any] | None) -> None:
    """The marked spans of the whole conversation against the prefix differences of the same template without marks."""
    (row,), _ = rows(CHATML, calls_of(messages, tools))
    template = ChatTemplate(MARKING, {})
    told = [
        {**m, "content": "".join(p["text"] for p in c) if isinstance(c := m["content"], list) else c or ""}
        for m in messages
    ]
    for message in told:
        if "tool_calls" in message:
            message["tool_calls"] = [{"function": {"arguments": {"a": 5}}}]
    text, spans = template.render_marked(told, tools=tools)
    assert trained(row) == "|".join(text[start:end] for start, end in spans)
    assert decode(row.token_ids.tolist()) == text.removesuffix("\n")
    (marked,), refused = rows(MARKING, calls_of(messages, tools))
    assert (marked.token_ids.tolist(), marked.loss_mask.tolist()) == (row.token_ids.tolist(), row.loss_mask.tolist())
    assert refused == {}


def test_where_mark_and_prefix_differ_the_mark_counts_and_is_counted() -> None:
    generous = MARKING.replace("<|im_end|>{% endgeneration %}", "{% endgeneration %}<|im_end|>")
    (row,), refused = rows(generous, calls_of(CONVERSATION))
    assert trained(row) == "<think>easy</think>2|<think>hm</think>4"
    assert refused == {MARKED: 2}


def test_reasons_of_what_is_left_out() -> None:
    assert rows(PREFILLED, calls_of([*CONVERSATION[:1], {"role": "assistant", "content": "2"}]))[1] == {
        "template_not_prefix": 1
    }
    assert rows("{{ raise_exception('no') }}", calls_of(CONVERSATION))[1] == {"template_refuses": 2}
    assert rows(CHATML, calls_of(CONVERSATION), max_row_tokens=30)[1] == {"too_long": 2}
    assert rows(CHATML, calls_of(CONVERSATION), vocab_size=200)[1] == {"bad_token_ids": 2}
    with pytest.raises(RenderError, match="no assistant message"):
        renderer(CHATML).answers([{"role": "user", "content": "x"}])
    bare = Trajectory(rollout_id="r", status="succeeded", assembled_at=0)
    assert imitated_rows(bare, RULES, renderer(CHATML), rollout=0)[1] == {"no_conversations": 1}
    assert imitated_rows(bare, RULES, None, rollout=0)[1] == {"no_chat_template": 1}
    for conversations in ("{", "[1]", "[{}]", '[{"messages": ["x"]}]'):
        bare.conversations = conversations
        assert imitated_rows(bare, RULES, renderer(CHATML), rollout=0)[1] == {"bad_conversations": 1}


@pytest.mark.parametrize(
    ("recorded", "policy", "source"), [("own", POLICY, "ids"), ("own", "other", "text"), ("always", "other", "ids"),
                                       ("never", POLICY, "text")]
)  # fmt: skip
def test_recorded_ids_are_taken_where_they_are_the_models_own(recorded: str, policy: str, source: str) -> None:
    made = Trajectory(
        rollout_id="r",
        status="succeeded",
        conversations=calls_of(CONVERSATION),
        triplets=[triplet([5, 6], [7, 8], None, policy=policy)],
        assembled_at=0,
    )
    rules = ImitationRules(policy=POLICY, recorded=recorded, level="trajectory", vocab_size=300, max_row_tokens=4000)
    (row,), _ = imitated_rows(made, rules, renderer(CHATML), rollout=3)
    assert (row.token_ids.tobytes() == pack_int32([5, 6, 7, 8])) == (source == "ids")
    assert row.rollout == 3
    if source == "ids":
        assert row.loss_mask.tolist() == [False, False, True, True]
