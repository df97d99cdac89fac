"""What a reader cannot use goes to `<topic>.dlq`, from where it can be replayed."""

from headrace.streams.kafka.dead_letters.letter import DeadLetter, Place, is_marker, make, parse
from headrace.streams.kafka.dead_letters.maker import DeadLetterMaker

__all__ = ["DeadLetter", "DeadLetterMaker", "Place", "is_marker", "make", "parse"]
