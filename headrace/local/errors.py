"""What can be wrong with a pipeline file."""

from headrace.streams.errors import HeadraceError


class PipelineError(HeadraceError):
    """The file cannot be read, or a key in it makes no sense."""
