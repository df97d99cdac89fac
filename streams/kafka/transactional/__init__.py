"""Consume, process, produce and commit in one transaction: the loop of lifecycle and assembler."""

from headrace.streams.kafka.transactional.loop import TransactionalLoop
from headrace.streams.kafka.transactional.processor import LogEntry, Output, Processor, TopicPartitionKey

__all__ = ["LogEntry", "Output", "Processor", "TopicPartitionKey", "TransactionalLoop"]
