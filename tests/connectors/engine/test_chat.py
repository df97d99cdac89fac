import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from headrace.connectors.engine import chat
from headrace.connectors.engine.chat import ChatTemplateError, ChatTokenizer

CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Pick 42, żółć 🙂\n<|im_end|>?"},
]


def test_prompts_are_those_of_transformers(model_dir: Path) -> None:
    reference = AutoTokenizer.from_pretrained(model_dir)
    wanted = reference.apply_chat_template(CONVERSATION, add_generation_prompt=True, return_dict=False)
    tokenizer = ChatTokenizer(model_dir)
    assert list(tokenizer.prompt(CONVERSATION, {})) == wanted
    assert tokenizer.text(wanted) == reference.decode(wanted, skip_special_tokens=True)
    assert tokenizer.size == len(reference) == json.loads((model_dir / "config.json").read_text())["vocab_size"]
    assert tokenizer.stop_ids == {reference.eos_token_id}


def test_each_digit_is_one_token(model_dir: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    assert [len(tokenizer(str(d), add_special_tokens=False).input_ids) for d in range(10)] == [1] * 10
    assert len(tokenizer("507", add_special_tokens=False).input_ids) == 3


def test_templates_may_use_what_transformers_offers_them(model_dir: Path, tmp_path: Path) -> None:
    for name in ("tokenizer.json", "config.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((model_dir / name).read_bytes())
    template = (
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'tool' %}{% continue %}{% endif %}"
        "{% if m.role == 'bad' %}{{ raise_exception('no bad role') }}{% endif %}{{ m | tojson }}{% endfor %}{{ flag }}"
    )
    (tmp_path / "chat_template.jinja").write_text(template)
    tokenizer, reference = ChatTokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    messages = [*CONVERSATION, {"role": "tool", "content": "x"}]
    wanted = reference.apply_chat_template(messages, add_generation_prompt=True, return_dict=False, flag="F")
    assert list(tokenizer.prompt(messages, {"flag": "F"})) == wanted
    with pytest.raises(ChatTemplateError, match="no bad role"):
        tokenizer.prompt([{"role": "bad", "content": ""}], {})


def test_a_model_without_a_template_says_so(model_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((model_dir / "tokenizer.json").read_bytes())
    with pytest.raises(ChatTemplateError, match=r"chat_template\.jinja"):
        ChatTokenizer(tmp_path).prompt(CONVERSATION, {})


def test_prompts_are_remembered_within_a_limit(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "_REMEMBERED_BYTES", 20_000)
    tokenizer, seen = ChatTokenizer(model_dir), 0
    for i in range(50):
        tokenizer.prompt([{"role": "user", "content": f"{i} " + "word " * 20}], {})
        seen = max(seen, tokenizer.remembered_bytes)
    assert 10_000 < seen <= 20_000


@pytest.mark.parametrize("value", [1 << 70, "deep"])
def test_messages_that_cannot_be_a_key_are_refused(model_dir: Path, value: Any) -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    message = {"role": "user", "content": "x", "extra": deep if value == "deep" else value}
    with pytest.raises(ChatTemplateError):
        ChatTokenizer(model_dir).prompt([message], {})
