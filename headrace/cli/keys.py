"""`headrace keys`: who may call the gateway."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.options import Json, print_json, print_table

app = typer.Typer(no_args_is_help=True, add_completion=False)

KeyFile = Annotated[
    Path | None,
    typer.Option("--file", help="The file of keys [HEADRACE_GATEWAY_KEYS]."),
]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is, for people.")],
    scope: Annotated[
        list[str] | None, typer.Option(help="call, train or feedback (repeatable); all three without it.")
    ] = None,
    requests_per_minute: Annotated[int | None, typer.Option(min=1, help="Limit in each gateway.")] = None,
    concurrent: Annotated[int | None, typer.Option(min=1, help="Calls at once, in each gateway.")] = None,
    file: KeyFile = None,
    json: Json = False,
) -> None:
    """Make a key and print it; it is not kept, and cannot be shown again.

    Example: headrace keys create shop --scope call --scope feedback --requests-per-minute 600
    """
    from headrace.connectors.gateway.keys.store import SCOPES, create_key

    if unknown := [s for s in scope or () if s not in SCOPES]:
        raise typer.BadParameter(f"{unknown[0]!r}; there are {', '.join(SCOPES)}", param_hint="--scope")
    key, secret = create_key(
        _path(file), name, scopes=scope or SCOPES, requests_per_minute=requests_per_minute, concurrent=concurrent
    )
    if json:
        print_json({**_plain(key), "key": secret})
    else:
        print(secret)


@app.command(name="list")
def list_keys(file: KeyFile = None, json: Json = False) -> None:
    """Show the keys of the file, without the keys themselves.

    Example: headrace keys list
    """
    from headrace.connectors.gateway.keys.store import read_keys

    keys = [_plain(key) for key in read_keys(_path(file))]
    if json:
        for key in keys:
            print_json(key)
        return
    from rich.table import Table

    table = Table("id", "name", "scopes", "requests/min", "at once", "revoked")
    for key in keys:
        limits = ("requests_per_minute", "concurrent")
        table.add_row(
            key["id"],
            key["name"],
            " ".join(key["scopes"]),
            *(str(key[limit] or "") for limit in limits),
            "yes" if key["revoked_at"] else "",
        )
    print_table(table)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `headrace keys list` shows it.")],
    file: KeyFile = None,
    json: Json = False,
) -> None:
    """End a key: gateways refuse it a second or two later.

    Example: headrace keys revoke 0f3a5c7e91
    """
    from headrace.connectors.gateway.keys.store import revoke_key

    key = revoke_key(_path(file), key_id)
    if json:
        print_json(_plain(key))
    else:
        print(f"{key.id} ({key.name}) is revoked")


def _path(file: Path | None) -> Path:
    if file is not None:
        return file
    from headrace.connectors.gateway.settings import GatewaySettings
    from headrace.streams.settings import load_settings_as

    path = load_settings_as(GatewaySettings).gateway_keys
    if path is None:
        raise typer.BadParameter("name the file of keys with it, or as HEADRACE_GATEWAY_KEYS", param_hint="--file")
    return path


def _plain(key: Any) -> dict[str, Any]:
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(key)
    del fields["sha256"]
    return fields
