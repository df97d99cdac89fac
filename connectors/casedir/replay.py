"""A recorded case through the assembler."""

from collections.abc import Iterable

from headrace.connectors.casedir.reader import (
    Clock,
    Entry,
    RefusedReward,
    Request,
    Taken,
    Unreadable,
)
from headrace.connectors.otlp.decode import OtlpError, decode_json
from headrace.schemas.records import AttemptEvent, Record, Reward, Span, Task
from headrace.streams.assembly.offline import OfflineAssembler
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.settings import Settings

MALFORMED_REQUEST = "malformed_request"


class Replay:
    """Feeds entries to an assembler and keeps what was refused on the way."""

    def __init__(self, settings: AssemblySettings) -> None:
        self.assembler = OfflineAssembler(settings)
        self.refused: dict[str, str] = {}  # code by identity
        self.dead_letters = 0
        self._codec = Codec(Settings())

    def take(self, entry: Entry) -> None:
        """One line of the case."""
        match entry:
            case Request():
                self._take_request(entry.body)
            case Clock():
                self.assembler.advance(entry.seconds)
            case Taken():
                self._take_record(entry.record, entry.judged)
            case Unreadable():
                try:
                    self._take_record(self._codec.decode(entry.value), True)
                except DecodeError:
                    self.dead_letters += 1
            case RefusedReward():
                self.refused.setdefault(entry.identity, entry.code)

    def _take_request(self, body: str) -> None:
        try:
            decoded = decode_json(body)
        except OtlpError:
            self.assembler.counters[MALFORMED_REQUEST] += 1
            return
        for span in decoded.spans:
            self.assembler.add_span(span)
        for reward in decoded.rewards:
            self.assembler.add_reward(reward)
        for refused in decoded.refused:
            self.refused.setdefault(refused.identity, refused.code)

    def _take_record(self, record: Record, judged: bool) -> None:
        match record:
            case Task():
                self.assembler.add_task(record)
            case AttemptEvent():
                self.assembler.add_event(record, judged=judged)
            case Span():
                self.assembler.add_span(record)
            case Reward():
                self.assembler.add_reward(record)
            case _:
                self.dead_letters += 1


def replay(entries: Iterable[Entry], settings: AssemblySettings) -> Replay:
    """All entries, then the clock far beyond every wait."""
    run = Replay(settings)
    for entry in entries:
        run.take(entry)
    run.assembler.finish()
    return run
