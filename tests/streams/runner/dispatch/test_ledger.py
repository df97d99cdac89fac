from hypothesis import given
from hypothesis import strategies as st

from headrace.streams.runner.dispatch.ledger import Ledger


def test_position_is_first_unfinished() -> None:
    ledger = Ledger(5)
    for offset in (5, 6, 9):
        assert ledger.add(offset)
    ledger.finish(6)
    assert ledger.position == 5
    ledger.finish(5)
    assert ledger.position == 9
    ledger.finish(9)
    assert ledger.position == 10


def test_refetched_offset_is_known() -> None:
    ledger = Ledger(0)
    assert ledger.add(3)
    assert not ledger.add(3)


@given(st.lists(st.integers(1, 3), max_size=40), st.randoms(use_true_random=False), st.integers(0, 40))
def test_position_never_passes_an_unfinished_task(gaps: list[int], random: object, count: int) -> None:
    ledger, offsets, at = Ledger(0), [], -1
    for gap in gaps:
        at += gap
        ledger.add(at)
        offsets.append(at)
    order = list(offsets)
    random.shuffle(order)  # type: ignore[attr-defined]
    finished = order[:count]
    for offset in finished:
        ledger.finish(offset)
        ledger.finish(offset)  # a repeat changes nothing
    left = [offset for offset in offsets if offset not in finished]
    if left:
        assert ledger.position == left[0] or (left[0] == offsets[0] and ledger.position <= left[0])
    elif offsets:
        assert ledger.position == offsets[-1] + 1
    assert ledger.unfinished == len(left)
