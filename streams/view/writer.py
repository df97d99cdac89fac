"""Rows and offsets in one SQL transaction, guarded by the offsets themselves.

The offsets in the database say how far its rows have come, and only who finds them as they were when it began to read
may move them. So two processes that read one partition, a zombie and its successor among them, never both write it.
"""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, Engine, bindparam, select, update

from headrace.streams.view import tables
from headrace.streams.view.batch import Batch
from headrace.streams.view.database import telling
from headrace.streams.view.errors import OvertakenError, RefusedRowsError, ViewError
from headrace.streams.view.rows import Place, Row
from headrace.streams.view.statements import delete_keys, statements_of

Partition = tuple[str, int]
"""Full topic name and number."""
Move = tuple[int, int]
"""The position that a read began at, and the next one."""

_GUARD = (
    update(tables.offsets)
    .where(
        tables.offsets.c.topic == bindparam("of_topic"),
        tables.offsets.c.partition == bindparam("of_partition"),
        tables.offsets.c.next == bindparam("began_at"),
    )
    .values(next=bindparam("ends_at"))
)


class ViewWriter:
    """Writes batches. For one thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._statements = statements_of(engine)

    def positions(self, partitions: Iterable[Partition], topic_ids: Mapping[str, str]) -> dict[Partition, int]:
        """Where to read partitions from: 0 for one that the database does not know yet.

        Args:
            topic_ids: Kafka's id of each topic, by full name.

        Raises:
            ViewError: a topic is another one than the rows come from: it was deleted and made anew.
            DatabaseUnavailableError: no answer.
        """
        wanted = sorted(set(partitions))
        with telling(self._engine), self._engine.begin() as connection:
            rows = [(topic, partition, 0, topic_ids[topic]) for topic, partition in wanted]
            if rows:
                self._statements.append(connection, tables.offsets, rows)
            found = {(r.topic, r.partition): r for r in connection.execute(select(tables.offsets))}
        for topic, partition in wanted:
            if found[topic, partition].topic_id != topic_ids[topic]:
                raise ViewError(
                    f"{topic} was made anew since {self._engine.url.render_as_string()} was written; "
                    "give --rebuild to begin anew too, or --database another one"
                )
        return {at: found[at].next for at in wanted}

    def write(self, batch: Batch, moves: Mapping[Partition, Move]) -> None:
        """Writes a batch, and the positions after it.

        Raises:
            OvertakenError: another process has moved one of the partitions.
            RefusedRowsError: the database does not take a value; `refused` says of which records.
            DatabaseUnavailableError: no answer.
        In each case nothing is written.
        """
        with telling(self._engine), self._engine.begin() as connection:
            self._guard(connection, moves)
            self._write(connection, batch)

    def refused(self, batch: Batch) -> dict[tuple[str, Place], str]:
        """The records, by topic and place, whose rows the database does not take, and why. Nothing is written."""
        found: dict[tuple[str, Place], str] = {}
        with telling(self._engine), self._engine.connect() as connection, connection.begin() as transaction:
            for table, rows in batch.appended.items():
                for written in rows:
                    single = Batch()
                    single.appended[table] = [written]
                    self._try(connection, single, (written.topic, written.place), found)
            for table, by_key in batch.kept.items():
                for key, written in by_key.items():
                    if written is None:
                        continue
                    single = Batch()
                    single.kept[table] = {key: written}
                    if table == tables.rollouts.name:
                        single.attempts[key] = batch.attempts[key]
                    self._try(connection, single, (written.topic, written.place), found)
            transaction.rollback()
        return found

    def _try(
        self,
        connection: Connection,
        single: Batch,
        of: tuple[str, Place],
        found: dict[tuple[str, Place], str],
    ) -> None:
        try:
            with telling(self._engine), connection.begin_nested():
                self._write(connection, single)
        except RefusedRowsError as error:
            found[of] = str(error)

    def _guard(self, connection: Connection, moves: Mapping[Partition, Move]) -> None:
        for (topic, partition), (start, end) in sorted(moves.items()):  # in one order, against deadlocks
            moved = connection.execute(
                _GUARD, {"of_topic": topic, "of_partition": partition, "began_at": start, "ends_at": end}
            )
            if moved.rowcount != 1:
                raise OvertakenError(f"another process has written {topic}[{partition}] beyond offset {start}")

    def _write(self, connection: Connection, batch: Batch) -> None:
        statements = self._statements
        for table, written in batch.appended.items():
            if written:
                statements.append(connection, tables.metadata.tables[table], [w.row for w in written])
        for table, by_key in batch.kept.items():
            rows = [w.row for w in by_key.values() if w is not None]
            gone = [key for key, w in by_key.items() if w is None]
            if gone:
                delete_keys(connection, tables.metadata.tables[table], gone)
            if rows:
                statements.upsert(connection, tables.metadata.tables[table], rows)
        if batch.attempts:
            delete_keys(connection, tables.attempts, batch.attempts)
            attempts: list[Row] = [row for rows in batch.attempts.values() for row in rows]
            if attempts:
                statements.append(connection, tables.attempts, attempts)
