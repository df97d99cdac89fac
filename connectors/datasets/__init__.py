"""Where tasks come from."""

from headrace.connectors.datasets.jsonl import BadLine, BadLinesError, TaskLines, read_task_lines

__all__ = ["BadLine", "BadLinesError", "TaskLines", "read_task_lines"]
