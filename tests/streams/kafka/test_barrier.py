"""What a busy broker's answers about ends are worth."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, cast

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.barrier import end_offsets, offsets_at

INVALID = -1001  # librdkafka's OFFSET_INVALID


class Answer(NamedTuple):
    offset: int


class BusyAdmin:
    """Gives the offsets of a list, one a request; a broker that is stopped for a moment makes a real client do so."""

    def __init__(self, *offsets: int) -> None:
        self._offsets = list(offsets)
        self.asked = 0

    def list_offsets(self, wanted: dict[TopicPartition, Any], **_: Any) -> "dict[TopicPartition, Future[Answer]]":
        self.asked += 1
        offset = self._offsets.pop(0) if len(self._offsets) > 1 else self._offsets[0]
        answers: dict[TopicPartition, Future[Answer]] = {}
        for tp in wanted:
            answers[tp] = Future()
            answers[tp].set_result(Answer(offset))
        return answers

    def list_topics(self, timeout: float) -> None:
        del timeout


def _end(admin: BusyAdmin, patience: float = 60.0) -> int:
    return end_offsets(cast(AdminClient, admin), [("spans", 0)], patience=patience)["spans", 0]


def _at(admin: BusyAdmin) -> int:
    return offsets_at(cast(AdminClient, admin), {("spans", 0): 1})["spans", 0]


@pytest.mark.parametrize("ask", [_end, _at])
def test_an_invalid_offset_is_no_answer(ask: Callable[[BusyAdmin], int]) -> None:
    admin = BusyAdmin(INVALID, INVALID, 42)
    assert ask(admin) == 42
    assert admin.asked == 3


def test_an_end_is_never_invented() -> None:
    with pytest.raises(BrokerUnavailableError, match=r"spans\[0\]"):
        _end(BusyAdmin(INVALID), patience=0.2)


def test_an_empty_partition_has_an_end_and_no_record_after_a_time() -> None:
    assert _end(BusyAdmin(0)) == 0
    assert _at(BusyAdmin(-1)) == -1
