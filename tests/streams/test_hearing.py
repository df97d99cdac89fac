"""By the clock of who listens nobody grows older while nobody is heard."""

from headrace.streams.hearing import Hearing

HEARTBEAT = 10.0


def test_it_goes_on_while_somebody_is_heard() -> None:
    hearing = Hearing(HEARTBEAT, 100.0)
    assert [hearing.heard(now) for now in (104.0, 112.0, 122.0)] == [4, 8, 10]
    assert hearing.time(125.0) == 125.0  # one that was heard last at 95 has missed three heartbeats


def test_an_outage_makes_nobody_older_neither_while_it_lasts_nor_afterwards() -> None:
    hearing = Hearing(HEARTBEAT, 100.0)
    hearing.heard(101.0)
    assert [hearing.time(now) for now in (105.0, 111.0, 140.0, 1000.0)] == [105, 111, 111, 111]
    assert hearing.heard(1001.0) == HEARTBEAT
    assert [hearing.time(now) for now in (1001.0, 1005.0)] == [111, 115]
