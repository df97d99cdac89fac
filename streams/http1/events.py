"""Server-sent events, read from bytes as they come (WHATWG HTML, section 9.2.6): only their data."""

_BOM = b"\xef\xbb\xbf"
_ENDS = (b"\n", b"\r")
_FIELD, _EVENT_END = b"data: ", b"\n\n"
_BETWEEN = _EVENT_END + _FIELD


class EventReader:
    """Reads the events of one answer. Names, ids, comments and an event that is cut off at the end are left out."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # of a line that has not ended
        self._data: list[bytes] = []  # of an event that has not ended
        self._after_cr = False
        self._first = True

    def feed(self, data: bytes) -> list[bytes]:
        """Takes bytes; the data of each event that is whole now, its lines joined by a line feed."""
        if not data:
            return []
        if (plain := self._plain(data)) is not None:
            return plain
        if self._after_cr:
            # The two bytes of one line end may come apart.
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if b"\n" not in data and b"\r" not in data:
            self._begun.append(data)
            return []
        if self._begun:
            data = b"".join(self._begun) + data
            self._begun.clear()
        if self._first:
            self._first = False
            data = data.removeprefix(_BOM)
        self._after_cr = data.endswith(b"\r")
        lines = data.splitlines()
        if not data.endswith(_ENDS):
            self._begun.append(lines.pop())
        return self._read(lines)

    def _plain(self, data: bytes) -> list[bytes] | None:
        """Whole events of one line each, as most servers send them; None where there is anything else."""
        if self._begun or self._data or self._after_cr or not data.startswith(_FIELD) or not data.endswith(_EVENT_END):
            return None
        events = data[len(_FIELD) : -len(_EVENT_END)].split(_BETWEEN)
        if b"\r" in data or data.count(b"\n") != len(_EVENT_END) * len(events):
            return None
        self._first = False
        return events

    def _read(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(b"\n".join(self._data))
                    self._data = []
            elif line.startswith(b"data:"):
                self._data.append(line[6 if line.startswith(b"data: ") else 5 :])
            elif line == b"data":
                self._data.append(b"")
        return events
