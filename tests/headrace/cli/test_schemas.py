"""`headrace schemas` without a registry; with one see the codec's tests."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from headrace.schemas import catalogue
from headrace.schemas.records import RECORDS
from headrace.streams.settings import Settings, load_settings


@pytest.fixture
def asking(asking_as: Callable[[Settings], Any]) -> Any:
    """The command with nothing running."""
    return asking_as(load_settings())


def test_show_gives_the_schema(asking: Any) -> None:
    assert json.loads(asking("schemas", "show", "Task").stdout) == catalogue.current()["Task"].json
    (schema,) = asking.json("schemas", "show", "Span", "--json")
    assert schema["name"] == "Span"
    rows = asking.json("schemas", "show", "--json")
    assert {row["record"] for row in rows} == set(RECORDS)
    assert rows[0]["fingerprint"] == catalogue.current()[rows[0]["record"]].fingerprint.hex()
    unknown = asking("schemas", "show", "Taks")
    assert unknown.exit_code == 1
    assert "Task" in f"{unknown.stderr} {unknown.exception}"


def test_check_names_the_releases(asking: Any) -> None:
    (out,) = asking.json("schemas", "check", "--json")
    assert out == {"ok": True, "against": catalogue.releases(), "differences": []}


def test_register_needs_a_registry(asking: Any) -> None:
    done = asking("schemas", "register")
    assert done.exit_code == 1
    assert "--registry-url" in f"{done.stderr} {done.exception}"


def test_release_refuses_what_is_no_version(asking: Any) -> None:
    done = asking("schemas", "release", "next")
    assert done.exit_code == 1
    assert "1.2.3" in f"{done.stderr} {done.exception}"
