"""What can go wrong between the pipeline and its SQL database."""

from headrace.streams.errors import HeadraceError


class ViewError(HeadraceError):
    """The database cannot be used as it is."""


class DatabaseUnavailableError(ViewError):
    """The database did not answer, or gave up a transaction."""

    retriable = True


class OvertakenError(ViewError):
    """Another process has written a partition since this one began to read it: nothing of the batch was written."""

    retriable = True


class RefusedRowsError(ViewError):
    """The database refuses the values of a batch; nothing of it was written."""
