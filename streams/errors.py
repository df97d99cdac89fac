"""The root of every error that Headrace raises on purpose."""


class HeadraceError(Exception):
    """Something a person can mend; the message says how.

    Attributes:
        retriable: the same call may succeed later.
    """

    retriable = False


class SettingsError(HeadraceError):
    """A setting is missing or makes no sense."""


class InvalidValueError(SettingsError):
    """The value of a flag is none of those that there are."""


class RecordTooLargeError(HeadraceError):
    """A value above `max_message_bytes` that no claim-check store takes."""


class BrokerUnavailableError(HeadraceError):
    """No broker answered in time."""

    retriable = True


class UnavailableError(HeadraceError):
    """Something beside the brokers that a record needs (registry, claim-check store) does not answer now.

    The record is not at fault, and no dead letter: whoever reads it waits, and reads it again.
    """

    retriable = True


class FencedError(HeadraceError):
    """Another process has taken this transactional.id: exit, and do not start again by itself."""


EXIT_USAGE = 2  # as click exits for a flag that it refuses itself
EXIT_FENCED = 78  # EX_CONFIG of sysexits.h: supervisors are told not to restart on it
