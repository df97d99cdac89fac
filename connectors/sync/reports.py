"""How `headrace sync` reports on an engine in the workers topic.

A report is a WorkerState of kind `sync` with the engine's endpoint and policy, `loading_version` (its load has begun)
and `loaded_version` (acknowledged by the engine). It has a key of its own for each engine process, because the engine
announces itself under its own; it stays true of that process when sync has ended.
"""

from headrace.schemas.records import WorkerState

SYNC = "sync"
_MARK = "sync:"


def report_id(engine: WorkerState) -> str:
    """worker_id of the report on an engine process."""
    return f"{_MARK}{engine.worker_id}@{engine.started_at}"


def url_report_id(endpoint: str) -> str:
    """worker_id of the report on an engine that is known by its URL only."""
    return f"{_MARK}{endpoint}"


def is_report(state: WorkerState) -> bool:
    """Whether a state of kind `sync` reports on an engine, rather than on sync's own process."""
    return state.kind == SYNC and state.worker_id.startswith(_MARK)
