"""`headrace schemas` without a registry; with one see the codec's tests."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from headrace.schemas import catalogue
from headrace.schemas.records import RECORDS
from headrace.streams.settings import Settings, load_settings


@pytest.fixture
def command(make_headrace: Callable[[Settings], Any]) -> Any:
    """The command with nothing running."""
    return make_headrace(load_settings())


def test_show_gives_the_schema(command: Any) -> None:
    assert json.loads(command("schemas", "show", "Task").stdout) == catalogue.current()["Task"].json
    (schema,) = command.json("schemas", "show", "Span", "--json")
    assert schema["name"] == "Span"
    rows = command.json("schemas", "show", "--json")
    assert {row["record"] for row in rows} == set(RECORDS)
    assert rows[0]["fingerprint"] == catalogue.current()[rows[0]["record"]].fingerprint.hex()
    unknown = command("schemas", "show", "Taks")
    assert unknown.returncode == 1
    assert "Task" in unknown.stderr


def test_check_names_the_releases(command: Any) -> None:
    (out,) = command.json("schemas", "check", "--json")
    assert out == {"ok": True, "against": catalogue.releases(), "differences": []}


def test_register_needs_a_registry(command: Any) -> None:
    done = command("schemas", "register")
    assert done.returncode == 1
    assert "--registry-url" in done.stderr


def test_release_refuses_what_is_no_version(command: Any) -> None:
    done = command("schemas", "release", "next")
    assert done.returncode == 1
    assert "1.2.3" in done.stderr
