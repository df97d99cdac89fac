"""When a process that has ended starts again. Pure."""

from dataclasses import dataclass

from headrace.streams.errors import EXIT_FENCED

FIRST_SECONDS = 1.0
MOST_SECONDS = 30.0
STEADY_SECONDS = 60.0  # one that ran for so long begins anew with the shortest wait


@dataclass
class Backoff:
    """The ends of one part.

    Attributes:
        may_end: exit code 0 says that its work is done.
        restarts: it starts again at all.
        ends: since it last ran for long.
    """

    may_end: bool = False
    restarts: bool = True
    ends: int = 0

    def wait(self, code: int, ran_seconds: float) -> float | None:
        """Seconds until it starts again: twice as long each time, up to half a minute; None: it does not.

        Who was fenced stays away: another process has its work.
        """
        if code == EXIT_FENCED or (code == 0 and self.may_end) or not self.restarts:
            return None
        if ran_seconds >= STEADY_SECONDS:
            self.ends = 0
        self.ends += 1
        return min(MOST_SECONDS, FIRST_SECONDS * 2.0 ** (self.ends - 1))
