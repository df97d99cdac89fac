import numpy as np
import pytest

from headrace.streams.errors import SettingsError
from headrace.trainers.batch import TokenRow
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.verl.arrays import arrays_of, of_one_temperature
from headrace.trainers.verl.settings import VerlSettings, check_objective


def row(**fields: object) -> TokenRow:
    values: dict[str, object] = {
        "token_ids": np.array([1, 2, 3, 4, 5], dtype=np.int32),
        "loss_mask": np.array([False, False, True, False, True]),
        "logprobs": np.array([0.0, 0.0, -1.0, 0.0, -2.0], dtype=np.float32),
        "advantage": 0.5,
    }
    return TokenRow(**(values | fields))  # type: ignore[arg-type]


def test_rows_lie_one_behind_the_other() -> None:
    found = arrays_of([row(), row(staleness=1, temperature=0.5, advantage=np.array([1.0, -1.0], dtype=np.float32))])
    advantages = np.frombuffer(found["advantages"], dtype=np.float32)
    assert advantages.tolist() == [0, 0, 0.5, 0, 0.5, 0, 0, 1, 0, -1]
    assert np.frombuffer(found["sizes"], dtype=np.int64).tolist() == [5, 5]
    assert np.frombuffer(found["prompts"], dtype=np.int64).tolist() == [2, 2]
    assert np.frombuffer(found["temperatures"], dtype=np.float32).tolist() == [1.0, 0.5]
    assert np.frombuffer(found["fresh"], dtype=np.bool_).tolist() == [True, False]


def test_a_row_of_two_temperatures_becomes_two() -> None:
    mixed = row(
        temperature=np.array([1, 1, 0.5, 1, 2], dtype=np.float32), advantage=np.array([3.0, 4.0], dtype=np.float32)
    )
    first, second = of_one_temperature([mixed])
    assert (first.temperature, second.temperature) == (0.5, 2.0)
    assert np.flatnonzero(first.loss_mask).tolist() == [2]
    assert np.flatnonzero(second.loss_mask).tolist() == [4]
    assert np.asarray(second.advantage).tolist() == [4.0]


@pytest.mark.parametrize(
    ("fields", "verl", "says"),
    [
        ({"aggregation": "rollout_mean"}, {}, "rows and tokens"),
        ({"aggregation": "token_sum"}, {}, "token_divisor"),
        ({"aggregation": "token_mean", "kl": "k3"}, {}, "reference"),
        ({"aggregation": "token_mean", "loss": "reinforce"}, {}, "clip or gspo"),
        ({"aggregation": "token_mean", "advantage": "reward"}, {"advantages": "verl"}, "grpo, dr_grpo, rloo"),
    ],
)
def test_what_verl_cannot_is_said_at_the_start(fields: dict[str, object], verl: dict[str, object], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        check_objective(GrpoSettings(**fields), VerlSettings(**verl))  # type: ignore[arg-type]
