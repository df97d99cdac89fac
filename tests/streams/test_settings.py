"""Settings: defaults < headrace.toml < HEADRACE_* < flags."""

from datetime import timedelta
from pathlib import Path

import pytest

from headrace.streams.errors import SettingsError
from headrace.streams.settings import load_settings


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a headrace.toml."""
    monkeypatch.chdir(tmp_path)
    for name in ("HEADRACE_PREFIX", "HEADRACE_BOOTSTRAP", "HEADRACE_REGISTRY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_each_source_wins_over_the_one_before(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().prefix == "headrace"
    (elsewhere / "headrace.toml").write_text('prefix = "file"\npartitions = 5\n[kafka]\n"sasl.username" = "u"\n')
    assert load_settings().prefix == "file"
    monkeypatch.setenv("HEADRACE_PREFIX", "environment")
    assert load_settings().prefix == "environment"
    settings = load_settings(prefix="flag", partitions=None)
    assert (settings.prefix, settings.partitions, settings.kafka) == ("flag", 5, {"sasl.username": "u"})


def test_names_and_retention() -> None:
    settings = load_settings(feedback_window=timedelta(days=2), max_open=timedelta(hours=12))
    assert settings.topic("spans") == "headrace.spans.v1"
    assert settings.group("trainer.run") == "headrace.trainer.run"
    assert settings.retention == timedelta(days=3, hours=12)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"partitions": 0}, "partitions"),
        ({"partitions": 100_000_000}, "partitions"),
        ({"prefix": "a b"}, "prefix"),
        ({"prefix": ""}, "prefix"),
        ({"group_protocol": "new"}, "group_protocol"),
        ({"heartbeat": "soon"}, "heartbeat"),
    ],
)
def test_what_makes_no_sense_is_named(values: dict[str, object], named: str) -> None:
    with pytest.raises(SettingsError, match=named) as error:
        load_settings(**values)
    assert "HEADRACE_*" in str(error.value)


def test_a_misspelt_name_in_the_environment_is_refused(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for of_others in ("HEADRACE_CACHE", "HEADRACE_TEST_BOOTSTRAP", "HEADRACE_JAVA_HOME", "HEADRACE_MY_OWN"):
        monkeypatch.setenv(of_others, "x")
    monkeypatch.setenv("HEADRACE_KAFKA__LINGER", "5")
    load_settings()
    monkeypatch.setenv("HEADRACE_BOOTSTRP", "x:1")
    with pytest.raises(SettingsError, match="HEADRACE_BOOTSTRP is no setting; did you mean HEADRACE_BOOTSTRAP"):
        load_settings()


def test_a_misspelt_name_in_the_file_is_refused(elsewhere: Path) -> None:
    (elsewhere / "headrace.toml").write_text('bootstrp = "x:1"\n')
    with pytest.raises(SettingsError, match="no setting 'bootstrp'; did you mean bootstrap"):
        load_settings()
    (elsewhere / "headrace.toml").write_text("gateway_engine_wait = 3\n")  # of a part, which shares the file
    assert load_settings().prefix == "headrace"
