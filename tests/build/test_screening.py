"""Screening finds what can be answered without looking, and says what chance alone explains."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agrotools.build.quality.screening import chance_of, guessable_tolerances, screen_folder
from agrotools.cli.main import app
from agrotools.core import BooleanSlot, ExactSlot, ToleranceSlot
from agrotools.formats.clusters import with_clusters
from support.benchmark_folders import number_sample, write_folder
from support.plain_sample import plain_sample


def _numbers(values: list[float], tolerance: float):
    slots = [ToleranceSlot(name="cover", label="cover", value=value, unit="%", abs_tol=tolerance) for value in values]
    return with_clusters(plain_sample(f"s{number}", answer=(slot,)) for number, slot in enumerate(slots))


def test_numbers_are_guessable_if_close_together_with_a_wide_tolerance():
    found = list(guessable_tolerances(_numbers([20, 21, 22, 23, 24, 60], 3)))
    assert [finding.id for finding in found] == ["s0", "s1", "s2", "s3", "s4"]
    assert "5 of 6 samples" in found[0].message
    assert list(guessable_tolerances(_numbers([2, 12, 25, 41, 63, 88], 2))) == []


@pytest.mark.parametrize(
    ("slot", "chance"),
    [
        (BooleanSlot(name="a", label="a", value=True), 0.5),
        (ExactSlot(name="a", label="a", value="x", choices=("x", "y", "z")), 1 / 3),
        (ExactSlot(name="a", label="a", value="x"), 0),
        (ToleranceSlot(name="a", label="a", value=10, unit="%", abs_tol=1e9), 1),
        (ToleranceSlot(name="a", label="a", value=1, unit="%", abs_tol=0), 0),
    ],
)
def test_chance_of_a_blind_guess(slot, chance):
    assert chance_of(slot) == pytest.approx(chance)


def _gives_itself_away(folder: Path) -> Path:
    told = number_sample(folder, "tiny-2", 2)
    told["query"] = "Is it the north? Yes, the north."
    told["answer"] = [
        {
            "type": "exact", "name": "side", "label": "side", "value": "north", "choices": ["north", "south"],
            "from": "'north' if steps[0].observation.value > 3 else 'south'",
        }
    ]  # fmt: skip
    told["answer_type"] = "exact"
    return write_folder(folder, [number_sample(folder), told])


def test_what_echo_answers_is_a_warning_kept_in_the_folder_and_printed(tmp_path: Path):
    folder = _gives_itself_away(tmp_path / "b")
    findings = screen_folder(folder)
    echoed = [finding for finding in findings if "baseline:echo" in finding.message]
    assert [(finding.id, finding.severity) for finding in echoed] == [("tiny-2", "warning")]
    lines = [json.loads(line) for line in (folder / "quality.jsonl").read_text().splitlines()]
    assert lines == [finding.model_dump() for finding in findings]
    assert set(lines[0]) == {"id", "check", "severity", "message"}
    done = CliRunner().invoke(app, ["benchmarks", "check", str(folder), "--quality"])
    assert "solved_blind" in done.stdout
    told = json.loads(CliRunner().invoke(app, ["benchmarks", "check", str(folder), "--quality", "--json"]).stdout)
    assert {"answer_in_query", "solved_blind"} <= {finding["check"] for finding in told["findings"]}


def test_a_folder_that_cannot_be_loaded_is_only_validated(tmp_path: Path):
    folder = write_folder(tmp_path / "b", ["{broken"])
    done = CliRunner().invoke(app, ["benchmarks", "check", str(folder), "--quality"])
    assert done.exit_code == 1
    assert "fix the errors above first" in done.output
