"""The chart of the live display."""

from headrace.demo.display import BLOCKS, chart


def test_a_reward_of_one_fills_its_column_and_zero_none() -> None:
    lines = chart([0.0, 1.0], width=10, height=4).splitlines()
    assert len(lines) == 4
    assert all(line[4:] == " " + BLOCKS[-1] for line in lines)


def test_many_steps_are_averaged_down_to_the_width() -> None:
    line = chart([0.0, 1.0] * 50, width=10, height=1)
    assert line[4:] == BLOCKS[4] * 10
