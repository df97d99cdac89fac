"""`headrace view`: care of the view's database; `headrace processor view` keeps it."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, print_json, settings_of
from headrace.cli.sources import Database, duration_of

app = typer.Typer(help="Care for the view's database.", no_args_is_help=True, add_completion=False)


@app.callback()
def group() -> None:
    """Care for the view's database."""


@app.command()
def prune(
    older_than: Annotated[str, typer.Option(help="Of rollouts that ended so long ago: 30d, 12h.")],
    database: Database = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    json: Json = False,
) -> None:
    """Remove the rows of rollouts that ended long ago; those that have not ended stay.

    It works in small steps, beside a running `headrace processor view` too, which does the same by itself where it is
    given --retention. The database keeps the space for new rows.

    Example: headrace view prune --older-than 30d --database sqlite:////var/lib/headrace/view.db
    """
    logging.getLogger("alembic").setLevel("WARNING")
    from headrace.streams.kafka.clock import wall_us
    from headrace.streams.view.database import DEFAULT_DATABASE, open_database
    from headrace.streams.view.migrate import check_pipeline, upgrade
    from headrace.streams.view.pruning import Pruner, check_age
    from headrace.streams.view.pruning import prune as prune_rows
    from headrace.streams.view.queries import SqlSource

    settings = settings_of(bootstrap, prefix)
    age = check_age(settings, duration_of(older_than, "--older-than"))
    url = database or settings.view or DEFAULT_DATABASE
    SqlSource(url).close()  # there must be one already
    engine = open_database(url)
    try:
        upgrade(engine)
        check_pipeline(engine, settings)
        removed = prune_rows(Pruner(engine, settings, age), wall_us())
    finally:
        engine.dispose()
    if json:
        print_json({"removed": removed})
    elif removed:
        print("removed: " + ", ".join(f"{count} {table}" for table, count in removed.items()))
    else:
        print("nothing is as old")
