"""Deletes the values of a claim-check store that no record refers to any more.

A value goes when it is older than its topic keeps records, and neither the topic nor its dead letters have a record
that refers to it; content that two records share stays for the second. A value that is written again is young again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from headrace.schemas import claim_check
from headrace.streams.claims.store import PLACE, ClaimStore, ClaimStores
from headrace.streams.errors import SettingsError
from headrace.streams.kafka.admin import cluster_id, describe
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.settings import Settings
from headrace.streams.topics import TOPICS, Topic, dead_letter_topic, retention_ms

YOUNGEST = timedelta(days=1)  # far longer than from the writing of a value to that of its record


@dataclass(frozen=True)
class Swept:
    """What was found of one topic.

    Attributes:
        values: how many values the store has of it.
        old: older than the topic's retention.
        deleted: of those, without a record; with `dry_run` those that would be deleted.
    """

    topic: str
    values: int
    old: int
    deleted: int


def sweep(settings: Settings, *, youngest: timedelta = YOUNGEST, dry_run: bool = False) -> Iterator[Swept]:
    """Sweeps the values of every topic of the pipeline in this cluster; a topic whose values are all young is not read.

    Raises:
        SettingsError: claim-check is off.
        ClaimsUnavailableError: the store does not answer now.
    """
    stores = ClaimStores(settings)
    store = stores.own
    if store is None:
        raise SettingsError("claim-check is off; HEADRACE_CLAIM_CHECK names a store")
    cluster = cluster_id(settings)
    now = store.now()
    for topic in TOPICS.values():
        name = settings.topic(topic.name)
        found = store.found(f"{cluster}/{name}")
        old = {place: at for place, at in found.items() if now - at > _age(topic, settings, youngest)}
        kept = _referred(settings, name, stores, store) if any(PLACE.fullmatch(place) for place in old) else set[str]()
        gone = 0
        for place in old.keys() - kept:
            # Another writer may have written the same content just now.
            if dry_run or store.written(place) == old[place]:
                gone += 1
                if not dry_run:
                    store.delete(place)
        yield Swept(name, len(found), len(old), gone)


def _age(topic: Topic, settings: Settings, youngest: timedelta) -> timedelta:
    return max(youngest, timedelta(milliseconds=retention_ms(topic, settings)))


def _referred(settings: Settings, topic: str, stores: ClaimStores, store: ClaimStore) -> set[str]:
    there = describe(settings)
    starts = {
        (name, p): BEGINNING
        for name in (topic, dead_letter_topic(topic))
        if name in there
        for p in there[name].partitions
    }
    referred: set[str] = set()
    for message in read_to_end(settings, starts, client_id="sweep-claims"):
        value = message.value()
        if value is None or not claim_check.is_claim_check(value):
            continue
        try:
            found = stores.place_of(claim_check.decode(value))
        except (ValueError, IndexError):  # only the header is a claim check's
            continue
        if found is not None and found[0] is store:
            referred.add(found[1])
    return referred
