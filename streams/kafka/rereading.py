"""Records read again by their offsets: a Task for a retry, the records that a trajectory's `source` names."""

import time
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.clients import make_consumer
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.reading import poll_batch
from headrace.streams.settings import Settings

BATCH = 500
FETCH_WAIT_MS = 10
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 30.0
LONGEST_GAP = 500  # records: reading on over a gap is cheaper than another seek

Wanted = Mapping[tuple[str, int], Iterable[int]]
Found = dict[tuple[str, int, int], Message]


class Rereader:
    """Keeps one consumer outside any group. For the thread that made it."""

    def __init__(self, settings: Settings, client_id: str) -> None:
        self._settings = settings
        self._client_id = client_id
        self._consumer: Consumer | None = None

    def read(self, wanted: Wanted) -> Found:
        """The records at offsets, by (full topic name, partition); those that are gone are missing.

        Raises:
            BrokerUnavailableError: nothing came for half a minute.
        """
        found: Found = {}
        runs = {tp: _runs(set(offsets)) for tp, offsets in wanted.items()}
        while any(runs.values()):
            self._read_runs({tp: waiting.pop() for tp, waiting in runs.items() if waiting}, found)
        return found

    def close(self) -> None:
        """Lets the consumer go."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _read_runs(self, runs: dict[tuple[str, int], list[int]], found: Found) -> None:
        if self._consumer is None:
            self._consumer = make_consumer(
                self._settings, f"{self._client_id}-reread", eof=True, fetch_wait_ms=FETCH_WAIT_MS
            )
        consumer = self._consumer
        consumer.assign([TopicPartition(t, p, offsets[0]) for (t, p), offsets in runs.items()])
        left = {tp: set(offsets) for tp, offsets in runs.items()}
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while left:
                if time.monotonic() > deadline:
                    raise BrokerUnavailableError(f"{sorted(left)} could not be read again")
                for message in poll_batch(consumer, POLL_SECONDS, BATCH):
                    tp = (message.topic() or "", message.partition() or 0)
                    error = message.error()
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                        continue
                    offset = message.offset() or 0
                    if tp not in left:
                        continue
                    if error is None and offset in left[tp]:
                        found[(*tp, offset)] = message
                    if error is not None or offset >= runs[tp][-1]:
                        del left[tp]
        finally:
            consumer.unassign()


def _runs(offsets: set[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for offset in sorted(offsets):
        if runs and offset - runs[-1][-1] <= LONGEST_GAP:
            runs[-1].append(offset)
        else:
            runs.append([offset])
    return runs
