"""How a long start is watched, and given up."""


class Watch:
    """Told of the progress of a start; this one does nothing with it."""

    def progress(self, done: int, total: int) -> None:
        """So many files of so many are there."""

    def checkpoint(self) -> None:
        """Called several times a second, where nothing is half done: what it raises ends the start.

        A signal's handler must not raise by itself, since it may interrupt a lock's own code; it leaves a note, and
        this method raises.
        """


UNWATCHED = Watch()
