"""Follows the resources topic: the newest publication of each name, and every publication by its id."""

import threading
from collections.abc import Callable

from headrace.schemas.records import Record, ResourcesUpdate
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings


class ResourceFollower:
    """What has been published; may be asked from any thread.

    Args:
        changed: called with each publication, on the follower's thread.
    """

    def __init__(
        self, settings: Settings, *, client_id: str, changed: Callable[[ResourcesUpdate], None] | None = None
    ) -> None:
        self._by_id: dict[str, ResourcesUpdate] = {}
        self._newest: dict[str, ResourcesUpdate] = {}
        self._last: ResourcesUpdate | None = None
        self._changed = changed
        self._news = threading.Condition()
        self._follower = TopicFollower(settings, "resources", self._handle, client_id=client_id)

    def start(self) -> "ResourceFollower":
        """Starts following; returns when the topic was read to its end."""
        self._follower.start()
        return self

    def close(self) -> None:
        """Stops following."""
        self._follower.close()

    def newest(self, name: str | None = None) -> ResourcesUpdate | None:
        """The highest version of a name; without a name, the publication that came last."""
        return self._last if name is None else self._newest.get(name)

    def get(self, resources_id: str) -> ResourcesUpdate | None:
        """The publication of an id."""
        return self._by_id.get(resources_id)

    def wait(self, resources_id: str, timeout: float) -> ResourcesUpdate | None:
        """As `get`, but waits up to `timeout` seconds for a publication that is under way."""
        with self._news:
            self._news.wait_for(lambda: resources_id in self._by_id, timeout)
        return self._by_id.get(resources_id)

    def _handle(self, record: Record, message: Message) -> None:
        if not isinstance(record, ResourcesUpdate):
            return
        with self._news:
            self._by_id[record.resources_id] = record
            before = self._newest.get(record.name)
            if before is None or record.version >= before.version:
                self._newest[record.name] = record
            self._last = record
            self._news.notify_all()
        if self._changed:
            self._changed(record)
