"""Offsets of records that were let go, two or three bytes each."""

from headrace.schemas.packing import pack_offsets, unpack_offsets


class PackedOffsets:
    """Offsets in growing order, kept as the log keeps them."""

    __slots__ = ("_packed", "last")

    def __init__(self, packed: bytes = b"") -> None:
        self._packed = packed
        self.last = unpack_offsets(packed)[-1] if packed else -1

    def with_more(self, offsets: list[int]) -> bytes:
        """These and further offsets, packed; those that are not beyond the last are here already."""
        if not self._packed:
            return pack_offsets(offsets)
        return self._packed + pack_offsets([offset - self.last for offset in offsets if offset > self.last])
