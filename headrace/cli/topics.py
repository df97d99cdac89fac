"""`headrace topics`: the pipeline's topics in a cluster."""

from __future__ import annotations

import sys
from typing import Annotated, cast

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, print_json, print_table, settings_of

app = typer.Typer(help="Make, list and check the pipeline's topics.", no_args_is_help=True, add_completion=False)
Partitions = Annotated[int | None, typer.Option(min=1, help="Of each topic keyed by rollout [HEADRACE_PARTITIONS].")]
Replication = Annotated[int | None, typer.Option(min=1, help="Copies of each [HEADRACE_REPLICATION_FACTOR].")]


@app.callback()
def group() -> None:
    """Make, list and check the pipeline's topics."""


@app.command()
def create(
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    partitions: Partitions = None,
    replication_factor: Replication = None,
    json: Json = False,
) -> None:
    """Make the topics that are missing, and set the groups' session time-outs; those that are there stay as they are.

    Example: headrace topics create --bootstrap 127.0.0.1:9092 --partitions 12
    """
    from headrace.streams.kafka.admin import check_topics, create_topics, wanted_topics

    settings = settings_of(bootstrap, prefix, partitions=partitions, replication_factor=replication_factor)
    made = create_topics(settings)
    if json:
        print_json({"created": made})
    else:
        for name in made:
            print(name)
        print(f"{len(made)} topics made at {settings.bootstrap}")
    if len(made) < len(wanted_topics(settings)):
        for difference in check_topics(settings):
            print(f"headrace: left as it was: {difference}", file=sys.stderr)


@app.command("list")
def list_(bootstrap: Bootstrap = None, prefix: Prefix = None, json: Json = False) -> None:
    """List every topic of the catalogue, and what the cluster has of it.

    Example: headrace topics list --json
    """
    from headrace.streams.kafka.admin import describe, wanted_topics
    from headrace.streams.topics import TOPICS

    settings = settings_of(bootstrap, prefix)
    there = describe(settings)
    records = {settings.topic(t.name): t for t in TOPICS.values()}
    rows: list[dict[str, object]] = []
    for wanted in wanted_topics(settings):
        topic = records.get(wanted.name)
        rows.append(
            {
                "topic": wanted.name,
                "records": list(topic.records) if topic else [],
                "key": topic.key if topic else None,
                "partitions": len(there[wanted.name].partitions) if wanted.name in there else None,
                "cleanup": wanted.config["cleanup.policy"],
                "retention_ms": int(wanted.config["retention.ms"]),
            }
        )
    if json:
        for row in rows:
            print_json(row)
        return
    from rich.table import Table

    table = Table("topic", "records", "key", "partitions", "cleanup", "retention")
    for row in rows:
        days = int(str(row["retention_ms"])) / 86_400_000
        table.add_row(
            str(row["topic"]),
            ", ".join(cast(list[str], row["records"])),
            str(row["key"] or "as came"),
            str(row["partitions"] or "missing"),
            str(row["cleanup"]),
            f"{days:g} d" if days > 0 else "no limit",
        )
    print_table(table)


@app.command()
def check(
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    partitions: Partitions = None,
    replication_factor: Replication = None,
    json: Json = False,
) -> None:
    """Name every difference between the settings and the cluster; exit code 1 if there is any.

    Example: headrace topics check --bootstrap 127.0.0.1:9092
    """
    from headrace.streams.kafka.admin import check_topics

    settings = settings_of(bootstrap, prefix, partitions=partitions, replication_factor=replication_factor)
    problems = check_topics(settings)
    if json:
        print_json({"ok": not problems, "differences": problems})
    else:
        for problem in problems:
            print(problem)
        if not problems:
            print(f"the topics of {settings.prefix} at {settings.bootstrap} are as the settings say")
    if problems:
        raise typer.Exit(1)


@app.command("sweep-claims")
def sweep_claims(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted, and delete nothing.")] = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    json: Json = False,
) -> None:
    """Delete large values from the claim-check store that are older than their topic keeps records, and have none.

    Example: headrace topics sweep-claims --dry-run
    """
    from dataclasses import asdict

    from headrace.streams.claims.sweep import sweep

    settings = settings_of(bootstrap, prefix)
    values = 0
    for swept in sweep(settings, dry_run=dry_run):
        values += swept.values
        if json:
            print_json(asdict(swept))
        elif swept.values:
            word = "would be deleted" if dry_run else "deleted"
            print(f"{swept.topic}: {swept.values} values, {swept.old} old, {swept.deleted} {word}")
    if not json:
        print(f"{values} large values of {settings.prefix} at {settings.claim_check}")
