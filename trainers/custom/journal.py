"""What a run of a custom algorithm has done so far, as a fold of its journal. Pure.

An effect is known by its place: its number within its branch, after the names of the branches. A coroutine that asks
for the same effects in the same order finds the same places, whatever else ran beside it; so a run that starts again
reads the results of what it has done, and does the rest.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from headrace.schemas.records import JournalEntry
from headrace.streams.errors import HeadraceError, SettingsError

ENQUEUE = "enqueue"
TRAJECTORIES = "trajectories"
PUBLISH = "publish"
RESOURCES = "resources"
STEP = "step"
RETURNED = "returned"
END = "end"
"""The place of what the coroutine returned."""
SEPARATOR = "/"
ID_DIGITS = 20


class NondeterminismError(HeadraceError):
    """A run that started again asks for something else than its journal says it did."""


class JsonResultError(HeadraceError):
    """What a step returned is no JSON value, so that the journal cannot hold it."""


class Journal:
    """The effects of one run by place; the first entry of a place counts.

    Attributes:
        enqueued: the run's rollouts.
        keys: of their trajectories in triplets.
    """

    def __init__(self, run_id: str, entries: Iterable[JournalEntry] = ()) -> None:
        self.enqueued: set[str] = set()
        self.keys: set[str] = set()
        self._run_id = run_id
        self._entries: dict[str, JournalEntry] = {}
        self._asked: set[str] = set()
        for entry in entries:
            self.add(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, place: str) -> bool:
        return place in self._entries

    def add(self, entry: JournalEntry) -> JournalEntry:
        """Takes an entry; gives the one that counts."""
        counts = self._entries.setdefault(entry.place, entry)
        if entry is counts and entry.kind == ENQUEUE:
            asked = json.loads(entry.result)
            self.enqueued.update(asked["rollout_ids"])
            self.keys.update(asked["keys"])
        return counts

    @property
    def returned(self) -> JournalEntry | None:
        """The end of the run, if it has ended."""
        return self._entries.get(END)

    def find(self, place: str, kind: str, name: str, request: str) -> JournalEntry | None:
        """The entry of an effect that is asked for now; None if it is still to be done.

        Raises:
            NondeterminismError: the journal has another effect in this place.
        """
        self._asked.add(place)
        entry = self._entries.get(place)
        if entry is None:
            return None
        before, now = _shown(entry.kind, entry.name), _shown(kind, name)
        if before != now:
            raise self._differs(f"effect {place} was {before}, and is {now} now")
        if entry.request != request:
            raise self._differs(f"effect {place}, {now}, was asked for with other arguments")
        return entry

    def check_end(self) -> None:
        """Called when the coroutine has returned.

        Raises:
            NondeterminismError: it has not asked for all that the journal has.
        """
        left = sorted(set(self._entries) - self._asked - {END})
        if left:
            entry = self._entries[left[0]]
            raise self._differs(f"it returned without asking for effect {left[0]}, {_shown(entry.kind, entry.name)}")

    def _differs(self, what: str) -> NondeterminismError:
        return NondeterminismError(
            f"run {self._run_id} does not go as its journal says: {what}. Its code or arguments have changed, or it "
            "depends on something that ctx does not give: time, random numbers and other services belong into "
            "ctx.step(name, fn) or ctx.random, and what runs side by side into ctx.branch(name). Mend it, or begin a "
            "new run with another --run"
        )


class Branch:
    """Gives places to the effects of one branch, and takes care that each place is given once."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self._next = 0
        self._names: set[str] = set()

    def place(self) -> str:
        """The place of the next effect."""
        place = f"{self.path}{self._next}"
        self._next += 1
        return place

    def branch(self, name: str) -> "Branch":
        """A branch of this one.

        Raises:
            SettingsError: the name is taken, or is no name.
        """
        if not name or SEPARATOR in name or name.isdigit() or name == END:
            raise SettingsError(f"branch {name!r}: a name is neither empty nor a number, and has no {SEPARATOR!r}")
        if name in self._names:
            raise SettingsError(f"branch {name!r} was made before; give each branch a name of its own")
        self._names.add(name)
        return Branch(f"{self.path}{name}{SEPARATOR}")


def digest(request: Any) -> str:
    """What an effect was asked for, as SHA-256 of its JSON text in hex digits."""
    text = json.dumps(request, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def made_id(prefix: str, run_id: str, place: str, index: int = 0) -> str:
    """An id that is the same whenever the same run asks for the same effect: 80 bits of a SHA-256."""
    text = f"{run_id}\0{place}\0{index}"
    return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]}"


def json_of(value: Any, name: str) -> str:
    """The result of a step as JSON text.

    Raises:
        JsonResultError: JSON has no such value.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise JsonResultError(
            f"step {name!r} returned what JSON cannot hold ({error}); return numbers, texts, lists and dictionaries"
        ) from error


def _shown(kind: str, name: str) -> str:
    return f"{kind} {name!r}" if name else kind
