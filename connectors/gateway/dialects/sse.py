"""Server-sent events (WHATWG HTML, 9.2) with JSON data, as both dialects name them: by the `type` of the data."""

from typing import Any

import orjson


def event(data: dict[str, Any]) -> bytes:
    """One event."""
    return b"event: %b\ndata: %b\n\n" % (str(data["type"]).encode(), orjson.dumps(data))
