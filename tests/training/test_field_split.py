"""The questions of ``field`` are split by class, and no question decides its own side."""

import pytest
from split_field import (
    BEYOND,
    FOLDS,
    GROUP,
    LEARNT_FROM,
    REACHED_KNOWN,
    REACHED_NEW,
    Question,
    folds_of,
    rate_of,
    with_reach,
)

from agrotools.core import AbstainSlot
from support.made_runs import made_sample


def _sample(name: str, number: int, template: str, **more):
    plain = made_sample(f"{name}-{number}")
    file = plain.files[0].model_copy(
        update={"path": f"files/{name}{number}.jpg", "sha256": f"{name}{number}"}
    )
    update = {
        "files": (file,),
        "template": template,
        "source": name,
        "cluster": f"{name}-{number}",
        **more,
    }
    return plain.model_copy(update=update)


def _sides(samples, scores) -> dict[str, str]:
    return {sample.id: sample.groups[GROUP] for sample in with_reach(samples, scores)}


def test_a_class_is_reached_if_the_tools_answer_it_elsewhere():
    samples = [_sample(name, number, name) for name in ("easy", "hard") for number in range(40)]
    assert set(folds_of(samples).values()) == set(range(FOLDS))
    scores = {sample.id: float(sample.template == "easy") for sample in samples}
    scores["easy-0"], scores["hard-0"] = 0.0, 1.0
    sides = _sides(samples, scores)
    assert {sides[f"easy-{number}"] for number in range(40)} == {REACHED_NEW}
    assert {sides[f"hard-{number}"] for number in range(40)} == {BEYOND}


def test_what_is_reached_in_a_collection_that_tools_learnt_from_is_told_apart():
    samples = [_sample(LEARNT_FROM[0], number, "easy") for number in range(40)]
    sides = _sides(samples, dict.fromkeys((sample.id for sample in samples), 1.0))
    assert {*sides.values()} == {REACHED_KNOWN}


def test_the_score_of_a_question_never_decides_its_own_side():
    samples = [_sample(name, number, name) for name in ("one", "two") for number in range(12)]
    scores = {sample.id: float(at % 4 > 0) for at, sample in enumerate(samples)}
    sides = _sides(samples, scores)
    for sample in samples:
        assert (
            _sides(samples, {**scores, sample.id: 1 - scores[sample.id]})[sample.id]
            == sides[sample.id]
        )


def test_an_unanswerable_question_goes_with_its_twin():
    samples = [_sample("hard", number, "hard") for number in range(6)]
    refusal = AbstainSlot(
        name="refusal", label="Refusal", reason="no_scale", asks=samples[0].answer
    )
    twin = samples[0].model_copy(update={"id": "hard-twin", "answer": (refusal,), "twin": "hard-0"})
    samples[0] = samples[0].model_copy(update={"twin": twin.id})
    scores = {sample.id: 0.0 for sample in samples} | {twin.id: 1.0}
    assert _sides([*samples, twin], scores)["hard-twin"] == "beyond"


def test_a_rare_class_follows_the_things_it_asks_about():
    asked = [Question(("leaves", False), f"t{number}", f"c{number}", 1.0) for number in range(9)]
    asked += [Question(("fruit", False), f"t{number}", f"d{number}", 0.0) for number in range(9)]
    rare = Question(("leaves", False), "rare", "c99", 0.0)
    assert rate_of(rare, asked) == pytest.approx((9 * 1.0 + 0.5) / 10)
    assert rate_of(rare._replace(things=("pods", False)), asked) == pytest.approx(0.5)
