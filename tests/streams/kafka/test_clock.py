"""Time is the log's, with clocks that the test moves."""

from headrace.streams.kafka.clock import LogClock


class Time:
    """Clocks of the machine."""

    def __init__(self) -> None:
        self.monotonic = 100.0
        self.wall = 5_000.0


def clock(time: Time) -> LogClock:
    return LogClock(lambda: time.monotonic, lambda: time.wall)


def test_before_the_first_record_it_is_the_wall_clocks() -> None:
    time = Time()
    log = clock(time)
    assert log.now() == 5_000_000_000
    time.monotonic += 1.5
    time.wall -= 1000  # somebody sets the clock back
    assert log.now() == 5_001_500_000


def test_the_first_record_decides_also_backwards() -> None:
    time = Time()
    log = clock(time)
    log.observe(1_000_000)
    assert log.now() == 1_000_000_000
    time.monotonic += 2
    assert log.now() == 1_002_000_000


def test_older_records_do_not_turn_it_back() -> None:
    time = Time()
    log = clock(time)
    log.observe(1_000_000)
    time.monotonic += 1
    log.observe(1_000_500)
    assert log.now() == 1_001_000_000
    log.observe(1_002_000)
    assert log.now() == 1_002_000_000
