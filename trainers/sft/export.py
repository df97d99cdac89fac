"""Trajectories as training data for other tools: Parquet, in the layout of a Hugging Face dataset."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from headrace.schemas.records import Trajectory
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.errors import HeadraceError, SettingsError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.trainers.rows import make_rows

ROWS_AT_ONCE = 1000
CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*.parquet
---

Trajectories of Headrace, one model call or one token sequence a row: the columns are described in docs/sft.md.
"""
Row = dict[str, Any]


class ParquetMissingError(HeadraceError):
    """pyarrow is not installed."""


def newest_trajectories(settings: Settings) -> Iterator[Trajectory]:
    """The newest revision of every trajectory in the log now."""
    codec, topic = Codec(settings), settings.topic("triplets")
    newest: dict[str, Trajectory] = {}
    for message in read_topic(settings, topic, partition_ids(settings, topic), client_id="export"):
        try:
            trajectory = codec.decode_as(Trajectory, message.value())
        except DecodeError:  # trainers write the dead letter
            continue
        before = newest.get(trajectory.rollout_id)
        if before is None or trajectory.revision >= before.revision:
            newest[trajectory.rollout_id] = trajectory
    yield from newest.values()


def conversation_rows(trajectory: Trajectory) -> Iterator[Row]:
    """A row a model call and choice: `messages` with the answer last, `tools` as JSON text."""
    entries: list[dict[str, Any]] = msgspec.json.decode(trajectory.conversations or "[]")
    for entry in entries:
        yield {
            **_facts(trajectory),
            "messages": [_message(message) for message in entry["messages"]],
            "tools": json.dumps(entry["tools"], ensure_ascii=False) if entry.get("tools") else None,
        }


def token_rows_of(trajectory: Trajectory) -> Iterator[Row]:
    """A row a token sequence, as trainers make them: `input_ids`, and `labels` with -100 where nothing is learnt.

    Raises:
        ValueError: a prompt refers to tokens that are not there.
    """
    for row in make_rows(trajectory).rows:
        labels = [int(t) if trained else -100 for t, trained in zip(row.token_ids, row.loss_mask, strict=True)]
        yield {
            **_facts(trajectory),
            "input_ids": row.token_ids.tolist(),
            "labels": labels,
            "logprobs": row.logprobs.tolist(),
        }


def write_dataset(rows: Iterable[Row], directory: Path, *, tokens: bool) -> int:
    """Writes a folder that `datasets.load_dataset` and any reader of Parquet take; the number of rows.

    Args:
        tokens: whether rows are those of `token_rows_of`.

    Raises:
        ParquetMissingError: pyarrow is not installed.
        SettingsError: the folder is there already, or cannot be written.
    """
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ParquetMissingError("Parquet needs pyarrow: pip install 'headrace[parquet]'") from error
    pa, pq = cast(Any, arrow), cast(Any, parquet)
    schema = _schema(pa, tokens)
    count = 0
    try:
        (directory / "data").mkdir(parents=True)
        with pq.ParquetWriter(directory / "data" / "train-00000-of-00001.parquet", schema, compression="zstd") as file:
            for batch in _batches(rows):
                file.write_table(pa.Table.from_pylist(batch, schema=schema))
                count += len(batch)
        (directory / "README.md").write_text(CARD)
    except FileExistsError as error:
        raise SettingsError(f"{directory} holds a dataset already; name another folder") from error
    except OSError as error:
        raise SettingsError(f"{directory} cannot be written: {error.strerror or error}") from error
    return count


def chosen(
    trajectories: Iterable[Trajectory],
    *,
    min_reward: float | None,
    dropped: Counter[str],
    modes: Iterable[str] = (),
    runs: Iterable[str] = (),
) -> Iterator[Trajectory]:
    """Those that are good enough; the others are counted by reason: `mode`, `other_run`, `no_reward`, `reward_below`.

    Args:
        modes: none are all, as of `runs`.
    """
    wanted, known = set(modes), set(runs)
    for trajectory in trajectories:
        reward = trajectory.final_reward
        if wanted and trajectory.mode not in wanted:
            dropped["mode"] += 1
        elif known and trajectory.run_id not in known:
            dropped["other_run"] += 1
        elif min_reward is not None and reward is None:
            dropped["no_reward"] += 1
        elif min_reward is not None and not (reward is not None and reward >= min_reward):
            dropped["reward_below"] += 1
        else:
            yield trajectory


def _facts(trajectory: Trajectory) -> Row:
    return {
        "rollout_id": trajectory.rollout_id,
        "group_id": trajectory.group_id,
        "mode": trajectory.mode,
        "run_id": trajectory.run_id,
        "policy": trajectory.policy,
        "status": trajectory.status,
        "input": trajectory.input,
        "reward": trajectory.final_reward,
    }


def _message(message: Mapping[str, Any]) -> Row:
    content, calls = message.get("content"), message.get("tool_calls")
    return {
        "role": message["role"],
        "content": content if isinstance(content, str) or content is None else json.dumps(content, ensure_ascii=False),
        "tool_calls": json.dumps(calls, ensure_ascii=False) if calls else None,
        "tool_call_id": message.get("tool_call_id"),
    }


def _schema(pa: Any, tokens: bool) -> Any:
    text = ("rollout_id", "group_id", "mode", "run_id", "policy", "status", "input")
    fields = [(name, pa.string()) for name in text] + [("reward", pa.float64())]
    if tokens:
        ids = pa.list_(pa.int32())
        return pa.schema([*fields, ("input_ids", ids), ("labels", ids), ("logprobs", pa.list_(pa.float32()))])
    message = pa.struct([(name, pa.string()) for name in ("role", "content", "tool_calls", "tool_call_id")])
    return pa.schema([*fields, ("messages", pa.list_(message)), ("tools", pa.string())])


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
