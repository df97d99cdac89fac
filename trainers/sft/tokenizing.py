"""The tokenizer and the chat template of a model directory, for rendering."""

from pathlib import Path
from typing import Any, cast

from headrace.streams.chat_template import ChatTemplate, read_json
from headrace.trainers.sft.rendering import Renderer


def load_renderer(directory: Path) -> Renderer | None:
    """What renders conversations for a model; None where it has no chat template or no tokenizer.

    Raises:
        ChatTemplateError: its chat template is no Jinja template.
    """
    template = ChatTemplate.of(directory)
    if template is None or not (directory / "tokenizer.json").exists():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    ends = [template.special.get("eos_token", "")]
    for name in ("generation_config.json", "config.json"):
        ids: Any = read_json(directory / name).get("eos_token_id")
        tokens = cast(list[int], ids if isinstance(ids, list) else [] if ids is None else [ids])
        ends += [tokenizer.id_to_token(token) or "" for token in tokens]

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    return Renderer(template, encode, list(dict.fromkeys(ends)))
