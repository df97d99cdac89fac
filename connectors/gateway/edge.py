"""The gateway's edge: who is let in, whose call it is, and what is said of rollouts afterwards."""

import ipaddress
import socket
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from headrace.connectors.gateway.caller import SESSION_HEADERS, Outside
from headrace.connectors.gateway.feedback import FeedbackEndpoint
from headrace.connectors.gateway.keys.guard import Guard
from headrace.connectors.gateway.settings import GatewaySettings
from headrace.streams.errors import InvalidValueError
from headrace.streams.feedback.giving import Feedbacks
from headrace.streams.kafka.acked_producer import AckedProducer

LOOPBACK = "127.0.0.1"


class Edge(msgspec.Struct):
    """What the server asks before and beside the calls."""

    guard: Guard
    outside: Outside
    feedbacks: Feedbacks
    feedback: FeedbackEndpoint


def make_edge(settings: GatewaySettings, producer: AckedProducer) -> Edge:
    """The edge of one process.

    Raises:
        KeyFileError: the file of keys cannot be read.
    """
    own = (settings.gateway_session_header.lower(),) if settings.gateway_session_header else ()
    feedbacks = Feedbacks(
        producer,
        settings.view,
        broker_seconds=settings.gateway_broker_wait.total_seconds(),
        arrival_seconds=settings.gateway_feedback_wait.total_seconds(),
    )
    return Edge(
        Guard(settings.gateway_keys),
        Outside(settings.gateway_external_key == "session", (*own, *SESSION_HEADERS), settings.gateway_external_sample),
        feedbacks,
        FeedbackEndpoint(feedbacks, settings.gateway_feedback_arrival.total_seconds()),
    )


def check_host(host: str, keys: Path | None) -> None:
    """Who serves others asks for keys.

    Raises:
        InvalidValueError: the host is not this machine's alone, and there are no keys; or there is no such host.
    """
    if keys is not None or host == LOOPBACK:
        return
    try:
        found = {str(address[4][0]).partition("%")[0] for address in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError) as error:
        raise InvalidValueError(f"--host {host!r}: {error}") from error
    if not all(ipaddress.ip_address(address).is_loopback for address in found):
        raise InvalidValueError(
            f"--host {host} would serve everybody who reaches it: give it keys first (`headrace keys create NAME "
            "--file keys.json`, and HEADRACE_GATEWAY_KEYS=keys.json), or leave it at 127.0.0.1"
        )


def base_url(flag: str, text: str) -> str:
    """A URL that a flag names, without a slash at its end.

    Raises:
        InvalidValueError: it is none.
    """
    try:
        parts = urlsplit(text)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # no port, or no address
        known = False
    if not known:
        raise InvalidValueError(f"{flag} {text!r} is no URL; write it as http://127.0.0.1:8000")
    return text.rstrip("/")


def reachable(url: str, host: str) -> str:
    """The URL by which others find a gateway that listens at a host."""
    if host in ("0.0.0.0", "::"):
        return f"http://{socket.gethostname()}:{url.rpartition(':')[2]}"
    return url
