"""`headrace schemas`: the Avro schemas, and what the registry has of them."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.options import Json, Prefix, Registry, print_json, settings_of

app = typer.Typer(help="Show, register and check the Avro schemas.", no_args_is_help=True, add_completion=False)


@app.callback()
def group() -> None:
    """Show, register and check the Avro schemas."""


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="Of a record, such as Task; all of them where not given.")] = None,
    json: Json = False,
) -> None:
    """Show a schema as JSON; without NAME list the records with topic and fingerprint.

    Example: headrace schemas show Task
    """
    from headrace.schemas import catalogue, claim_check
    from headrace.streams.errors import SettingsError
    from headrace.streams.topics import TOPIC_OF_RECORD

    schemas = catalogue.current()
    if name is not None:
        schemas = {**schemas, claim_check.SCHEMA.name: claim_check.SCHEMA}  # of no topic
        if name not in schemas:
            raise SettingsError(f"no record {name!r}; there are {', '.join(schemas)}")
        if json:
            print_json(schemas[name].json)
        else:
            print(schemas[name].text.rstrip())
        return
    for schema in schemas.values():
        topic, fingerprint = TOPIC_OF_RECORD[schema.name], schema.fingerprint.hex()
        if json:
            print_json({"record": schema.name, "topic": topic, "fingerprint": fingerprint, "schema": schema.json})
        else:
            print(f"{schema.name:16} {topic:10} {fingerprint}")


@app.command()
def check(prefix: Prefix = None, registry_url: Registry = None, json: Json = False) -> None:
    """Check that the schemas read what every released version wrote; with a registry, also what it has.

    Exit code 1 if one does not.

    Example: headrace schemas check --registry-url http://127.0.0.1:8080/apis/ccompat/v7
    """
    from headrace.schemas import catalogue, compatibility
    from headrace.streams.codec.registry import RegistrySchemas, subject

    settings = settings_of(None, prefix, registry_url)
    problems = [str(problem) for problem in compatibility.check()]
    against = [*catalogue.releases()]
    if settings.registry:
        registry = RegistrySchemas(settings)
        against.append(settings.registry)
        problems += [
            f"{name}: the registry has versions of {subject(settings, name)} that it is not compatible with"
            for name in catalogue.current()
            if not registry.compatible(name)
        ]
    if json:
        print_json({"ok": not problems, "against": against, "differences": problems})
    else:
        for problem in problems:
            print(problem)
        if not problems:
            print(f"{len(catalogue.current())} schemas are compatible with {', '.join(against) or 'nothing yet'}")
    if problems:
        raise typer.Exit(1)


@app.command()
def register(prefix: Prefix = None, registry_url: Registry = None, json: Json = False) -> None:
    """Register every schema in the registry, each under its topic, BACKWARD_TRANSITIVE.

    Example: headrace schemas register --registry-url http://127.0.0.1:8080/apis/ccompat/v7
    """
    from headrace.schemas import catalogue
    from headrace.streams.codec.registry import RegistrySchemas, subject
    from headrace.streams.errors import SettingsError

    settings = settings_of(None, prefix, registry_url)
    if not settings.registry:
        raise SettingsError("no registry is set: give --registry-url, or set HEADRACE_REGISTRY")
    registry = RegistrySchemas(settings)
    for name in catalogue.current():
        row = {"record": name, "subject": subject(settings, name), "id": registry.register(name)}
        if json:
            print_json(row)
        else:
            print(f"{row['record']:16} {row['id']:6}  {row['subject']}")


@app.command()
def release(
    version: Annotated[str, typer.Argument(help="Of Headrace, such as 0.2.0.")],
    json: Json = False,
) -> None:
    """Keep the schemas as those of a released version, in a checkout of the repository.

    Example: headrace schemas release 0.2.0
    """
    from headrace.schemas import compatibility
    from headrace.streams.errors import HeadraceError

    try:
        kept = compatibility.release(version)
    except compatibility.CannotReleaseError as error:
        raise HeadraceError(str(error)) from error
    if json:
        print_json({"version": version, "records": kept})
    else:
        print(f"kept {len(kept)} schemas as {version}")
