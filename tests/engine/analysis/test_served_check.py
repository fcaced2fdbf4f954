"""The check of a tool server: points won by oracle, agreement with truth, and what the binding does not give."""

import io
import json
import sys
from collections.abc import Awaitable, Sequence
from pathlib import Path

import pytest

import support
from agrotools.analysis.served_check import ServedCheck, check_served, check_tables, unit_factor
from agrotools.core import UsageError
from agrotools.report.text_tables import markdown
from agrotools.runner.records import iter_records
from agrotools.served import tools
from agrotools.served.address import ServerAddress
from agrotools.served.tools import list_server
from support.command import run_command
from support.sums_benchmark import write_sums

pytestmark = pytest.mark.process
SERVER = f"{sys.executable} {Path(support.__path__[0]) / 'tool_server.py'}"
BINDING = """
[measure_crop_weed_area]
when = { region = true, bands = false }
[[measure_crop_weed_area.calls]]
tool = "cover"
arguments = { image_path = "{image}" }
[measure_crop_weed_area.result]
veg_pct = "cover * 100"
"""


def checked(benchmark: Path, folder: Path, text: str = BINDING) -> ServedCheck:
    binding = folder / "binding.toml"
    binding.write_text(text)
    return check_served(str(benchmark), [SERVER], str(binding), io.StringIO(), quick=False)


def test_a_tool_that_measures_nothing_loses_points(
    small_benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    found = checked(small_benchmark, tmp_path)
    assert found.won is not None
    assert found.means is not None
    ours, theirs = found.means
    assert found.won.value == pytest.approx(theirs - ours)
    assert found.won.value < 0
    assert found.invalid == 0
    (tool,) = found.tools
    assert (tool.tool, tool.refused, tool.unbound) == ("measure_crop_weed_area", 0, 0)
    (cover,) = tool.fields
    assert (cover.field, cover.n) == ("veg_pct", tool.calls - tool.left_out)
    assert (cover.n_judged, cover.n_within) == (1, 0)  # one question asks for the cover itself
    assert found.unfit == 5  # on bands
    assert {"bands given", "region not given"} & tool.unfit.keys()
    assert cover.factor is None
    assert cover.median_error is not None
    assert cover.median_error > 0.1
    assert not tool.passed_over.keys() & {"region", "bands"}, "the binding names these in when"
    assert tool.not_given  # questions on crops and weeds read more than the cover
    text = markdown(check_tables(found))
    assert "Points won by field-tools" in text
    assert ("all" in found.nothing_to_win) == (ours == 1)
    assert ("Nothing is left to win" in text) == bool(found.nothing_to_win)
    seconds = [record.seconds for record in iter_records(Path(found.runs[1]))]
    again = checked(small_benchmark, tmp_path)
    assert again.won == found.won
    assert seconds == [record.seconds for record in iter_records(Path(again.runs[1]))]


def test_calls_that_fail_in_the_binding_are_no_refusals_of_the_server(
    small_benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    found = checked(small_benchmark, tmp_path, BINDING.replace("cover * 100", "cover / 0"))
    (tool,) = found.tools
    assert (tool.refused, tool.unbound) == (0, tool.calls)


def test_arguments_that_a_binding_passes_over_are_named(
    small_benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    listed: list[ServerAddress] = []

    def counted(address: ServerAddress, answers: Sequence[Path]) -> Awaitable[tools.ListedServer]:
        listed.append(address)
        return list_server(address, answers)

    monkeypatch.setattr(tools, "list_server", counted)
    whole_pictures = BINDING.replace("region = true, ", "")
    found = checked(small_benchmark, tmp_path, whole_pictures)
    assert len(listed) == 1
    (tool,) = found.tools
    assert tool.passed_over["region"] > 0
    assert any(
        "with region, which the binding passes over" in markdown([each])
        for each in check_tables(found)
    )


def test_a_binding_that_is_made_for_no_question_says_so(
    small_benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no reference call") as raised:
        checked(small_benchmark, tmp_path, BINDING.replace("region = true", "region = false"))
    assert "region given" in (raised.value.hint or "")


def test_a_factor_of_units_is_told_from_an_error():
    assert unit_factor([0.0098, 0.0101, 0.0099]) == 0.01
    assert unit_factor([0.5, 0.01, 0.7]) is None
    assert unit_factor([100.0, 101.0]) is None, "too few values"


def test_a_benchmark_without_such_a_call_does_not_lose_the_check_of_another_one(
    small_benchmark: Path, tmp_path: Path
):
    write_sums(tmp_path / "sums", 2)
    (tmp_path / "binding.toml").write_text(BINDING)
    words = ("tools", "check", small_benchmark, "sums", "--all", "--json")
    server = ("--tool-server", SERVER, "--binding", "binding.toml")
    done = run_command(*words, *server, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (check,) = json.loads(done.stdout)
    assert check["questions"] > 0
    assert "no reference call of sums" in done.stderr
