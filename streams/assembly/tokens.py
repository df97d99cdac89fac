"""Token ids and log-probabilities, in all the forms that libraries write them."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.streams.assembly.evidence import Evidence
from headrace.streams.assembly.loose import as_list, as_mapping, as_number, read_text
from headrace.streams.assembly.values import CallChoice

LARGEST_ID = 2**31 - 1
LARGEST_FLOAT = 3.4e38  # of 32 bits
ID_TEXT = re.compile(r"[\d\s,\[\]()]+")
WRAPPED = re.compile(r"(?:[\w.]*\.)?(?:array|tensor)\(\s*(\[.*\])\s*(?:,[^\[\]]*)?\)", re.DOTALL)
TRAILING_COMMA = re.compile(r",\s*\]")
BRACKETS = str.maketrans("()", "[]")


def read_tokens(evidence: Evidence) -> tuple[bytes | None, list[CallChoice]]:
    """The prompt's ids (None: not recorded or unreadable) and the choices, packed.

    Each side is taken from the first place that has it: the attributes, LiteLLM's raw response, `output.value`.
    """
    get = evidence.attributes.get
    prompt = one_sequence(get("prompt_token_ids"))
    if prompt is None and evidence.has_answer:
        prompt = one_sequence(evidence.provider.get("prompt_token_ids"))
    responses = sequences(get("response_token_ids"))
    if responses is None and evidence.has_answer:
        responses = sequences(evidence.provider.get("response_token_ids"))
    if prompt is None and evidence.has_answer:
        prompt = _response_prompt(evidence)
    if responses is not None:
        choices = [CallChoice(index, tokens) for index, tokens in enumerate(responses)]
    else:
        choices = _choices(evidence)
    _add_logprobs(choices, evidence)
    return prompt, choices


def read_ids(value: Any) -> list[Any] | None:
    """A list as it stands, or from JSON or Python text; None if the value is no list."""
    if isinstance(value, str):
        text = value.strip()
        if (wrapped := WRAPPED.fullmatch(text)) is not None:
            text = wrapped[1]
        if not ID_TEXT.fullmatch(text):
            return None
        if "," not in text:
            text = re.sub(r"(?<=\d)\s+(?=\d)", ",", text)
        try:
            value = msgspec.json.decode(TRAILING_COMMA.sub("]", text.translate(BRACKETS)))
        except (msgspec.DecodeError, RecursionError):
            return None
    return as_list(value) if isinstance(value, list | tuple) else None


def packed(values: Sequence[Any]) -> bytes | None:
    """Ids as packed int32; None if they are no ids."""
    if not values:
        return b""
    if set(map(type, values)) != {int}:
        numbers = [as_number(v) for v in values]
        if not all(n is not None and float(n).is_integer() for n in numbers):
            return None
        values = [int(n) for n in numbers if n is not None]
    if min(values) < 0 or max(values) > LARGEST_ID:
        return None
    return pack_int32(values)


def one_sequence(value: Any) -> bytes | None:
    """A prompt's ids: a list, or a list that holds one list."""
    ids = read_ids(value) if value is not None else None
    if ids is None:
        return None
    if ids and isinstance(ids[0], list | tuple):
        if len(ids) != 1:
            return None
        ids = as_list(ids[0])
    return packed(ids)


def sequences(value: Any) -> list[bytes | None] | None:
    """The responses' ids: a list (one choice) or a list of lists (one a choice). None: not recorded or unreadable."""
    ids = read_ids(value)
    if ids is None:
        return None
    if ids and isinstance(ids[0], list | tuple):
        return [packed(as_list(choice)) if isinstance(choice, list | tuple) else None for choice in ids]
    tokens = packed(ids)
    return None if tokens is None else [tokens]


def read_logprobs(value: Any) -> bytes | None:
    """Log-probabilities of one choice, packed: from `[{token, logprob}]`, OpenAI's logprobs object or plain numbers."""
    entries = _logprob_entries(value)
    if not entries:
        return None
    numbers = [as_number(as_mapping(entry).get("logprob") if isinstance(entry, dict) else entry) for entry in entries]
    values = [number for number in numbers if number is not None and abs(number) <= LARGEST_FLOAT]
    return pack_float32(values) if len(values) == len(numbers) else None


def _logprob_entries(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = read_text(value)
    wrapped = as_mapping(value)
    return as_list(wrapped.get("content") or wrapped.get("token_logprobs") if wrapped else value)


def _response_prompt(evidence: Evidence) -> bytes | None:
    """The prompt's ids in the response: vLLM's chat completion, or its Responses API with raw message tokens."""
    response = evidence.response
    prompt = one_sequence(response.get("prompt_token_ids"))
    if prompt is None and evidence.choices:
        prompt = one_sequence(evidence.choices[0].get("prompt_token_ids"))
    return prompt if prompt is not None else _raw_messages(response.get("input_messages"))


def _raw_messages(value: Any) -> bytes | None:
    parts = [one_sequence(as_mapping(message).get("tokens")) for message in as_list(value)]
    known = [part for part in parts if part is not None]
    return b"".join(known) if parts and len(known) == len(parts) else None


def _choices(evidence: Evidence) -> list[CallChoice]:
    choices: list[CallChoice] = []
    for position, choice in enumerate(evidence.choices):
        ids = choice.get("token_ids")
        if ids is None:
            ids = as_mapping(choice.get("provider_specific_fields")).get("token_ids")
        index = choice.get("index")
        reason = choice.get("finish_reason")
        choices.append(
            CallChoice(
                index if isinstance(index, int) else position,
                one_sequence(ids),
                finish_reason=reason if isinstance(reason, str) and reason else None,
            )
        )
    if not choices and (tokens := _raw_messages(evidence.response.get("output_messages"))) is not None:
        choices.append(CallChoice(0, tokens))
    return choices


def _add_logprobs(choices: list[CallChoice], evidence: Evidence) -> None:
    recorded = evidence.attributes.get("logprobs.content")
    if recorded is None and not evidence.has_answer:
        return
    if isinstance(recorded, str):
        recorded = read_text(recorded)
    listed = as_list(recorded)
    per_choice: list[Any] = listed if listed and isinstance(listed[0], list) else [listed]
    if not listed:
        per_choice = [choice.get("logprobs") for choice in evidence.choices] or [
            as_mapping(generation.get("generation_info")).get("logprobs") for generation in evidence.generations
        ]
    for choice, value in zip(choices, per_choice, strict=False):
        entries = _logprob_entries(value)
        if not entries or choice.tokens is None:
            continue
        logprobs = read_logprobs(value)
        if logprobs is not None and len(logprobs) == len(choice.tokens):
            choice.logprobs = logprobs
        else:
            choice.logprobs_misfit = True
