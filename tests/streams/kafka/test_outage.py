"""When a transactional producer is not trusted any more."""

import pytest
from confluent_kafka import KafkaError

from headrace.streams.kafka.transactional.transactions import Outage

ALL_DOWN = KafkaError._ALL_BROKERS_DOWN  # pyright: ignore[reportPrivateUsage]
TRANSPORT = KafkaError._TRANSPORT  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("codes", "total"),
    [
        ([], False),
        ([TRANSPORT, TRANSPORT], False),  # a rolling restart
        ([ALL_DOWN], False),  # idle connections were closed
        ([TRANSPORT, ALL_DOWN], True),
        ([ALL_DOWN, TRANSPORT], True),
    ],
)
def test_an_outage_is_a_lost_connection_and_no_broker_left(codes: list[int], total: bool) -> None:
    outage = Outage()
    for code in codes:
        outage.hear(KafkaError(code))
    assert outage.total is total
