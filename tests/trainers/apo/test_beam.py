"""Batches, parents and the beam; what a rewritten template may change."""

import random
from collections import Counter

import pytest

from headrace.trainers.apo.beam import Batches, Candidate, best_of, parents_of, score_of
from headrace.trainers.apo.templates import TemplateError, refusal_of, unfenced, variables_of


def candidate(version: str, mean: float) -> Candidate:
    made = Candidate(version, version, None)
    made.scores["m"] = score_of([mean], 1, "zero")
    return made


@pytest.mark.parametrize(("items", "size"), [(5, 2), (7, 3), (6, 4), (4, 3)])
def test_batches_bring_every_item_equally_often_and_none_twice(items: int, size: int) -> None:
    batches = Batches(list(range(items)), size, random.Random(0))
    dealt = [batches.next() for _ in range(items * 3)]
    assert all(len(set(batch)) == size for batch in dealt)
    assert set(Counter(item for batch in dealt for item in batch).values()) == {3 * size}


def test_a_batch_is_all_items_where_they_are_few() -> None:
    assert Batches([1, 2], 4, random.Random(0)).next() == [1, 2]


def test_parents_take_turns_where_the_beam_is_narrow() -> None:
    a, b, c = (candidate(v, 0.0) for v in "abc")
    assert parents_of([a, b], 3, random.Random(0)) == [a, b, a]
    assert len({p.version for p in parents_of([a, b, c], 2, random.Random(0))}) == 2


def test_of_equal_candidates_the_older_ones_stay() -> None:
    beam = [candidate("a", 0.5), candidate("b", 0.7), candidate("c", 0.5), candidate("d", float("-inf"))]
    assert [c.version for c in best_of(beam, "m", 3)] == ["b", "a", "c"]


def test_scores() -> None:
    assert score_of([1.0, None], 4, "zero").mean == 0.25
    assert score_of([1.0, None], 4, "leave_out").mean == 1.0
    assert score_of([1.0, None], 4, "zero").unfinished == 2
    assert score_of([], 2, "leave_out").mean == float("-inf")


@pytest.mark.parametrize(
    ("engine", "template", "names"),
    [
        ("f-string", "{a} {b.c} {d[0]} {{e}}", {"a", "b", "d"}),
        ("jinja", "{{ a.x }} {% for i in items %}{{ i }}{% endfor %}", {"a", "items"}),
        ("poml", "<task>{{ a.b }} {{ 'text' + c }}</task>", {"a", "c"}),
        ("poml", '<let name="n">3</let><p for="e in xs" if="loop.index != n">{{ e }}</p>', {"xs"}),
    ],
)
def test_variables(engine: str, template: str, names: set[str]) -> None:
    assert variables_of(template, engine) == names
    assert refusal_of(template + " more", template, engine) is None
    assert refusal_of("nothing", template, engine) == "placeholders"
    assert refusal_of(" ", template, engine) == "empty"


@pytest.mark.parametrize(
    ("engine", "former", "rewritten", "reason"),
    [
        ("f-string", "{task.q} {x:>5}", "Say {task.q} and {x}, please", None),
        ("f-string", "{task.q}", "{task.answer}", "placeholders"),
        ("f-string", "{x}", "{x:d}", "placeholders"),
        ("f-string", "{x}", "{x} {}", "unreadable"),
        ("f-string", "{x}", "{0} {x}", "unreadable"),
        ("f-string", "{x}", "{x!q}", "unreadable"),
        ("f-string", "{x}", "{x:{width}}", "placeholders"),
        ("f-string", "{x}", "{x.__class__.__init__.__globals__}", "placeholders"),
        ("f-string", "{x}", '{x} as {"json": 1}', "unreadable"),
        ("jinja", "{{ task.q }}", "Q: {{ task['q'] | trim }}", None),
        ("jinja", "{{ task.q }}", "{{ task.nope }}", "placeholders"),
        ("jinja", "{{ x }}", "{{ x | nosuch }}", "unreadable"),
        ("jinja", "{{ x }}", "{{ x }}{% include 'other' %}", "unreadable"),
        (
            "jinja",
            "{% for i in xs %}{{ i.a }}{% endfor %}",
            "{% for i in xs %}{{ loop.index }}. {{ i.a }}{% endfor %}",
            None,
        ),
        ("poml", "<p>{{ task.q }}</p>", "<task>Answer:</task><p>{{task.q}}</p>", None),
        ("poml", "<p>{{ task.q }}</p>", "<p>{{ task.nope }}</p>", "placeholders"),
        ("poml", "<p>{{ x }}</p>", "<p>{{ x }}", "unreadable"),
        ("poml", "<p>{{ x }}</p>", "<p>{{ x }} & more</p>", "unreadable"),
        ("poml", "<p>{{ x }}</p>", "<p>{{ x }}</p><p>{{ JSON.stringify(x) }}</p>", "placeholders"),
        ("poml", '<li for="e in xs">{{ e.a }}</li>', "<li>{{ e.a }}</li>", "placeholders"),
        ("poml", '<li for="e in xs">{{ e.a }}</li>', '<list><item for="e in xs">{{ e.a }}</item></list>', None),
        ("poml", '<p if="hint">{{ hint }}</p>', "<p>{{ hint }}</p>", None),
        ("poml", '<let name="n" value="xs.length"/><p>{{ n }}</p>', "<p>{{ n }}</p>", "placeholders"),
    ],
)
def test_a_rewrite_uses_what_it_is_given_as_before(
    engine: str, former: str, rewritten: str, reason: str | None
) -> None:
    assert refusal_of(former, former, engine) is None
    assert refusal_of(rewritten, former, engine) == reason


@pytest.mark.parametrize(
    ("engine", "template"), [("f-string", "{a"), ("f-string", "{}"), ("jinja", "{{ a"), ("poml", "<task>{{ a }}")]
)
def test_templates_that_cannot_be_read(engine: str, template: str) -> None:
    with pytest.raises(TemplateError):
        variables_of(template, engine)
    assert refusal_of(template, "{a}", engine) == "unreadable"


def test_a_fence_is_taken_off() -> None:
    assert unfenced("```jinja\nA\n{{ b }}\n```\n") == "A\n{{ b }}"
    assert unfenced(" A ``` b ") == "A ``` b"
