"""What librdkafka logs again and again."""

import logging

from headrace.streams.kafka.client_log import Seldom


def test_a_kind_of_a_client_passes_once_in_twenty_seconds():
    now = 100.0
    seldom = Seldom(lambda: now)

    def passes(text: str) -> bool:
        return seldom.filter(logging.LogRecord("x", logging.WARNING, "", 0, text, None, None))

    assert passes("REQTMOUT [a#producer-1] [thrd:x]: 1 in flight")
    assert not passes("REQTMOUT [a#producer-1] [thrd:x]: 2 in flight")
    assert passes("REQTMOUT [b#producer-2] [thrd:x]: 1 in flight")
    assert passes("FAIL [a#producer-1] [thrd:x]: refused")
    now = 121.0
    assert passes("REQTMOUT [a#producer-1] [thrd:x]: 3 in flight")
