"""Committed offsets of groups, on a broker of its own: no group has been there before."""

import pytest

from headrace.streams.kafka.admin import create_topics
from headrace.streams.kafka.group_offsets import GroupOffsets
from headrace.streams.settings import load_settings
from tests.processes import end, ready, start

pytestmark = pytest.mark.kafka


def test_a_new_cluster_has_committed_nothing() -> None:
    broker = start("broker")
    try:
        settings = load_settings(bootstrap=ready(broker)["bootstrap"], partitions=2)
        create_topics(settings)
        offsets = GroupOffsets(settings, "test")
        asked = [(settings.topic("tasks"), 0), (settings.topic("tasks"), 1)]
        assert offsets.committed("lifecycle", asked) == {}
        assert offsets.committed("lifecycle", []) == {}
        offsets.close()
    finally:
        end(broker)
