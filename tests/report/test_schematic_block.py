"""How reports tell samples of schematic drawings from what the headline counts, on a terminal and on the page."""

import io
import re
from pathlib import Path

import pytest

from agrotools.report.comparison import print_comparison
from agrotools.report.explain import explanation_text
from agrotools.report.html import build_report
from agrotools.report.tables import tables_text
from agrotools.runner.records import iter_records
from agrotools.runner.rescore import rescore
from agrotools.scoring import compare, score_record, summarise
from support.made_runs import end_to_end, made_sample, predicted, right, write_files, write_run

SAYS_NOTHING = "says nothing about recognition"


def photo(number: int):
    return made_sample(f"s{number:02}")


def drawing(number: int):
    changes = {"family": "RR", "task_type": "pest_diagnosis", "metadata": {"schematic": True}}
    return made_sample(f"d{number:02}", **changes)


def records(*, photos: int, drawings: int, drawn_answer: str = "rows: 9"):
    made = [right(photo(number)) for number in range(photos)]
    made += [end_to_end(drawing(number), answer=drawn_answer) for number in range(drawings)]
    made += [predicted(drawing(number), "2*3", "6 + 1") for number in range(drawings)]
    return [*made, *(predicted(photo(number), "2*4", "6 + 2", answer="rows: 3") for number in range(photos))]


def words(text: str) -> str:
    return " ".join(text.split())


def part(text: str, start: str, stop: str) -> str:
    """What stands between two titles."""
    return words(text).split(start, 1)[1].split(stop, 1)[0]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Twelve samples all right end to end, and eleven of drawings, all wrong; the other way round by step."""
    made = records(photos=12, drawings=11)
    write_files(tmp_path, [each.sample for each in made])
    return write_run(tmp_path / "run", made, model="m", synthetic=True)


def test_tables_made_from_the_stored_records_keep_drawings_out_and_say_so(run: Path):
    text = tables_text([rescore(run).summary])
    headline = part(text, "End to end *synthetic*", "End to end, on the samples of no-tool")
    assert "n 12 (12)" in headline
    assert "100.0" in headline
    assert "Kept out: 11 samples of schematic drawings" in headline
    steps = part(text, "Step by step *synthetic*", "Schematic drawings, n 11 (11)")
    assert "n 36 (12)" in steps
    assert "Kept out: 11 samples" in steps
    block = part(text, "Schematic drawings, n 11 (11), in no headline", "By task type")
    assert re.search(r"m 0\.0 100\.0 100\.0 100\.0", block)
    assert "Names of drawings, not of animals or plants" in block
    assert SAYS_NOTHING in block


def test_task_types_of_drawings_stand_apart(run: Path):
    text = tables_text([rescore(run).summary])
    table = part(text, "By task type and answer type", "What happened")
    counted, drawn = table.split("Schematic drawings, in no row above")
    assert "organ counting 100.0" in counted
    assert "Recognition and Retrieval" not in counted
    assert "pest diagnosis, drawn 0.0" in drawn
    assert "schematic drawings included" in words(text)


def test_only_drawings_leave_no_headline():
    text = tables_text([summarise([end_to_end(drawing(number)) for number in range(12)], model="m")])
    headline = part(text, "End to end", "Schematic drawings")
    assert "m —¹ —¹" in headline
    assert not re.search(r"\d\.\d", headline)
    assert "¹ no headline: all samples are schematic drawings" in text
    assert "100.0" in part(text, "Schematic drawings, n 12 (12)", "By task type")


def test_without_drawings_nothing_is_said_of_them():
    text = tables_text([summarise([right(photo(number)) for number in range(12)])])
    assert "chematic" not in text
    assert "Kept out" not in text
    assert "*synthetic*" not in text


def test_invalid_records_of_drawings_leave_the_headline_alone():
    made = [right(photo(number)) for number in range(12)]
    lost = end_to_end(drawing(0)).model_copy(update={"invalid": "refused", "trajectory": None})
    text = tables_text([summarise([*made, lost, end_to_end(drawing(1))], model="m")])
    assert "100.0" in part(text, "End to end", "Kept out")
    assert "the headline stays, they are schematic drawings" in words(text)
    assert "of schematic drawings are invalid" in words(text)


def test_comparisons_show_drawings_apart():
    def printed(photos: int) -> str:
        first = records(photos=photos, drawings=12)
        second = records(photos=photos, drawings=12, drawn_answer="rows: 7")
        written = io.StringIO()
        print_comparison(compare(first, second, names=("a", "b"), synthetic=True), file=written)
        return words(written.getvalue())

    text = printed(12)
    assert text.startswith("a minus b, percentage points *synthetic*")
    headline = part(text, "end-to-end", "end-to-end, schematic drawings, n 12")
    assert "FAS +0.0" in headline
    assert "Kept out: 12 samples" in headline
    assert "FAS -100.0" in part(text, "end-to-end, schematic drawings, n 12, in no headline", "Beneath each")
    assert SAYS_NOTHING in text
    assert "end-to-end: no headline: all samples are schematic drawings" in printed(0)


def test_the_page_shows_the_block_and_marks_the_samples(run: Path):
    page = build_report([run], run / "report.html").path.read_text(encoding="utf-8")
    assert "23 samples, 11 of them schematic drawings, not counted" in page
    assert "<h3>End to end  *synthetic*</h3>" in page
    block = page.split("<h3>Schematic drawings, n 11 (11), in no headline</h3>", 1)[1].split("</section>", 1)[0]
    assert SAYS_NOTHING in block
    assert 'aria-label="0.0 %' in block
    assert 'aria-label="100.0 %' in block
    assert page.count("<li>schematic drawing</li>") == 22


def test_an_explanation_says_that_the_sample_is_a_drawing(run: Path):
    told = {each.sample.id: words(explanation_text(each, score_record(each))) for each in iter_records(run)}
    assert (
        f"Schematic drawing, in no headline. Names of drawings, not of animals or plants: {SAYS_NOTHING}" in told["d00"]
    )
    assert "chematic" not in told["s00"]
