"""Loading a published version: what is refused, what changes nothing, and the answer, the same for all engines."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.connectors.engine.adapter import LORA
from headrace.connectors.engine.checkpoint import CheckpointError

FORMATS = ("safetensors", LORA)


class WeightsRequest(msgspec.Struct, forbid_unknown_fields=False):
    """The fields of the Weights record that loading needs."""

    policy: str
    version: int
    weights_id: str
    uri: str
    transport: str = "file"
    format: str = "safetensors"
    sha256: dict[str, str] = {}
    base_model: str | None = None
    base_sha256: dict[str, str] = {}


class LoadedVersion(msgspec.Struct, frozen=True):
    """What an engine serves. changed: whether this load installed it; seconds: how long the load took."""

    policy: str
    version: int
    weights_id: str | None
    changed: bool = False
    seconds: float = 0.0


class WeightsRefused(Exception):
    """The version is not loaded and the old one goes on serving.

    Attributes:
        reason: a short name (those of CheckpointError, and policy, stale_version, version_conflict, transport).
        status: 409 where the engine's state speaks against it, 422 where the checkpoint is broken.
    """

    def __init__(self, reason: str, message: str, status: int) -> None:
        super().__init__(message)
        self.reason, self.status = reason, status

    @classmethod
    def broken(cls, error: CheckpointError) -> WeightsRefused:
        """For a checkpoint that is not whole."""
        return cls(error.reason, str(error), 422)

    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        return {"error": {"message": str(self), "type": "weights_refused", "reason": self.reason, "code": self.status}}


def parse_weights(raw: bytes) -> WeightsRequest:
    """Raises WeightsRefused (reason request) where it is no Weights record in JSON."""
    try:
        return msgspec.json.decode(raw, type=WeightsRequest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WeightsRefused("request", f"the body is no Weights record: {error}", 422) from error


def is_loaded(weights: WeightsRequest, policy: str, version: int, weights_id: str | None) -> bool:
    """Whether this version is the one served.

    Raises:
        WeightsRefused: of another policy, older than what is served, or another content under the same version.
    """
    if weights.policy != policy:
        raise WeightsRefused("policy", f"this engine serves policy {policy!r}, not {weights.policy!r}", 409)
    if weights.transport != "file":
        raise WeightsRefused("transport", f"transport {weights.transport!r} is not supported; use file", 422)
    if weights.format not in FORMATS:
        raise WeightsRefused("format", f"format {weights.format!r} is not supported; use {' or '.join(FORMATS)}", 422)
    if weights.version < version:
        facts = f"version {weights.version} is older than the loaded {version}; a rollback is a new version"
        raise WeightsRefused("stale_version", facts, 409)
    if weights.version > version:
        return False
    if weights_id is not None and weights.weights_id != weights_id:
        raise WeightsRefused("version_conflict", f"version {version} is loaded with weights_id {weights_id}", 409)
    return True
