"""Datasets that other tools read."""

import json
from collections import Counter
from pathlib import Path

import pytest

from headrace.streams.errors import SettingsError
from headrace.trainers.sft.export import chosen, conversation_rows, token_rows_of, write_dataset
from tests.trainers.make import RUN, trajectory, triplet

CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CONVERSATIONS = json.dumps(
    [
        {
            "span_id": "s",
            "choice": 0,
            "messages": [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
            ],
            "tools": [{"type": "function"}],
        }
    ]
)


def test_only_good_ones_are_exported() -> None:
    dropped: Counter[str] = Counter()
    given = [
        trajectory("g", 0, final_reward=0.1),
        trajectory("g", 1, final_reward=0.9),
        trajectory("h", 0, final_reward=None),
        trajectory("h", 1, mode="val"),
        trajectory("i", 0, run_id="other"),
    ]
    found = list(chosen(given, min_reward=0.5, modes=["train"], runs=[RUN], dropped=dropped))
    assert [t.rollout_id for t in found] == ["g-1"]
    assert dropped == {"reward_below": 1, "no_reward": 1, "mode": 1, "other_run": 1}


def test_conversations_as_parquet(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    rows = conversation_rows(trajectory("g", 1, conversations=CONVERSATIONS))
    assert write_dataset(rows, tmp_path / "set", tokens=False) == 1
    (row,) = pq.read_table(tmp_path / "set" / "data").to_pylist()
    assert (row["rollout_id"], row["reward"], json.loads(row["tools"])) == ("g-1", 1.0, [{"type": "function"}])
    user, assistant = row["messages"]
    assert user == {"role": "user", "content": "x", "tool_calls": None, "tool_call_id": None}
    assert (assistant["content"], json.loads(assistant["tool_calls"])) == (None, [CALL])
    assert "data/train-*.parquet" in (tmp_path / "set" / "README.md").read_text()
    with pytest.raises(SettingsError, match="holds a dataset already"):
        write_dataset([], tmp_path / "set", tokens=False)


def test_tokens_as_parquet(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    made = trajectory("g", 0, triplets=[triplet([1, 2], [3], [-0.5]), triplet([1, 2, 3, 4], [5], [-0.25])])
    assert write_dataset(token_rows_of(made), tmp_path / "set", tokens=True) == 1
    (row,) = pq.read_table(tmp_path / "set" / "data").to_pylist()
    assert row["input_ids"] == [1, 2, 3, 4, 5]
    assert row["labels"] == [-100, -100, 3, -100, 5]
    assert row["logprobs"] == [0.0, 0.0, -0.5, 0.0, -0.25]
