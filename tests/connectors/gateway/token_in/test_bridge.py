"""What comes between a turn and the response to the next message, told from two renderings of a chat template."""

from typing import Any

import pytest

from headrace.connectors.gateway.token_in.bridge import TEMPLATE, UNFINISHED, WORDS, calls_tools, new_ids, stand_in
from headrace.streams.chat_template import ChatTemplate

USER: dict[str, Any] = {"role": "user", "content": "what now?"}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "call-1", "content": "42"}
CHATML = (
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{%- for c in m.tool_calls %}<tool_call>{{ c.function.name }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# As Llama 2's: the stop token stands after a space, and a turn of the user opens with the token that begins a text.
SPACED = (
    "{%- for m in messages %}{% if m.role == 'user' %}[I] {{ m.content }} [/I]"
    "{% else %} {{ m.content }} </s>{% endif %}{% endfor %}"
)
# As GLM's: one token ends a turn of the assistant and opens the result of a tool.
SHARED = (
    "{%- for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}{{ c.function.name }}"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# As Mistral's: tools stand before the last question.
MOVING = (
    "{%- set last = namespace(at=0) %}"
    "{%- for m in messages %}{% if m.role == 'user' %}{% set last.at = loop.index0 %}{% endif %}{% endfor %}"
    "{%- for m in messages %}{% if m.role == 'user' %}{% if loop.index0 == last.at %}[T]tools[/T]{% endif %}"
    "[I]{{ m.content }}[/I]{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
)


def ids(template: str, messages: list[Any], opened: bool) -> list[int]:
    """A letter is a token, and so is each special token that this file names."""
    text = ChatTemplate(template, {}).render(messages, add_generation_prompt=opened)
    return encoded(text)


def encoded(text: str) -> list[int]:
    for number, special in enumerate(("<|im_start|>", "<|im_end|>", "</s>", "<|tool|>", "<|assistant|>", "<|user|>")):
        text = text.replace(special, chr(0xE000 + number))
    return [ord(character) for character in text]


def bridge(template: str, response: str, new: list[Any], *, closed: bool = True, before: Any = ()) -> list[int] | str:
    turns = [[*before, stand_in(new, word)] for word in WORDS]
    return new_ids(
        encoded(response)[-1],
        closed,
        ids(template, turns[0], opened=False),
        ids(template, turns[1], opened=False),
        ids(template, [*turns[0], *new], opened=True),
        tools=calls_tools(new),
    )


OPENED = "\n<|im_start|>user\nwhat now?<|im_end|>\n<|im_start|>assistant\n"


def test_after_a_turn_that_the_model_closed() -> None:
    assert bridge(CHATML, "7<|im_end|>", [USER]) == encoded(OPENED)


def test_a_turn_that_was_cut_is_closed_as_the_template_does() -> None:
    assert bridge(CHATML, "7", [USER], closed=False) == encoded("<|im_end|>" + OPENED)
    # The last token of what was cut may be one that stands after the stop token.
    assert bridge(CHATML, "7\n", [USER], closed=False) == encoded("<|im_end|>" + OPENED)


def test_another_stop_token_than_the_templates() -> None:
    assert bridge(CHATML, "7</s>", [USER]) == encoded("<|im_end|>" + OPENED)


def test_results_of_tools() -> None:
    opened = "\n<|im_start|>tool\n42<|im_end|>\n<|im_start|>assistant\n"
    assert bridge(CHATML, "<tool_call>f</tool_call><|im_end|>", [RESULT]) == encoded(opened)
    # How a call would go on that the model did not finish, nobody knows.
    assert bridge(CHATML, "<tool_call>f", [RESULT], closed=False) == UNFINISHED


def test_a_stop_token_after_a_space() -> None:
    assert bridge(SPACED, "7</s>", [USER]) == encoded("[I] what now? [/I]")
    assert bridge(SPACED, "7", [USER], closed=False) == encoded(" </s>[I] what now? [/I]")


def test_one_token_that_ends_a_turn_and_opens_the_next() -> None:
    assert bridge(SHARED, "f<|tool|>", [RESULT]) == encoded("42<|assistant|>")
    assert bridge(SHARED, "7<|user|>", [USER]) == encoded("what now?<|assistant|>")


@pytest.mark.parametrize("before", [(), ({"role": "user", "content": "x"},)])
def test_a_template_that_renders_the_past_anew_cannot_be_continued(before: Any) -> None:
    result = bridge(MOVING, "7</s>", [USER], before=before)
    assert result == (TEMPLATE if before else encoded("[T]tools[/T][I]what now?[/I]"))


def test_a_template_without_the_turn_cannot_be_continued() -> None:
    silent = "{%- for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
    assert bridge(silent, "7</s>", [USER]) == TEMPLATE
