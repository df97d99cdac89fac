"""The newest publication of each policy, and who waits for the next."""

import asyncio
import contextlib

from headrace.schemas.records import Record, ResourcesUpdate, Weights


class NewestWeights:
    """Fed with the records of the resources topic; all calls belong on one event loop.

    Only the newest version of a policy is kept: one that was overtaken before its load began is never loaded.
    """

    def __init__(self) -> None:
        self._newest: dict[str, Weights] = {}
        self._changed = asyncio.Event()

    def observe(self, record: Record) -> None:
        """Takes a publication; versions never decrease, so an older one is no news."""
        if not isinstance(record, ResourcesUpdate):
            return
        for resource in record.resources.values():
            if isinstance(resource, Weights):
                known = self._newest.get(resource.policy)
                if known is None or resource.version > known.version:
                    self._newest[resource.policy] = resource
                    self._changed.set()
                    self._changed = asyncio.Event()

    def of(self, policy: str) -> Weights | None:
        """The newest of a policy."""
        return self._newest.get(policy)

    async def changed(self, timeout: float) -> None:
        """Returns at the next publication, or after `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._changed.wait()
