"""Which rollout feedback is about, asked of the view."""

from typing import Any

from sqlalchemy import Connection, Select, and_, desc, func, or_, select

from headrace.streams.feedback.errors import UnknownTargetError
from headrace.streams.feedback.request import ALL, Feedback, Target
from headrace.streams.kafka.partitioner import SEGMENT_MARK
from headrace.streams.view.database import has_tables, open_database, telling
from headrace.streams.view.errors import ViewError
from headrace.streams.view.tables import rollouts, spans, trajectories

AFTER_MARK = chr(ord(SEGMENT_MARK) + 1)
EXTERNAL = "external"
SOURCES_OF_IDS = "gateway"  # of two copies of a call the one with token ids is the call
MAX_ROLLOUTS = 1000  # of a session that are judged at once


class Targets:
    """Looks targets up; safe to share between threads. What the view has not read yet is unknown."""

    def __init__(self, url: str) -> None:
        """Raises ViewError where there is no view."""
        self._engine = open_database(url, read_only=True)
        if not has_tables(self._engine, spans.name, trajectories.name):
            where = self._engine.url.render_as_string()
            raise ViewError(f"{where} has no view; `headrace processor view` with this database makes one")

    def close(self) -> None:
        """Lets the connections go."""
        self._engine.dispose()

    def find(self, feedback: Feedback) -> list[Target]:
        """Where feedback goes: one target, or of a session with scope `all` one or more.

        Raises:
            UnknownTargetError: the view knows no such rollout, response, trace or session.
            DatabaseUnavailableError: no answer.
        """
        with telling(self._engine), self._engine.connect() as connection:
            if feedback.kind == "rollout":
                found = [Target(feedback.id)] if _knows(connection, feedback.id) else []
            elif feedback.kind == "response":
                found = _of_response(connection, feedback.id)
            elif feedback.kind == "trace":
                found = _of_trace(connection, feedback.id)
            else:
                found = _of_session(connection, feedback.id, everything=feedback.scope == ALL)
        if not found:
            raise UnknownTargetError(
                f"nobody knows the {feedback.kind} {feedback.id[:80]!r}: look whether the id is right, and whether "
                "`headrace processor view` runs; what it has not read yet it does not know"
            )
        return found


def _knows(connection: Connection, rollout_id: str) -> bool:
    base = rollout_id.partition(SEGMENT_MARK)[0]
    if base == rollout_id:
        asked = (rollouts.c.rollout_id, spans.c.rollout_id, trajectories.c.rollout_id)
    else:
        asked = (rollouts.c.rollout_id, trajectories.c.rollout_id)
    return any(connection.execute(select(c).where(c == rollout_id).limit(1)).first() for c in asked)


def _of_response(connection: Connection, response_id: str) -> list[Target]:
    named = spans.c.response_id == response_id
    row = connection.execute(_latest_span().where(named).limit(1)).first()
    return [_of_span(connection, row.rollout_id, row.span_id, row.span_id)] if row is not None else []


def _of_trace(connection: Connection, trace_id: str) -> list[Target]:
    row = connection.execute(_latest_span().where(spans.c.trace_id == trace_id.lower()).limit(1)).first()
    return [_of_span(connection, row.rollout_id, row.span_id, None)] if row is not None else []


def _latest_span() -> Select[Any, Any]:
    first = desc(spans.c.source == SOURCES_OF_IDS)
    return select(spans.c.rollout_id, spans.c.span_id).order_by(first, spans.c.log_at.desc())


def _of_span(connection: Connection, rollout_id: str, member: str, judged: str | None) -> Target:
    """The segment whose trajectory holds a span; without one the assembler finds the rollout's last."""
    holds = trajectories.c.triplets.contains(f'"span_id":"{member}"', autoescape=True)
    row = connection.execute(_segments(rollout_id).where(holds).limit(1)).first()
    return Target(rollout_id, row.attempt_id if row is not None else None, judged)


def _of_session(connection: Connection, session_id: str, *, everything: bool) -> list[Target]:
    last = func.max(spans.c.log_at).label("last")
    grouped = select(spans.c.rollout_id, last).where(spans.c.session_id == session_id).group_by(spans.c.rollout_id)
    limit = MAX_ROLLOUTS if everything else 1
    rows = connection.execute(grouped.order_by(last.desc(), spans.c.rollout_id).limit(limit)).all()
    if not everything:
        return [Target(row.rollout_id) for row in rows]
    found: list[Target] = []
    for row in rows:
        # The one without an attempt reaches a segment that is open; where none is, it repeats the last one's.
        closed = connection.execute(_segments(row.rollout_id)).all()
        found += [*(Target(row.rollout_id, segment.attempt_id) for segment in closed), Target(row.rollout_id)]
    return found


def _segments(rollout_id: str) -> Select[Any, Any]:
    """The trajectories of an external rollout and of its segments, at revision 0."""
    own = trajectories.c.rollout_id
    after = f"{rollout_id}{SEGMENT_MARK}"
    segments = or_(own == rollout_id, and_(own > after, own < f"{rollout_id}{AFTER_MARK}"))
    closed = and_(segments, trajectories.c.origin == EXTERNAL, trajectories.c.revision == 0)
    return select(own, trajectories.c.attempt_id).where(closed).order_by(trajectories.c.log_offset)
