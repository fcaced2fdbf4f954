import re

import pytest
from every_slot import HEADER, SPEC, samples, write_every_slot

from agrotools.loading import load_folder
from agrotools.loading.validate import validate_folder
from agrotools_build.export.folder import OWNERS_TERMS, describe_benchmark, write_card


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_every_slot(tmp_path_factory.mktemp("card") / "benchmark")


@pytest.fixture(scope="module")
def card(folder):
    return (folder / "README.md").read_text(encoding="utf-8")


def test_the_card_says_what_there_is_on_what_terms_and_what_was_left_out(card):
    assert "| samples | 7 |" in card
    assert "| unique files | image 2, mask 1, raster 1, table 1 |" in card
    assert "| languages of the questions | en 6, zh 1 |" in card
    assert "| answerable without tools | 5 (no raster, no table, no figure to draw) |" in card
    assert "| distinct tools of a sample | 1: 4, 2: 3 |" in card
    assert "<https://example.org/a_b>" in card
    assert "Miller: Apples. Counted by hand." in card
    assert re.search(r"\| Paddock \| 3 \| MIT \|", card)
    assert "Terms of use: CC BY 4.0" in card
    assert "- dropped, duplicate: 2" in card
    assert "- dropped, a tool raised: 1" in card
    assert "- orchard, tiles dropped, empty: 3" in card
    assert "- absent: weedmap, fpcd" in card
    assert "| orchard | tiles 4 |" in card
    assert "SYNTHETIC" not in card


def test_markup_in_a_question_or_a_source_is_shown_as_text(card):
    assert "<script" not in card
    assert "<b>" not in card
    assert "Orchard &lt;b&gt;A&lt;/b&gt; \\| north" in card


def test_the_card_of_drawings_says_so_before_anything_else(folder, tmp_path):
    write_card(tmp_path, HEADER.model_copy(update={"synthetic": True}), samples(folder))
    text = (tmp_path / "README.md").read_text()
    assert text.index("**SYNTHETIC") < text.index("## What is in it")


def test_no_answer_is_told(tmp_path):
    """A mark in every gold field, and none in the card or in croissant.json."""
    mark = "ZQXJV"
    plain = write_every_slot(tmp_path / "plain")
    marked = []
    for sample in samples(plain):
        slot = sample.answer[0]
        updates = {
            "exact": {"value": mark, "aliases": {mark: (mark,)}, "choices": (mark,)},
            "file": {"value": mark},
            "choice_set": {"value": (mark,), "choices": (mark,)},
            "plot": {"value": SPEC | {"title": mark}},
            "open_text": {"facts": [{"phrases": (mark,), "not_": (mark,)}]},
        }.get(slot.type, {})
        told = {
            "thought": mark,
            "truth": {"value": mark},
            "arguments": {"expression": mark},
            "observation": None,
        }
        steps = tuple(step.model_copy(update=told) for step in sample.reference.steps)
        reference = sample.reference.model_copy(update={"steps": steps})
        answer = (slot.model_copy(update={"from_": mark, **updates}),)
        gold = {"answer": answer, "reference": reference, "metadata": {"subject": mark}}
        marked.append(sample.model_copy(update=gold))
    describe_benchmark(plain, HEADER, marked)
    made = [plain / "README.md", plain / "croissant.json"]
    assert [path.name for path in made if mark.encode() in path.read_bytes()] == []


def test_describing_a_benchmark_does_not_change_its_content_hash(folder, tmp_path):
    before = load_folder(folder).content_hash
    copy = write_every_slot(tmp_path / "copy")
    for made in (copy / "README.md", copy / "croissant.json"):
        made.unlink()
    assert load_folder(copy).content_hash == before
    (copy / "README.md").write_text("My own words.")
    describe_benchmark(copy, HEADER, load_folder(copy).samples)
    assert load_folder(copy).content_hash == before
    assert (copy / "README.md").read_text() == "My own words."
    assert (copy / "croissant.json").is_file()


def test_validate_sees_when_the_description_is_of_another_state(tmp_path):
    folder = write_every_slot(tmp_path / "benchmark")
    codes = {fault.code for fault in validate_folder(folder)}
    assert not codes & {"stale_croissant", "broken_croissant"}
    lines = (folder / "samples.jsonl").read_text()
    (folder / "samples.jsonl").write_text(lines.replace("left tree", "old tree"))
    (stale,) = [fault for fault in validate_folder(folder) if fault.code == "stale_croissant"]
    assert "samples.jsonl" in stale.message
    assert "--format croissant" in stale.hint
    (folder / "croissant.json").write_text("[]")
    assert "broken_croissant" in {fault.code for fault in validate_folder(folder)}


def test_the_card_leaves_out_what_a_review_did_not_do(folder, tmp_path):
    review = {"corrected": ["a-001"], "dropped": 0, "edited": [], "written": []}
    header = HEADER.model_copy(update={"metadata": {"review": review}})
    write_card(tmp_path, header, samples(folder))
    text = (tmp_path / "README.md").read_text()
    assert "corrected a-001" in text
    assert "edited" not in text


def test_the_card_counts_answers_that_rest_on_a_tool_or_on_a_reviewer(folder, tmp_path):
    first, second, *others = samples(folder)
    names = [slot.name for slot in first.answer]
    by_tool = first.model_copy(update={"metadata": {"tool_values": names}})
    own = {"own_labels": {second.answer[0].name: ["Ada"]}}
    typed = second.model_copy(update={"metadata": own})
    write_card(tmp_path, HEADER, [by_tool, typed, *others])
    text = (tmp_path / "README.md").read_text()
    assert (
        f"{len(names)} are results of tools that no label stands behind, and reviewers typed 1."
        in text
    )
    assert "Tolerances are set by task, before any tool runs" not in text


def test_the_card_names_the_pack_that_the_reference_results_need_and_how_to_set_terms(
    folder, tmp_path
):
    photo = {"photo": "a.jpg", "table": "rust", "tool": "rust", "agrees": True}
    check = {
        **{"column": "disease", "tool": "diagnose_pest_disease", "backend": "pack:mine"},
        **{"kind": "name", "n": 300, "agreed": 300, "lower": 0.9, "upper": 1.0},
        "photos": [photo] * 300,
    }
    source = HEADER.sources[0].model_copy(update={"licence": OWNERS_TERMS})
    changed = {"metadata": {"tool_check": [check]}, "sources": (source,)}
    write_card(tmp_path, HEADER.model_copy(update=changed), samples(folder))
    text = (tmp_path / "README.md").read_text()
    assert "baseline:oracle --backend diagnose_pest_disease=pack:mine " in text
    assert "names 300 of 300 photos as you do" in text
    assert "--set licence=" in text
    assert max(map(len, text.splitlines())) < 600


def test_the_card_of_a_benchmark_without_a_pack_names_no_back_end(card):
    assert "--backend" not in card
    assert "--set licence=" not in card
