"""Coverage-guided fuzzing of the decoder, by hand: `python tests/fuzz/decoder.py -max_total_time=300 [CORPUS]`.

Needs atheris, which is no part of the environment (`uv pip install atheris`). Whatever the bytes, `Codec.decode` gives
a record or a `DecodeError`; anything else is a crash, and libFuzzer writes the input down. `-rss_limit_mb` bounds the
memory. The corpus begins with one small record of each type.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["headrace.schemas", "headrace.streams.codec"]):
    from headrace.schemas import catalogue
    from headrace.schemas.records import Record
    from headrace.schemas.wire import READERS
    from headrace.streams.codec import Codec, DecodeError
    from headrace.streams.settings import Settings

    NAMES = sorted(catalogue.current())
    for name in NAMES:
        READERS[name]  # imports it, so that it is instrumented

CODEC = Codec(Settings())
RSS_LIMIT_MB = 1024
LONGEST = 4096


def one_input(data: bytes) -> None:
    """The first byte chooses a record's header, or none."""
    if data and data[0] < len(NAMES):
        data = catalogue.current()[NAMES[data[0]]].header + data[1:]
    try:
        record = CODEC.decode(data)
    except DecodeError:
        return
    assert isinstance(record, Record)
    assert isinstance(CODEC.decode(CODEC.encode(record)), type(record))


def main() -> None:
    """Runs until libFuzzer's flags say stop."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(len(NAMES)):
            Path(folder, NAMES[number]).write_bytes(bytes([number]) + bytes(200))
        limits = [f"-rss_limit_mb={RSS_LIMIT_MB}", f"-max_len={LONGEST}"]
        atheris.Setup([*sys.argv, *limits, folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
