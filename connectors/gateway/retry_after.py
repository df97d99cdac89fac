"""The Retry-After header (RFC 9110, section 10.2.3)."""

from email.utils import parsedate_to_datetime


def seconds_of(value: str, now: float) -> float | None:
    """How long to wait: from a number of seconds or a date; None where it is neither.

    Args:
        now: seconds since the epoch.
    """
    text = value.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
