"""Whether a processor has read all that the log holds, so that its timers may judge.

What it has not read may hold the very sign of life that a timer misses. So timers stand still after an assignment, and
when reading failed or the process stood still for more than a second; they begin anew once all is read that stood in
the log when the trouble was over. A reader of which nothing comes may be idle, or its brokers may be away: they are
asked. Times are monotonic seconds.
"""

from collections.abc import Iterable, Mapping

from headrace.streams.kafka.transactional.processor import TopicPartitionKey

SILENCE_SECONDS = 1.0


class CatchUp:
    """Decides; who asks the brokers is the session."""

    def __init__(self, now: float) -> None:
        self._last_turn = self._heard = now
        self._failing_since: float | None = None
        self._disturbed = False
        self._left: dict[TopicPartitionKey, int] | None = None
        self._once_read = False

    @property
    def caught_up(self) -> bool:
        """Whether timers may judge."""
        calm = not self._disturbed and self._failing_since is None
        return calm and self._once_read and self._left is None

    def needs_ends(self, now: float) -> bool:
        """Whether the brokers are to be asked for the ends of all partitions."""
        troubled = self._disturbed or self._failing_since is not None
        return troubled or now - self._heard > SILENCE_SECONDS

    def disturb(self) -> None:
        """There is something to read that was not there before: new partitions."""
        self._disturbed = True

    def heard(self, now: float) -> None:
        """Something came of the brokers."""
        self._heard = now

    def failed(self, now: float) -> None:
        """The brokers do not answer, or cannot be read."""
        if self._failing_since is None:
            self._failing_since = now

    def turn(self, now: float, longest: float) -> None:
        """The loop comes by, which it does at least every `longest` seconds while all is well."""
        stood_still = now - self._last_turn > SILENCE_SECONDS + longest
        failed_long = self._failing_since is not None and now - self._failing_since > SILENCE_SECONDS
        if stood_still or failed_long:
            self._disturbed = True
        self._last_turn = now

    def noted(self, ends: Mapping[TopicPartitionKey, int], now: float) -> None:
        """The brokers answer: these are the ends as of now."""
        self._heard = now
        self._failing_since = None
        if self._disturbed:
            self._disturbed = False
            self._left = dict(ends)

    def reached(self, positions: Mapping[TopicPartitionKey, int]) -> bool:
        """Takes how far all is read; true when the last of it was, which is when timers begin anew."""
        if self._disturbed or self._left is None:
            return False
        self._left = {key: end for key, end in self._left.items() if positions.get(key, end) < end}
        if self._left:
            return False
        self._left = None
        self._once_read = True
        return True

    def forget(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Partitions that are another's are not waited for."""
        if self._left is not None:
            for key in keys:
                self._left.pop(key, None)
