"""Feedback as it is asked for, read with its types checked, and the reward that it becomes."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from headrace.schemas.records import Reward
from headrace.streams.agent.errors import InvalidRewardError
from headrace.streams.agent.numbers import reward_number
from headrace.streams.feedback.errors import INVALID, FeedbackError
from headrace.streams.kafka.partitioner import MAX_ID_LENGTH, SEGMENT_MARK

SOURCE = "feedback"
END = "end"
"""Key of a reward's metadata; `true` asks the assembler to end an external rollout."""
KINDS = ("rollout", "response", "trace", "session")
"""What feedback may be about; the field of a request is the kind with `_id`."""
LAST, ALL = "last", "all"
MAX_NAME = 256
MAX_KEY = 512
MAX_METADATA = 64
MAX_METADATA_CHARACTERS = 4096
_FIELDS = frozenset(
    {*(f"{kind}_id" for kind in KINDS), "value", "name", "span_id", "attempt_id", END, "scope", "key", "metadata"}
)


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """One judgement.

    Attributes:
        kind, id: what it is about.
        scope: of a session: its last rollout, or all of them.
        end: nothing more comes of the rollout; it counts for external ones.
        key: what makes it the same when it comes again. Without one, the same value is.
    """

    kind: str
    id: str
    value: float
    name: str = ""
    span_id: str | None = None
    attempt_id: str | None = None
    end: bool = False
    scope: str = LAST
    key: str | None = None
    metadata: dict[str, str] = {}


class Target(NamedTuple):
    """Where feedback goes.

    Attributes:
        attempt_id: of a segment that has closed, for which alone it is meant.
        span_id: the call that it judges.
    """

    rollout_id: str
    attempt_id: str | None = None
    span_id: str | None = None


def read_feedback(value: Any, key: str | None = None) -> Feedback:
    """Reads the JSON of one piece of feedback.

    Args:
        key: of the request, for feedback that names none.

    Raises:
        FeedbackError: with the field at fault; of the value with the reason that every refused reward has
            (`null_reward`, `non_numeric_reward`, `non_finite_reward`).
    """
    if not isinstance(value, dict):
        raise FeedbackError(INVALID, "feedback is a JSON object with rollout_id and value")
    fields = cast("Mapping[str, Any]", value)
    if unknown := sorted(str(name) for name in fields if name not in _FIELDS):
        raise FeedbackError(INVALID, f"there is no field {unknown[0][:80]!r}", param=unknown[0][:80])
    kinds = [kind for kind in KINDS if fields.get(f"{kind}_id") is not None]
    if len(kinds) != 1:
        names = ", ".join(f"{kind}_id" for kind in KINDS)
        raise FeedbackError(INVALID, f"name what it is about with one of {names}", param="rollout_id")
    kind = kinds[0]
    scope = _text(fields, "scope") or LAST
    if scope not in (LAST, ALL) or (scope == ALL and kind != "session"):
        raise FeedbackError(INVALID, "scope is last, or of a session all", param="scope")
    end = fields.get(END, False)
    if not isinstance(end, bool):
        raise FeedbackError(INVALID, "end is true or false", param=END)
    return Feedback(
        kind=kind,
        id=_id(fields, f"{kind}_id", segment=kind == "rollout"),
        value=number_of(fields.get("value")),
        name=_text(fields, "name", MAX_NAME) or "",
        span_id=_id(fields, "span_id") if fields.get("span_id") is not None else None,
        attempt_id=_id(fields, "attempt_id", segment=True) if fields.get("attempt_id") is not None else None,
        end=end,
        scope=scope,
        key=_text(fields, "key", MAX_KEY) or key,
        metadata=_metadata(fields.get("metadata")),
    )


def number_of(value: Any) -> float:
    """The value of feedback; bool and int are numbers.

    Raises:
        FeedbackError: it is none, with the reason that every refused reward has.
    """
    try:
        return reward_number(value, "value")
    except InvalidRewardError as error:
        raise FeedbackError(error.reason, str(error), param="value") from error


def reward_of(feedback: Feedback, target: Target, now: int) -> Reward:
    """The record of feedback.

    Its id is the same whenever the same is said: readers know rewards by it, and the first counts.

    Args:
        now: microseconds since the epoch.
    """
    span_id = feedback.span_id or target.span_id
    told = ("key", feedback.key) if feedback.key is not None else ("value", repr(feedback.value))
    identity = "\0".join((target.rollout_id.partition(SEGMENT_MARK)[0], feedback.name, span_id or "", *told))
    metadata = feedback.metadata if not feedback.end else {**feedback.metadata, END: "true"}
    return Reward(
        rollout_id=target.rollout_id,
        attempt_id=feedback.attempt_id or target.attempt_id,
        reward_id=f"{SOURCE}/{hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()}",
        name=feedback.name,
        primary=not feedback.name,
        value=feedback.value,
        span_id=span_id,
        source=SOURCE,
        at=now,
        metadata=metadata,
    )


def _text(fields: Mapping[str, Any], name: str, limit: int = MAX_ID_LENGTH) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > limit or not _writable(value):
        raise FeedbackError(INVALID, f"{name} is text of at most {limit} characters", param=name)
    return value


def _id(fields: Mapping[str, Any], name: str, *, segment: bool = False) -> str:
    value = _text(fields, name)
    if not value or not value.isprintable() or (segment and name == "rollout_id" and not _is_rollout(value)):
        raise FeedbackError(INVALID, f"{str(value)[:80]!r} is no {name}", param=name)
    return value


def _is_rollout(value: str) -> bool:
    base, mark, number = value.partition(SEGMENT_MARK)
    return bool(base) and (not mark or (number.isascii() and number.isdigit() and not number.startswith("0")))


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    pairs = cast("dict[Any, Any]", value).items() if isinstance(value, dict) else [(None, None)]
    if len(pairs) > MAX_METADATA or not all(_is_pair(name, text) for name, text in pairs):
        message = f"metadata is an object of at most {MAX_METADATA} texts; {END} says nothing there"
        raise FeedbackError(INVALID, message, param="metadata")
    return dict(pairs)


def _is_pair(name: Any, text: Any) -> bool:
    texts = isinstance(name, str) and isinstance(text, str) and name != END
    return texts and len(name) + len(text) <= MAX_METADATA_CHARACTERS and _writable(name + text)


def _writable(text: str) -> bool:
    """Whether UTF-8 holds it: no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
