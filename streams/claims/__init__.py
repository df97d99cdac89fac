"""Claim-check: values above the topics' limit stand in a store, and the log has a reference to them."""

from headrace.streams.claims.errors import ClaimError, ClaimsUnavailableError
from headrace.streams.claims.store import ClaimStore, ClaimStores

__all__ = ["ClaimError", "ClaimStore", "ClaimStores", "ClaimsUnavailableError"]
