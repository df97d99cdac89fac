"""Tools: rendered by the template, and read from what the model writes."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.connectors.engine.answers import completion
from headrace.connectors.engine.batching import Generation
from headrace.connectors.engine.chat import ChatTokenizer
from headrace.connectors.engine.chunks import ChunkMaker
from headrace.connectors.engine.protocol import ChatRequest, parse_request, plan
from headrace.connectors.engine.sampling import Sampling
from headrace.connectors.engine.texts import TextStream
from headrace.connectors.engine.tools import ToolReader, held_suffix

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Łódź"}}\n</tool_call>'
OTHER = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
WEATHER, NOW = ("weather", {"city": "Łódź"}), ("now", {})

TEXTS: dict[str, tuple[str, str, list[Any]]] = {
    "none": ("Hello < world", "Hello < world", []),
    "one": (CALL, "", [WEATHER]),
    "words before": (f"Let me see.\n{CALL}", "Let me see.\n", [WEATHER]),
    "two": (f"{CALL}\n{OTHER}\n", "", [WEATHER, NOW]),
    "words after": (f"{CALL}\n Done.", "Done.", [WEATHER]),
    "its end is missing": (CALL.removesuffix("</tool_call>"), "", [WEATHER]),
    "no JSON": ("<tool_call>weather</tool_call>", "<tool_call>weather</tool_call>", []),
    "cut off": ('<tool_call>{"name": "wea', '<tool_call>{"name": "wea', []),
    "no name": ("<tool_call>{}</tool_call>!", "<tool_call>{}</tool_call>!", []),
    "nearly": ("<tool_cal", "<tool_cal", []),
}


def calls_of(calls: list[Any]) -> list[Any]:
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_calls_are_read_however_the_text_comes(name: str, step: int) -> None:
    text, content, calls = TEXTS[name]
    reader = ToolReader()
    pieces = [reader.feed(text[i : i + step]) for i in range(0, len(text), step)] + [reader.end()]
    assert "".join(piece for piece, _ in pieces) == content
    found = [call for _, piece in pieces for call in piece]
    assert calls_of(found) == calls
    assert [call["index"] for call in found] == list(range(len(calls))) == list(range(reader.calls))


@pytest.mark.parametrize(("text", "held"), [("xa", 1), ("xab", 2), ("xabc", 0), ("b", 1), ("ab", 2), ("c", 0), ("", 0)])
def test_what_may_be_a_beginning_is_held(text: str, held: int) -> None:
    assert held_suffix(text, ["abx", "bz"]) == held


def generation(tokenizer: ChatTokenizer, text: str) -> Generation:
    """A choice that has said a text."""
    ids = list(tokenizer.ids(text))
    return Generation(1, Sampling(), 1000, frozenset(), None, 0, token_ids=ids, logprobs=[-0.5] * len(ids))


def request_with(**fields: Any) -> ChatRequest:
    body = {"messages": [{"role": "user", "content": "x"}], "tools": TOOLS} | fields
    return parse_request(msgspec.json.encode(body), ChatRequest)


@pytest.mark.parametrize("name", TEXTS)
def test_answers_and_streams_say_the_same(model_dir: Path, name: str) -> None:
    text, content, calls = TEXTS[name]
    tokenizer = ChatTokenizer(model_dir)
    request = request_with(stream=True, return_token_ids=True)
    choice = generation(tokenizer, text)
    choice.finish_reason = "stop"
    (answer,) = completion(request, "c", "m", (1,), [choice], tokenizer)["choices"]
    assert (answer["message"]["content"] or "", calls_of(answer["message"]["tool_calls"])) == (content, calls)
    assert answer["finish_reason"] == ("tool_calls" if calls else "stop")
    chunks = ChunkMaker(request, "c", "m", (1,), [choice], tokenizer)
    sent = b""
    for settled in range(1, len(choice.token_ids) + 1):
        choice.settled = settled
        choice.ended = choice.settled == len(choice.token_ids)
        sent += chunks.step()
    events = [json.loads(event.removeprefix(b"data: ")) for event in sent.split(b"\n\n") if event]
    deltas = [event["choices"][0]["delta"] for event in events]
    assert "".join(delta.get("content", "") for delta in deltas) == content
    assert calls_of([call for delta in deltas for call in delta.get("tool_calls", [])]) == calls
    assert [token for event in events for token in event["choices"][0].get("token_ids", [])] == choice.token_ids
    assert events[-1]["choices"][0]["finish_reason"] == answer["finish_reason"]


def test_without_tools_their_calls_are_text(model_dir: Path) -> None:
    tokenizer = ChatTokenizer(model_dir)
    for fields in ({"tools": None}, {"tool_choice": "none"}):
        choice = generation(tokenizer, CALL)
        choice.finish_reason = "stop"
        (answer,) = completion(request_with(**fields), "c", "m", (1,), [choice], tokenizer)["choices"]
        assert (answer["message"]["content"], answer["finish_reason"]) == (CALL, "stop")


def test_the_template_is_given_tools_and_arguments_as_objects(model_dir: Path, tmp_path: Path) -> None:
    for name in ("tokenizer.json", "config.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((model_dir / name).read_bytes())
    template = (
        "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
        "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments.city }}{% endfor %}"
        "{{ m.content }}{{ m.tool_call_id }};{% endfor %}"
    )
    (tmp_path / "chat_template.jinja").write_text(template)
    tokenizer = ChatTokenizer(tmp_path)
    function = {"name": "weather", "arguments": '{"city": "Łódź"}'}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "a", "content": "rain"},
    ]
    prompt, _ = plan(request_with(messages=messages), tokenizer, 1000, 1, 0)
    assert tokenizer.text(prompt) == json.dumps(TOOLS[0]) + "Łódź;raina;"
    prompt, _ = plan(request_with(messages=messages, tool_choice="none"), tokenizer, 1000, 1, 0)
    assert tokenizer.text(prompt) == "Łódź;raina;"


@pytest.mark.parametrize("stops", [[], ["🙂"], ["b", "éa"]])
def test_text_is_certain_before_it_is_given(model_dir: Path, stops: list[str]) -> None:
    tokenizer = ChatTokenizer(model_dir)
    whole = "a é 語 🙂🙂 żółć \ufffd b éa"
    for begin in range(len(whole)):
        ids = tokenizer.ids(whole[begin:])
        stream, given = TextStream(tokenizer, stops), ""
        for end in range(1, len(ids) + 1):
            given += stream.feed(ids[:end])
            assert whole[begin:].startswith(given)
        assert given + stream.end(whole[begin:]) == whole[begin:]


def test_arguments_nested_too_deeply_are_content() -> None:
    reader, deep = ToolReader(), "[" * 300 + "]" * 300
    text = f'<tool_call>{{"name": "f", "arguments": {deep}}}</tool_call>'
    assert reader.feed(text) == (text, [])
