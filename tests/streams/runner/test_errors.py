"""What the log keeps of an exception that an agent raises."""

import pytest

from headrace.streams.runner.calling import MESSAGE_BYTES, STACK_BYTES, error_info


class Unshowable(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    "error",
    [
        ValueError("plain"),
        ValueError("a lone surrogate \ud800"),
        ValueError("\U0001f600" * 50_000),
        Unshowable(),
        ExceptionGroup("several", [ValueError("x" * 10_000)] * 20),
    ],
)
def test_any_exception_is_text_within_its_limits(error: Exception) -> None:
    info = error_info(error)
    assert info.type.endswith(type(error).__name__)
    assert 0 < len(info.message.encode()) <= MESSAGE_BYTES
    assert info.stacktrace is not None
    assert len(info.stacktrace.encode()) <= STACK_BYTES


def test_a_surrogate_is_escaped() -> None:
    assert error_info(ValueError("bad \ud800 text")).message == "bad \\ud800 text"


def test_an_error_that_exits_when_it_is_told() -> None:
    class Exiting(Exception):
        def __str__(self) -> str:
            raise SystemExit

    told = error_info(Exiting())
    assert told.message.endswith("Exiting, which cannot be shown: SystemExit")
