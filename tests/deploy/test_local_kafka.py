"""`LocalKafka`, where a command cannot be made to go wrong in the right moment."""

import socket
from pathlib import Path

import pytest

from headrace.deploy.local import kafka
from headrace.deploy.local.broker import LocalKafka
from headrace.deploy.local.errors import ProcessDiedError
from headrace.deploy.local.ports import HOST, free_ports

pytestmark = pytest.mark.kafka
LISTENER, CONTROLLER = 0, 1


def test_ports_taken_at_the_last_moment_are_replaced_and_a_start_that_fails_shows_kafkas_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        offers = [free_ports(2), free_ports(2), free_ports(2)]
        offers[0][LISTENER] = offers[1][CONTROLLER] = port
        with monkeypatch.context() as patch:
            patch.setattr(kafka, "free_ports", lambda count: offers.pop(0))
            with LocalKafka(data=tmp_path) as broker:
                assert offers == []
                assert broker.bootstrap != f"{HOST}:{port}"
                assert broker.registry_url is None
    (tmp_path / "kafka" / "meta.properties").write_text("version=1\nnode.id=77\ncluster.id=x\n")
    with pytest.raises(ProcessDiedError, match=r"exit code 1(?s:.*)Stored node id 77"), LocalKafka(data=tmp_path):
        pass
    with pytest.raises(RuntimeError, match="call start"):
        _ = broker.bootstrap
