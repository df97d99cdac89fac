"""The schema of the database: made, and brought up to date, by the migrations in this folder."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Engine, inspect, text

from headrace.streams.settings import Settings
from headrace.streams.view import tables
from headrace.streams.view.batch import TOPICS
from headrace.streams.view.database import telling
from headrace.streams.view.errors import ViewError

MIGRATIONS = Path(__file__).parent / "migrations"
VERSION_TABLE = "alembic_version"
LOCK = 0x48656164  # any number: one process of many upgrades


def upgrade(engine: Engine, *, rebuild: bool = False) -> None:
    """Makes the tables, or changes those of an earlier version, in one transaction.

    Args:
        rebuild: drops them first, rows and offsets with them.

    Raises:
        ViewError: a later version has made them.
        DatabaseUnavailableError: no answer.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    with telling(engine), engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        if rebuild:
            tables.metadata.drop_all(connection)
            connection.execute(text(f"DROP TABLE IF EXISTS {VERSION_TABLE}"))
        made_now = not inspect(connection).has_table(tables.offsets.name)
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise ViewError(
                f"{engine.url.render_as_string()} was made by another version of Headrace ({error}); upgrade "
                "Headrace, or give --rebuild to make it anew from the topics"
            ) from error
        if made_now:
            connection.execute(tables.horizon.update().values(whole_since=None))


def check_pipeline(engine: Engine, settings: Settings) -> None:
    """One database is the view of one pipeline.

    Raises:
        ViewError: its rows are another pipeline's.
    """
    ours = {settings.topic(topic) for topic in TOPICS}
    with telling(engine), engine.connect() as connection:
        topics = connection.execute(tables.offsets.select()).scalars().all()
    other = next((topic for topic in topics if topic not in ours), None)
    if other is not None:
        raise ViewError(
            f"{engine.url.render_as_string()} is the view of the pipeline with {other}; name another with --database "
            f"(or HEADRACE_VIEW) for prefix {settings.prefix!r}, or give --rebuild"
        )
