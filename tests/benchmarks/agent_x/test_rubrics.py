"""Rubrics of the user's: what a file may hold, and what is wrong with it otherwise."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.benchmarks.agent_x.judge import SHIPPED, read_rubrics, shipped_rubrics
from agrotools.benchmarks.agent_x.published_scorer import COLUMNS
from agrotools.core import UsageError

ONE = '[criteria.goal_accuray]\nrubric = "Is it so?"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "original.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_file_has_every_criterion_and_no_digest():
    assert set(shipped_rubrics().criteria) == set(COLUMNS)
    assert shipped_rubrics().digest == ""
    assert shipped_rubrics().label == "rubrics of ours"


def test_a_file_need_hold_no_more_than_a_rubric(tmp_path: Path):
    rubrics = read_rubrics(written(tmp_path, ONE))
    assert rubrics.criteria == {"goal_accuray": ("Is it so?", shipped_rubrics().criteria["goal_accuray"][1])}
    assert (rubrics.system, rubrics.parts) == (shipped_rubrics().system, shipped_rubrics().parts)
    assert rubrics.label == f"rubrics of original.toml ({rubrics.digest})"
    assert len(rubrics.digest) == 12


def test_words_around_the_rubrics_can_be_the_users_too(tmp_path: Path):
    text = f'system = "Judge by {{rubric}}"\n[parts]\nanswer = "Said"\n{ONE}shows = ["answer"]\n'
    rubrics = read_rubrics(written(tmp_path, text))
    assert rubrics.system == "Judge by {rubric}"
    assert rubrics.parts["answer"] == "Said"
    assert rubrics.criteria["goal_accuray"] == ("Is it so?", ("answer",))


def test_a_copy_of_the_shipped_file_is_a_file_of_the_users(tmp_path: Path):
    rubrics = read_rubrics(written(tmp_path, SHIPPED.read_text(encoding="utf-8")))
    assert rubrics.criteria == shipped_rubrics().criteria
    assert rubrics.digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "criteria: field required"),
        ("[criteria]\n", "criteria: dictionary should have at least 1 item"),
        ("criteria = 3", "criteria: input should be a valid dictionary"),
        ("[criteria.goal_accuray]\nrubric = ' '", "criteria.goal_accuray.rubric: string should match"),
        ("[criteria.goal_accuray]\nrubrik = 'x'", "criteria.goal_accuray.rubric: field required"),
        ("[criteria.goal_accuray]\nrubric = 'x'\nshows = ['gold']", "criteria.goal_accuray.shows.0: input should be"),
        ("[criteria.goal_accuracy]\nrubric = 'x'", "Agent-X has no criterion 'goal_accuracy'"),
        (f"system = 'Grade.'\n{ONE}", "says nowhere where the rubric goes"),
        ("criteria: yaml", "cannot read the rubrics"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, said: str):
    with pytest.raises(UsageError, match="rubrics") as raised:
        read_rubrics(written(tmp_path, text))
    assert said.lower() in raised.value.message.lower()
    assert raised.value.hint


def test_a_near_name_is_offered(tmp_path: Path):
    with pytest.raises(UsageError) as raised:
        read_rubrics(written(tmp_path, "[criteria.goal_accuracy]\nrubric = 'x'"))
    assert "did you mean goal_accuray?" in str(raised.value.hint)


def test_no_file_is_an_error_with_a_hint(tmp_path: Path):
    for path in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(UsageError, match="cannot read the rubrics"):
            read_rubrics(path)


@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_file_is_read_or_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("any") / "rubrics.toml"
    path.write_bytes(content)
    with suppress(UsageError):
        assert read_rubrics(path).criteria
