"""Which versions are validated."""

from headrace.schemas.records import TrainingStep, Window
from headrace.trainers.validation.rounds import Chosen, Schedule


def step(version: int, run: str = "run", *, finished: bool = False) -> TrainingStep:
    window = Window(position=[], samples=[], dropped=[], group_ids=[])
    return TrainingStep(
        run_id=run,
        step=version,
        policy="p",
        policy_version=version,
        window=window,
        metrics={"run/finished": 1.0} if finished else {},
        started_at=0,
        ended_at=0,
    )


def test_the_first_every_so_many_and_the_last_are_validated() -> None:
    schedule = Schedule("run", every=3)
    validated: list[int] = []
    for version in range(8):
        schedule.step(step(version))
        schedule.step(step(100, run="other"))
        if (due := schedule.due()) is not None:
            schedule.begin(due)
            validated.append(due)
    assert validated == [0, 3, 6]
    assert not schedule.over
    schedule.step(step(8, finished=True))
    assert schedule.due() == 8
    schedule.begin(8)
    assert schedule.over


def test_a_round_that_takes_long_is_followed_by_the_newest_version() -> None:
    schedule = Schedule("run", every=2)
    schedule.published(4)
    schedule.begin(4)
    for version in (5, 6, 9, 11):
        schedule.step(step(version))
    assert schedule.due() == 11


def test_given_versions_come_once_each_whatever_the_run_does() -> None:
    chosen = Chosen([4, 2, 4])
    seen: list[int] = []
    while (due := chosen.due()) is not None:
        assert not chosen.over
        chosen.step(step(9, finished=True))
        chosen.begin(due)
        seen.append(due)
    assert seen == [4, 2]
    assert chosen.over
