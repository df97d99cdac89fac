"""What events carry of a task, for those who do not read tasks."""

from headrace.schemas.records import Task, TaskFacts

NO_INPUT = "null"
"""Stands for an input that is too large for a record that says more."""


def facts_of(task: Task, offset: int | None = None) -> TaskFacts:
    """The facts of a task that stands at an offset of its partition, where that is known."""
    return TaskFacts(
        offset=offset,
        group_id=task.group_id,
        group_size=task.group_size,
        sample_index=task.sample_index,
        mode=task.mode,
        run_id=task.run_id,
        resources_id=task.resources_id,
        input=task.input,
    )
