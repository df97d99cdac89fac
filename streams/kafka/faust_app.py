"""The one way to make a Faust app: its aiokafka driver, committed records only, and topics that it does not make."""

import asyncio
from typing import Any

import faust

from headrace.streams.kafka.faust_transport import CommittedTransport
from headrace.streams.settings import Settings

RAW: dict[str, Any] = {"key_type": bytes, "value_type": bytes, "key_serializer": "raw", "value_serializer": "raw"}
"""Of a topic whose records Headrace's codec decodes."""


def make_faust_app(
    settings: Settings, group: str, folder: str, *, start: str, backlog: int, commit: float
) -> faust.App:
    """An app; make it on the event loop that will run it.

    Args:
        group: the short name of its consumer group.
        folder: Faust wants one, though tables in memory leave nothing in it.
        start: `earliest` or `latest`, where the group has no offset.
        backlog: events that Faust holds in memory for each stream.
        commit: seconds between two commits.
    """
    session = settings.session_timeout.total_seconds()
    app: Any = faust.App(
        settings.group(group),
        broker=";".join(f"kafka://{server}" for server in settings.bootstrap.split(",")),
        store="memory://",
        datadir=folder,
        loop=asyncio.get_running_loop(),
        autodiscover=False,
        web_enabled=False,
        worker_redirect_stdouts=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset=start,
        broker_session_timeout=session,
        broker_heartbeat_interval=session / 4,
        broker_commit_interval=commit,
        stream_buffer_maxsize=backlog,
        stream_wait_empty=False,
        **_credentials(settings),
    )
    app.transport = CommittedTransport(app.conf.broker_consumer, app, loop=app.loop)
    return app


def _credentials(settings: Settings) -> dict[str, Any]:
    """SASL and TLS of librdkafka's properties, as Faust wants them."""
    protocol = str(settings.kafka.get("security.protocol", "PLAINTEXT")).upper()
    if protocol == "PLAINTEXT":
        return {}
    import ssl

    context = None
    if "SSL" in protocol:
        context = ssl.create_default_context(cafile=settings.kafka.get("ssl.ca.location"))
        certificate = settings.kafka.get("ssl.certificate.location")
        if certificate:
            context.load_cert_chain(
                certificate, settings.kafka.get("ssl.key.location"), settings.kafka.get("ssl.key.password")
            )
    if not protocol.startswith("SASL"):
        return {"broker_credentials": faust.SSLCredentials(context)}
    return {
        "broker_credentials": faust.SASLCredentials(
            username=settings.kafka.get("sasl.username"),
            password=settings.kafka.get("sasl.password"),
            mechanism=settings.kafka.get("sasl.mechanism", "PLAIN"),
            ssl_context=context,
        )
    }
