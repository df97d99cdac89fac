"""The tables of the view.

Times are microseconds since the epoch (UTC), those of spans nanoseconds. JSON is text, which both databases can look
into. `log_partition`, `log_offset` and `log_at` say where the record behind a row stands, and when it was appended.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

# Ordered by code point in both databases, whatever the locale: pages of one query agree.
Key = Text().with_variant(Text(collation="C"), "postgresql")


def _log(*, key: bool = True) -> tuple[Column[int], Column[int], Column[int]]:
    return (
        Column("log_partition", Integer, primary_key=key, nullable=False),
        Column("log_offset", BigInteger, primary_key=key, nullable=False),
        Column("log_at", BigInteger, nullable=False),
    )


def _where_given(name: str, column: str) -> Index:
    where = text(f"{column} IS NOT NULL")
    return Index(name, column, sqlite_where=where, postgresql_where=where)


offsets = Table(
    "offsets",
    metadata,
    Column("topic", Key, primary_key=True),
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("next", BigInteger, nullable=False),
    Column("topic_id", Key, nullable=False),
)
"""The first offset of each partition that is not in the rows yet."""

horizon = Table(
    "horizon",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("whole_since", BigInteger),
)
"""One row: of rollouts that ended before, the topics held only parts when the tables were made; NULL: not known yet."""

rollouts = Table(
    "rollouts",
    metadata,
    Column("rollout_id", Key, primary_key=True),
    Column("status", Key, nullable=False),
    Column("mode", Key),
    Column("run_id", Key),
    Column("group_id", Key),
    Column("group_size", Integer, nullable=False),
    Column("sample_index", Integer, nullable=False),
    Column("resources_id", Key),
    Column("origin", Key, nullable=False),
    Column("attempt_count", Integer, nullable=False),
    Column("error_type", Key),
    Column("error_message", Text),
    Column("enqueued_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("cancel_requested_at", BigInteger),
    Column("task_offset", BigInteger),
    Column("config", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("applied_tasks", BigInteger, nullable=False),
    Column("applied_attempts", BigInteger, nullable=False),
    *_log(key=False),
    Index("rollouts_by_time", "enqueued_at"),
    Index("rollouts_by_status", "status", "enqueued_at"),
    Index("rollouts_by_run", "run_id"),
    Index("rollouts_by_group", "group_id"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("rollout_id", Key, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("attempt_id", Key),
    Column("attempt", Integer, nullable=False),
    Column("delivery", Integer, nullable=False),
    Column("status", Key, nullable=False),
    Column("worker_id", Key),
    Column("started_at", BigInteger),
    Column("last_heartbeat_at", BigInteger),
    Column("last_activity_at", BigInteger),
    Column("ended_at", BigInteger),
    Column("error_type", Key),
    Column("error_message", Text),
    Column("error_stacktrace", Text),
)

spans = Table(
    "spans",
    metadata,
    *_log(),
    Column("rollout_id", Key, nullable=False),
    Column("attempt_id", Key, nullable=False),  # '' where the span names none: NULL is equal to nothing
    Column("trace_id", Key, nullable=False),
    Column("span_id", Key, nullable=False),
    Column("parent_id", Key),
    Column("session_id", Key),
    Column("sequence", BigInteger),
    Column("source", Key, nullable=False),
    Column("name", Key, nullable=False),
    Column("agent_name", Key),
    Column("kind", Key, nullable=False),
    Column("status_code", Key, nullable=False),
    Column("status_message", Text, nullable=False),
    Column("start_ns", BigInteger, nullable=False),
    Column("end_ns", BigInteger, nullable=False),
    Column("model", Key),
    Column("policy", Key),
    Column("policy_version_min", BigInteger),
    Column("policy_version_max", BigInteger),
    Column("response_id", Key),
    Column("choices", Integer),
    Column("prompt_tokens", BigInteger),
    Column("response_tokens", BigInteger),
    Column("finish_reason", Key),
    Column("retry_count", Integer),
    Column("http_status", Integer),
    Column("error_type", Key),
    Column("error_message", Text),
    Column("attributes", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("links", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("request", Text),
    Column("response", Text),
    UniqueConstraint("rollout_id", "attempt_id", "trace_id", "span_id", name="spans_identity"),
    Index("spans_by_trace", "trace_id"),
    _where_given("spans_by_response", "response_id"),
    _where_given("spans_by_session", "session_id"),
)

rewards = Table(
    "rewards",
    metadata,
    *_log(),
    Column("rollout_id", Key, nullable=False),
    Column("reward_id", Key, nullable=False),
    Column("attempt_id", Key),
    Column("name", Key, nullable=False),
    Column("is_primary", Boolean, nullable=False),
    Column("value", Double),  # NULL for one that is not finite
    Column("span_id", Key),
    Column("source", Key, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("metadata", Text, nullable=False),
    UniqueConstraint("rollout_id", "reward_id", name="rewards_identity"),
)

trajectories = Table(
    "trajectories",
    metadata,
    *_log(),
    Column("rollout_id", Key, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("attempt_id", Key),
    Column("group_id", Key),
    Column("group_size", Integer, nullable=False),
    Column("sample_index", Integer, nullable=False),
    Column("mode", Key),
    Column("run_id", Key),
    Column("origin", Key, nullable=False),
    Column("session_id", Key),
    Column("status", Key, nullable=False),
    Column("input", Text, nullable=False),
    Column("final_reward", Double),
    Column("rewards", Text, nullable=False),
    Column("resources_id", Key),
    Column("policy", Key),
    Column("policy_version_min", BigInteger),
    Column("policy_version_max", BigInteger),
    Column("calls", Integer, nullable=False),
    Column("kept", Integer, nullable=False),
    Column("dropped", Text, nullable=False),
    Column("triplet_count", Integer, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("response_tokens", BigInteger, nullable=False),
    Column("triplets", Text, nullable=False),
    Column("conversations", Text),
    Column("supersedes_partition", Integer),
    Column("supersedes_offset", BigInteger),
    Column("assembled_at", BigInteger, nullable=False),
    UniqueConstraint("rollout_id", "revision", name="trajectories_identity"),
    Index("trajectories_by_run", "run_id"),
    Index("trajectories_by_group", "group_id"),
)

resources = Table(
    "resources",
    metadata,
    Column("resources_id", Key, primary_key=True),
    Column("name", Key, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("resources", Text, nullable=False),
    Column("run_id", Key),
    Column("step", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    *_log(key=False),
)

runs = Table(
    "runs",
    metadata,
    *_log(),
    Column("run_id", Key, nullable=False),
    Column("algorithm", Key, nullable=False),
    Column("policy", Key, nullable=False),
    Column("settings", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("base_weights", Text),
    Column("parent_run_id", Key),
    Column("parent_step", BigInteger),
    Column("versions", Text, nullable=False),
    Column("device", Key, nullable=False),
    Column("threads", Integer, nullable=False),
    Column("dtype", Key, nullable=False),
    Column("offline", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("runs_by_id", "run_id"),
)

training_steps = Table(
    "training_steps",
    metadata,
    *_log(),
    Column("run_id", Key, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("policy", Key, nullable=False),
    Column("policy_version", BigInteger, nullable=False),
    Column("trained", Integer, nullable=False),
    Column("dropped", Integer, nullable=False),
    Column("drop_reasons", Text, nullable=False),
    Column("decided", BigInteger, nullable=False),
    Column("trained_window", Text, nullable=False),
    Column("metrics", Text, nullable=False),
    Column("staleness", Text, nullable=False),
    Column("state_uri", Text),
    Column("state_sha256", Key),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger, nullable=False),
    Index("training_steps_by_run", "run_id", "step"),
)

workers = Table(
    "workers",
    metadata,
    Column("worker_id", Key, primary_key=True),
    Column("kind", Key, nullable=False),
    Column("host", Key, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("status", Key, nullable=False),
    Column("endpoint", Text),
    Column("policy", Key),
    Column("loading_version", BigInteger),
    Column("loaded_version", BigInteger),
    Column("weights_id", Key),
    Column("counters", Text, nullable=False),
    Column("version", Key, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("last_heartbeat_at", BigInteger, nullable=False),
    *_log(key=False),
)
