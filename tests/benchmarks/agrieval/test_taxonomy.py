"""AgriEval's taxonomy: its numbers add up to the paper's, and every name of the published file is known."""

import json
from pathlib import Path

import pytest

from agrotools.benchmarks.agrieval.taxonomy import (
    DOMAINS,
    FIELDS,
    LEVELS,
    TASKS,
    TYPE_AGREEMENT,
    domain_of,
    domain_of_type,
    field_of,
    level_of,
    task_of,
)


def test_numbers_of_questions_add_up_to_those_of_the_paper():
    assert (len(DOMAINS), len(FIELDS), len(LEVELS), len(TASKS)) == (6, 29, 4, 15)
    assert sum(task.questions for task in TASKS if not task.is_open) == 14_697
    assert sum(task.questions for task in TASKS if task.is_open) == 2_167
    assert sum(field.questions for field in FIELDS) == 14_697 + 2_167
    assert {field.domain for field in FIELDS} == {domain.id for domain in DOMAINS}
    assert {task.level for task in TASKS} == {level.id for level in LEVELS}


def test_names_are_found_in_every_language_and_case():
    for name in ("forestry", "Forestry", "FORE", "林学类"):
        assert domain_of(name) is domain_of("forestry"), name
    for name in ("causal_analysis", "Causal Analysis", "g-ca", "归因分析"):
        assert task_of(name) is task_of("G-CA"), name
    for name in ("veterinary_medicine", "Veterinary  Medicine", "动物医学"):
        assert field_of(name) is field_of("veterinary medicine"), name
    assert level_of("生成") is level_of("Generation")
    for lookup in (domain_of, domain_of_type, field_of, level_of, task_of):
        assert lookup("") is None
        assert lookup("history") is None


def test_no_name_means_two_things():
    for kind in (DOMAINS, FIELDS, LEVELS, TASKS):
        names = [
            name.casefold()
            for one in kind
            for name in {one.id, one.english, one.chinese, one.code, *one.others}
            if name
        ]
        assert len(names) - len(set(names)) == sum(one.id == one.english.casefold() for one in kind)


def test_only_names_that_no_published_file_has_are_inferred():
    assert [field.id for field in FIELDS if field.inferred] == ["landscape_architecture"]
    assert {task.level for task in TASKS if task.inferred} == {"memorization", "understanding", "inference"}
    assert not any(task.inferred for task in TASKS if task.is_open)
    assert not any(domain.inferred for domain in DOMAINS)


@pytest.fixture
def open_questions(field_data: Path):
    file = field_data / "agrieval" / "simple_merged_question_v4_2(main).json"
    if not file.is_file():
        pytest.skip(f"no published questions of AgriEval at {file.parent}")
    return json.loads(file.read_text("utf-8"))


def test_every_label_of_the_published_open_questions_is_known(open_questions):
    used = set()
    agree = both = 0
    counts = dict.fromkeys(("G-QA", "G-PS", "G-CA"), 0)
    for entry in open_questions:
        domain, field = domain_of(entry["domain"]["type"]), field_of(entry["domain"]["subtype"])
        level, task = level_of(entry["class"]["class"]), task_of(entry["class"]["task"])
        assert domain is not None
        assert field is not None
        assert level is not None
        assert task is not None
        assert field.domain == domain.id
        assert task.level == level.id
        used.add(field.id)
        counts[task.code] += 1
        older = domain_of_type(entry["type"])
        both += older is not None
        agree += older is domain
    assert {field.id for field in FIELDS if field.id not in used} == {"landscape_architecture"}
    assert counts == {task.code: task.questions for task in TASKS if task.is_open}
    assert (agree, both) == TYPE_AGREEMENT
