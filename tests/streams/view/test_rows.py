"""Records as rows, and rows as what they say."""

import json
from typing import Any

import pytest

from headrace.schemas.records import Record, Span, Usage
from headrace.streams.view import tables
from headrace.streams.view.batch import APPENDED, KEPT, Batch
from headrace.streams.view.fields import fields_of, rollout_of
from headrace.streams.view.rows import Place, attempt_rows, rollout_row
from headrace.streams.view.span_rows import span_row
from headrace.streams.view.training_rows import step_row, trajectory_row

from . import records as make

AT = Place(2, 17, make.NOON)


def fields(table: Any, row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip((c.name for c in table.columns), row, strict=True))


@pytest.mark.parametrize(
    "record",
    [
        make.rollout(),
        make.span(),
        make.reward(),
        make.trajectory(),
        make.step(),
        make.resources(),
        make.manifest(),
        make.worker(),
    ],
    ids=lambda record: record.SCHEMA,
)
def test_a_row_has_a_value_for_every_column(record: Record) -> None:
    table, row_of = (APPENDED | KEPT)[record.SCHEMA]
    columns = tables.metadata.tables[table].columns
    row = row_of(record, AT)
    assert len(row) == len(columns)
    found = fields(tables.metadata.tables[table], row)
    assert (found["log_partition"], found["log_offset"], found["log_at"]) == AT
    for column in columns:
        value = found[column.name]
        assert value is not None or column.nullable, column
        assert value is None or isinstance(
            value, column.type.python_type | (int if column.type.python_type is float else str)
        ), column


def test_a_rollout_comes_back_as_it_was() -> None:
    state = make.rollout(7)
    row = fields(tables.rollouts, rollout_row(state, AT))
    assert (row["attempt_count"], row["error_type"], row["error_message"]) == (2, "ValueError", "no")
    assert rollout_of(row, [fields(tables.attempts, a) for a in attempt_rows(state)]) == state


def test_a_recorded_call_tells_its_tokens() -> None:
    row = fields(tables.spans, span_row(make.span(), AT))
    assert (row["prompt_tokens"], row["response_tokens"], row["finish_reason"]) == (60, 4, "stop")
    assert (row["policy_version_min"], row["policy_version_max"], row["choices"]) == (3, 4, 1)
    assert row["agent_name"] == "solver"
    bare = make.span()
    assert bare.llm is not None
    bare.llm.prompt_token_ids, bare.llm.choices = b"", []
    bare.llm.usage = Usage(input_tokens=11, output_tokens=2)
    row = fields(tables.spans, span_row(bare, AT))
    assert (row["prompt_tokens"], row["response_tokens"], row["finish_reason"]) == (11, 2, None)


def test_a_call_traced_by_attributes_tells_its_tokens_too() -> None:
    attributes = {"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 9}
    row = fields(tables.spans, span_row(make.span(llm=None, attributes=json.dumps(attributes)), AT))
    assert (row["model"], row["prompt_tokens"], row["response_tokens"]) == ("m", 9, 0)
    step = make.span(llm=None, attempt_id=None, attributes='{"tool": 1}', name="look up")
    row = fields(tables.spans, span_row(step, AT))
    assert (row["model"], row["prompt_tokens"], row["attempt_id"], row["agent_name"]) == (None, None, "", None)


def test_attributes_that_are_no_object_are_kept_as_they_are() -> None:
    row = span_row(make.span(llm=None, attributes='["agent.name", "gen_ai."]'), AT)
    found = fields_of((c.name for c in tables.spans.columns), row)
    assert found["attributes"] == ["agent.name", "gen_ai."]
    assert fields_of(["attributes"], ["{"]) == {"attributes": "{"}


def test_a_trajectory_is_summed_up() -> None:
    row = fields(tables.trajectories, trajectory_row(make.trajectory(), AT))
    assert (row["triplet_count"], row["prompt_tokens"], row["response_tokens"]) == (2, 3 + 5, 3)
    first, second = json.loads(row["triplets"])
    assert (first["reward"], second["reward"]) == (1.0, None)
    assert (second["prompt_tokens"], second["policy_version"]) == (5, [1, 1])
    assert (row["calls"], row["kept"], json.loads(row["dropped"])) == (3, 2, {"no_token_ids": 1})


def test_a_step_says_what_it_decided() -> None:
    row = fields(tables.training_steps, step_row(make.step(), AT))
    assert (row["trained"], row["dropped"], json.loads(row["drop_reasons"])) == (2, 1, {"stale": 1})
    assert json.loads(row["trained_window"])["samples"][1] == {"partition": 1, "offset": 2}


def test_of_a_key_the_last_record_counts() -> None:
    batch = Batch()
    assert not batch
    batch.add("rollouts", make.rollout(1, "running"), Place(0, 1, 0))
    batch.add("rollouts", make.rollout(1, "failed", attempts=[]), Place(0, 2, 0))
    batch.add("rollouts", make.rollout(2), Place(0, 3, 0))
    batch.remove("rollouts", "ro-2")  # the topic forgets it, the view does not
    batch.add("workers", make.worker(), Place(0, 3, 0))
    batch.remove("workers", "w")
    found = batch.kept["rollouts"]
    assert batch
    assert found["ro-1"] is not None
    assert found["ro-1"].row[1] == "failed"
    assert found["ro-2"] is not None
    assert batch.kept["workers"] == {"w": None}
    assert {key: len(rows) for key, rows in batch.attempts.items()} == {"ro-1": 0, "ro-2": 2}


def test_what_is_refused_is_left_out_with_its_attempts() -> None:
    batch = Batch()
    batch.add("spans", make.span(1), Place(0, 1, 0))
    batch.add("spans", make.span(2), Place(0, 2, 0))
    batch.add("rollouts", make.rollout(1), Place(0, 1, 0))
    left = batch.without({("spans", Place(0, 2, 0)), ("rollouts", Place(0, 1, 0))})
    assert [w.place.offset for w in left.appended["spans"]] == [1]
    assert left.kept == {"rollouts": {}}
    assert left.attempts == {}


def test_every_topic_of_the_view_has_a_row_for_its_records() -> None:
    from headrace.streams.topics import TOPICS
    from headrace.streams.view.batch import TABLE_OF_TOPIC, UNKEPT
    from headrace.streams.view.batch import TOPICS as READ

    for topic in READ:
        for record in TOPICS[topic].records:
            assert record in APPENDED or record in KEPT or record in UNKEPT
        assert TOPICS[topic].compact == (topic in TABLE_OF_TOPIC or topic == "rollouts")
    assert Span.SCHEMA in APPENDED
