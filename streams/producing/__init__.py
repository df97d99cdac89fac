"""Producing tasks: from Python by `TaskProducer`, for a training run by `Feeder`."""

from headrace.streams.producing.feeder import Bound, Feeder
from headrace.streams.producing.producer import TaskProducer
from headrace.streams.producing.specs import TaskFieldError, TaskSpec, check, tasks_of

__all__ = ["Bound", "Feeder", "TaskFieldError", "TaskProducer", "TaskSpec", "check", "tasks_of"]
