"""What a consumer's fatal error looks like when it is polled."""

import pytest
from confluent_kafka import KafkaError

from headrace.streams.kafka.fatal import FATAL, code_of, is_fatal


@pytest.mark.parametrize("code", [KafkaError.UNRELEASED_INSTANCE_ID, KafkaError.FENCED_INSTANCE_ID])
def test_a_wrapped_error_is_fatal_and_has_the_brokers_code(code: int) -> None:
    text = KafkaError(code).str()
    wrapped = KafkaError(FATAL, f"Fatal error: {text}: ConsumerGroupHeartbeat fatal error: {text}")
    assert not wrapped.fatal()  # what librdkafka says of it
    assert is_fatal(wrapped)
    assert code_of(wrapped) == code


def test_others_are_what_they_say() -> None:
    assert code_of(KafkaError(FATAL, "Fatal error: something new")) == FATAL
    assert is_fatal(KafkaError(KafkaError.FENCED_INSTANCE_ID, "fenced", fatal=True))
    assert not is_fatal(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
