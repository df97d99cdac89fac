"""Flags from dataclasses: as if they stood in the command."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.testing import CliRunner

from headrace.cli.flags import spread


@dataclass(frozen=True, kw_only=True)
class Base:
    name: Annotated[str, typer.Option(help="Of it.")]
    folder: Annotated[Path, typer.Option(help="Where.")] = Path("here")
    rate: Annotated[float, typer.Option(help="Fast.")] = 1.0


@dataclass(frozen=True, kw_only=True)
class Slower(Base):
    rate: Annotated[float, typer.Option(help="Slow.")] = 0.5
    words: Annotated[list[str] | None, typer.Option(help="Some.")] = None


def test_each_field_is_a_flag_of_the_command() -> None:
    seen: list[tuple[Any, ...]] = []
    app = typer.Typer()

    @app.command()
    @spread
    def command(*, first: Annotated[int, typer.Option(help="First.")] = 3, set_: Slower) -> None:
        """What it does."""
        seen.append((first, set_))

    runner = CliRunner()
    assert runner.invoke(app, ["--name", "a", "--first", "4", "--words", "x", "--words", "y"]).exit_code == 0
    assert runner.invoke(app, ["--name", "a", "--rate", "2", "--folder", "there"]).exit_code == 0
    assert seen == [
        (4, Slower(name="a", rate=0.5, words=["x", "y"])),
        (3, Slower(name="a", rate=2.0, folder=Path("there"))),
    ]
    missing = runner.invoke(app, [])
    assert missing.exit_code == 2
    options = [p.name for p in typer.main.get_command(app).params if p.name and "completion" not in p.name]
    assert options == ["first", "name", "folder", "rate", "words"]
