"""Lines of a file: what makes a task, and what is said of a line that makes none."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.datasets import BadLinesError, read_task_lines
from headrace.connectors.datasets.jsonl import parse_line
from headrace.streams.producing import TaskFieldError


@pytest.mark.parametrize(
    ("line", "field", "word"),
    [
        ("hello", "line", "no JSON"),
        ("[1]", "line", "expected `object`"),
        ('{"input": NaN}', "line", "no JSON"),
        ('{"input": {"a": tru}}', "line", "no JSON"),
        ('{"input": 1, "x": 2}', "x", "unknown"),
        ('{"mode": "val"}', "input", "missing"),
        ('{"input": 1, "rollout_id": 3}', "rollout_id", "expected `str | null`"),
        ('{"input": 1, "rollout_id": "a~2"}', "rollout_id", "~"),
        ('{"input": 1, "mode": "trai"}', "mode", "train, val, test"),
        ('{"input": 1, "metadata": {"a": 3}}', "metadata", "expected `str`"),
        ('{"input": 1, "config": {"bla": 0}}', "config.bla", "unknown"),
        ('{"input": 1, "config": {"max_attempts": 0}}', "config.max_attempts", "at least 1"),
        ('{"input": 1, "config": {"retry_condition": ["x"]}}', "config.retry_condition", "'x'"),
        ('{"input": 1, "config": {"retry_condition": [3]}}', "config.retry_condition[0]", "expected `str`"),
    ],
)
def test_a_bad_line_names_its_field(line: str, field: str, word: str) -> None:
    with pytest.raises(TaskFieldError) as error:
        parse_line(line.encode())
    assert error.value.field == field
    assert word in error.value.detail


def test_deep_nesting_and_bad_utf8_are_bad_lines() -> None:
    for line in (b'{"input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"input": "\xff"}', b'{"input": "\\ud800"}'):
        with pytest.raises(TaskFieldError, match="line"):
            parse_line(line)


def test_lines_are_numbered_as_they_stand() -> None:
    lines = [b'\xef\xbb\xbf{"input": "a"}\r\n', b"\n", b'{"input": "b", "rollout_id": "x"}\n', b"bad\n", b"  \t\n"]
    lines += [b'{"input": "c", "rollout_id": "x"}\n', b'{"input": "d"}']
    found = read_task_lines(lines, "tasks.jsonl")
    assert [(n, spec.input) for n, spec in found.specs] == [(1, '"a"'), (3, '"b"'), (7, '"d"')]
    assert [str(b).split(": ")[:2] for b in found.bad] == [["tasks.jsonl:4", "line"], ["tasks.jsonl:6", "rollout_id"]]
    assert "line 3 already" in str(found.bad[1])
    error = BadLinesError(found.bad * 20)
    assert "and 20 more" in str(error)
    assert "--skip-bad" in str(error)


def test_what_the_caller_does_not_accept_is_a_bad_line() -> None:
    def accept(spec: object) -> None:
        raise TaskFieldError("group_id", "is not wanted")

    (bad,) = read_task_lines([b'{"input": 1}'], "f", accept).bad
    assert str(bad) == "f:1: group_id: is not wanted"


def test_the_input_is_kept_to_the_letter() -> None:
    text = '{ "n": 1.10, "big": 123456789012345678901234567890, "s": "\\u00e9" }'
    assert parse_line(f'{{"input": {text}}}'.encode()).input == text


@given(st.binary(max_size=100))
def test_any_bytes_make_a_task_or_a_named_error(line: bytes) -> None:
    with suppress(TaskFieldError):
        parse_line(line)
