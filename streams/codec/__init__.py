"""Records to bytes and back, in both wire formats."""

from headrace.streams.codec.codec import Codec
from headrace.streams.codec.errors import DecodeError, EncodeError

__all__ = ["Codec", "DecodeError", "EncodeError"]
