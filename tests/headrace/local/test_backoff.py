"""When what has ended starts again."""

from headrace.local.backoff import FIRST_SECONDS, MOST_SECONDS, STEADY_SECONDS, Backoff


def test_waits_double_up_to_a_bound_and_begin_anew_after_a_steady_run() -> None:
    backoff = Backoff()
    waits = [backoff.wait(1, 0.5) for _ in range(8)]
    assert waits[:4] == [FIRST_SECONDS * 2**n for n in range(4)]
    assert waits[-1] == MOST_SECONDS
    assert backoff.wait(1, STEADY_SECONDS) == FIRST_SECONDS


def test_who_was_fenced_stays_away() -> None:
    assert Backoff().wait(78, 100.0) is None


def test_work_that_is_done_is_not_done_again_but_a_service_that_leaves_comes_back() -> None:
    assert Backoff(may_end=True).wait(0, 1.0) is None
    assert Backoff(may_end=True).wait(-9, 1.0) == FIRST_SECONDS
    assert Backoff().wait(0, 1.0) == FIRST_SECONDS
    assert Backoff(restarts=False).wait(-9, 1.0) is None
