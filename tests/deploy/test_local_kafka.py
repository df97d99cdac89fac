"""`LocalKafka`, where a command cannot be made to go wrong in the right moment."""

import socket
from pathlib import Path

import pytest

from headrace.deploy.local import kafka
from headrace.deploy.local.broker import LocalKafka
from headrace.deploy.local.errors import ProcessDiedError
from headrace.deploy.local.ports import HOST, free_ports

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("taken", [0, 1], ids=["listener", "controller"])
def test_a_port_that_is_taken_at_the_last_moment_is_replaced(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    with socket.create_server((HOST, 0)) as other:
        offers = [free_ports(2), free_ports(2)]
        offers[0][taken] = other.getsockname()[1]
        monkeypatch.setattr(kafka, "free_ports", lambda count: offers.pop(0))
        with LocalKafka() as broker:
            assert offers == []
            assert broker.bootstrap != f"{HOST}:{other.getsockname()[1]}"


def test_a_start_that_fails_shows_kafkas_own_words(tmp_path: Path) -> None:
    with LocalKafka(data=tmp_path) as broker:
        assert broker.registry_url is None
    (tmp_path / "kafka" / "meta.properties").write_text("version=1\nnode.id=77\ncluster.id=x\n")
    with pytest.raises(ProcessDiedError, match=r"exit code 1(?s:.*)Stored node id 77"), LocalKafka(data=tmp_path):
        pass
    with pytest.raises(RuntimeError, match="call start"):
        _ = broker.bootstrap
