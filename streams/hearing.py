"""A clock for who listens to others."""


class Hearing:
    """A clock by which silence is judged: it stands still while nobody is heard for longer than a heartbeat.

    Then the brokers are away, or who listens is cut off from them, and of no worker it can be said that it is silent.

    Args:
        heartbeat, now: seconds, of the monotonic clock.
    """

    def __init__(self, heartbeat: float, now: float) -> None:
        self._heartbeat = heartbeat
        self._last = now
        self._unheard = 0.0

    def heard(self, now: float) -> float:
        """Somebody speaks; how much later it is by this clock than when somebody did before."""
        silence = now - self._last
        self._unheard += max(0.0, silence - self._heartbeat)
        self._last = now
        return min(silence, self._heartbeat)

    def time(self, now: float) -> float:
        """Seconds in which somebody could be heard."""
        return min(now, self._last + self._heartbeat) - self._unheard
