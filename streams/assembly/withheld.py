"""Why the content of a call is not in its span: the gateway writes the reason, and assembly drops the call with it."""

WITHHELD = "headrace.withheld"
"""The attribute with the reason."""
OPTED_OUT = "opted_out"  # the request or its key says that it is not to be trained on
REDACTED = "redacted"
REDACTION_FAILED = "redaction_failed"
REASONS = (OPTED_OUT, REDACTED, REDACTION_FAILED)
