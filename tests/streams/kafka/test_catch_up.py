"""When timers may judge, on a fake clock."""

from headrace.streams.kafka.transactional.catch_up import CatchUp

TICK = 0.25
KEY = ("attempts", 0)


def calm() -> CatchUp:
    """Everything is read at second 0, and the loop comes by."""
    catch_up = CatchUp(0.0)
    catch_up.disturb()
    catch_up.noted({KEY: 5}, 0.0)
    assert catch_up.reached({KEY: 5})
    return catch_up


def test_new_partitions_are_read_to_the_end_noted_then():
    catch_up = CatchUp(0.0)
    assert not catch_up.caught_up
    catch_up.disturb()
    assert catch_up.needs_ends(0.1)
    assert not catch_up.reached({KEY: 9})
    catch_up.noted({KEY: 5, ("tasks", 0): 2}, 0.1)
    assert not catch_up.needs_ends(0.2)
    assert not catch_up.reached({KEY: 4, ("tasks", 0): 2})
    assert not catch_up.caught_up
    assert catch_up.reached({KEY: 5, ("tasks", 0): 2})
    assert catch_up.caught_up
    assert not catch_up.reached({KEY: 6, ("tasks", 0): 2})  # timers begin anew once


def test_nothing_to_read_is_read():
    catch_up = CatchUp(0.0)
    catch_up.disturb()
    catch_up.noted({}, 0.0)
    assert catch_up.reached({})
    assert catch_up.caught_up


def test_an_idle_loop_asks_once_a_second_and_is_no_trouble():
    catch_up = calm()
    asked = 0
    for turn in range(1, 401):
        now = turn * TICK
        catch_up.turn(now, TICK)
        if catch_up.needs_ends(now):
            asked += 1
            catch_up.noted({KEY: 5}, now)
        assert not catch_up.reached({KEY: 5})
        assert catch_up.caught_up
    assert asked == 80


def test_a_busy_loop_need_not_ask():
    catch_up = calm()
    for turn in range(1, 401):
        catch_up.turn(turn * TICK, TICK)
        catch_up.heard(turn * TICK)
        assert not catch_up.needs_ends(turn * TICK)
    assert catch_up.caught_up


def test_a_process_that_stood_still_catches_up():
    catch_up = calm()
    catch_up.turn(0.1, TICK)
    catch_up.turn(1.3, TICK)
    assert catch_up.caught_up
    catch_up.turn(2.6, TICK)
    assert not catch_up.caught_up
    catch_up.noted({KEY: 8}, 2.6)
    assert not catch_up.reached({KEY: 7})
    assert catch_up.reached({KEY: 8})


def test_brokers_that_answer_again_at_once_were_no_trouble():
    catch_up = calm()
    catch_up.failed(0.1)
    assert not catch_up.caught_up
    assert catch_up.needs_ends(0.2)
    catch_up.turn(0.3, TICK)
    catch_up.noted({KEY: 100}, 0.3)
    assert catch_up.caught_up
    assert not catch_up.reached({KEY: 5})


def test_reads_that_fail_for_more_than_a_second_stop_the_timers_until_all_is_read():
    catch_up = calm()
    for turn in range(1, 40):
        catch_up.turn(turn * TICK, TICK)
        catch_up.failed(turn * TICK)
        assert not catch_up.caught_up
        assert catch_up.needs_ends(turn * TICK)
    catch_up.noted({KEY: 50}, 10.0)
    assert not catch_up.reached({KEY: 5})
    catch_up.turn(10.1, TICK)
    assert not catch_up.caught_up
    assert catch_up.reached({KEY: 50})
    assert catch_up.caught_up


def test_partitions_of_others_are_not_waited_for():
    catch_up = CatchUp(0.0)
    catch_up.disturb()
    catch_up.noted({KEY: 5, ("attempts", 1): 7}, 0.0)
    catch_up.forget([("attempts", 1)])
    assert catch_up.reached({KEY: 5})
