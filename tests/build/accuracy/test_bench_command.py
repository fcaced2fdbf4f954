"""``agrotools tools bench`` as a user meets it: exit codes, rows, document, what is said on the way."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bench_plugin
import pytest

from agrotools.build.accuracy.studies import Row
from agrotools.build.accuracy.table import COLUMNS, cells, format_table, markdown, number
from support.command import run_command

TOOL = "made_brightness"
KEYS = {
    "tool", "folder", "metric", "value", "low", "high", "n", "independent", "calls", "ms_median", "ms_per_megapixel",
    "peak_mb", "goal", "higher_is_better", "goal_reached", "note", "sources",
    "is_ours", "points", "unreadable", "error",
}  # fmt: skip


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder, with the package of studies installed."""
    with bench_plugin.installed(tmp_path, monkeypatch) as folder:
        yield folder


def bench(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return run_command("tools", "bench", *arguments)


def start_bench(data: Path, *folders: str) -> "subprocess.Popen[str]":
    """Start a bench in a process of its own, which heeds Ctrl-C even if this one was started in the background."""
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    line = [sys.executable, "-c", f"{heeding}; from agrotools.cli.main import main; main()", "tools", "bench"]
    line += ["--data", str(data), "--tool", TOOL, *(part for folder in folders for part in ("--folder", folder))]
    environment = bench_plugin.environment(data.parent / "package")
    return subprocess.Popen(
        line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_json_rows_document_and_sheet(data: Path, tmp_path: Path):
    kept, out = tmp_path / "kept", tmp_path / "accuracy.md"
    ended = bench("--data", data, "--tool", TOOL, "--folder", "greys", "--folder", "elsewhere",
                  "--json", "--out", out, "--overlays", kept)  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(ended.stdout)
    assert all(set(row) == KEYS for row in rows)
    assert rows[0]["tool"] == TOOL
    assert (rows[0]["value"], rows[0]["low"]) == (pytest.approx(1), None)  # errors are equal: no interval
    assert rows[1]["value"] is None
    assert "elsewhere" in ended.stderr
    assert "[1/1] made_brightness on greys: 3 figures, 12 calls" in ended.stderr
    text = out.read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert "`agrotools tools bench --data DIR --tool made_brightness --folder greys --folder elsewhere`" in text
    assert "drawn grey" in text
    assert "Not measured, since their folders were not there: elsewhere." in text
    assert (kept / TOOL / "0_greys" / "000_overlay.png").is_file()


def test_studies_that_fail_and_truths_that_lack_a_field_are_named(data: Path):
    ended = bench("--data", data, "--tool", TOOL, "--folder", "crash", "--folder", "greys")
    assert ended.returncode == 1
    assert "made_brightness on crash: not measured: RuntimeError" in ended.stdout
    assert "brightness, mean absolute error, points" in ended.stdout
    (data / "greys" / "truth.json").write_text('[{"id": "0", "image": "0.png"}]')
    ended = bench("--data", data, "--tool", TOOL, "--folder", "greys")
    assert ended.returncode == 3
    assert "greys/truth.json, item '0' lacks the field 'mean_pct'" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--data", "{data}", "--tool", "measure_nothing"], 2, "unknown accuracy study"),
        (["--data", "{data}", "--tool", TOOL, "--folder", "nothing"], 2, "known: "),
        (["--data", "{data}/nowhere"], 2, "is not a folder"),
        (["--data", "{data}", "--tool", TOOL, "--folder", "elsewhere"], 3, "nothing could be measured"),
        (["--data", "{data}", "--tool", TOOL, "--folder", "crash"], 3, "nothing could be measured"),
        (["--data", "{data}", "--out", "{data}/nowhere/x.md"], 2, "is not a folder"),
    ],
)
def test_exit_codes(data: Path, arguments: list[str], code: int, said: str):
    ended = bench(*(argument.format(data=data) for argument in arguments))
    assert (ended.returncode, said in ended.stderr) == (code, True), ended.stderr
    assert "Traceback" not in ended.stderr


def test_control_c_ends_the_study_too(data: Path):
    process = start_bench(data, "greys", "hang")
    assert "greys" in process.stderr.readline()
    children = _children(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "brightness, mean absolute error" in out
    assert re.search(r"stopped: [1-9] figures? measured so far", err)
    assert "Traceback" not in err
    _wait_for_end(children)


def test_a_study_ends_when_its_parent_is_gone(data: Path):
    process = start_bench(data, "hang")
    children = _children(process)
    process.kill()
    process.communicate()
    _wait_for_end(children)


def _wait_for_end(children: list[int]) -> None:
    until = time.monotonic() + 60
    while any(_alive(child) for child in children):
        assert time.monotonic() < until, "the study goes on"
        time.sleep(0.05)


def _children(process: "subprocess.Popen[str]") -> list[int]:
    """Wait until a process has children."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not path.exists():
        pytest.skip("needs /proc/PID/task/PID/children")
    until = time.monotonic() + 60
    while not (children := path.read_text().split()):
        assert time.monotonic() < until, "no study was started"
        time.sleep(0.02)
    return [*map(int, children)]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


ROW = Row("t", "f", "error | of a thing, points", 0.12345, 0.1, 0.2, 20, 15, 20, 12.345, 99.6, 123.4, 0.5, False, True)


def test_cells_and_printed_rows():
    assert cells(ROW) == (
        "t", "f", "error | of a thing, points", "0.123", "0.100 to 0.200", "20", "15", "12", "100", "123",
        "≤ 0.5: reached",
    )  # fmt: skip
    few = Row("t", "f", "m", 0.5, None, None, 9, 9, goal=0.4, higher_is_better=True, goal_reached=True)
    assert cells(few)[4] == "-"
    assert cells(few)[-1] == "≥ 0.4", "no claim under ten"
    assert len(cells(Row("t", "f", error="broke"))) == len(COLUMNS)
    shown = {None: "-", 1.5e-15: "0.000", 5.634: "5.63", 56.34: "56.3", 1234.5: "1234", -0.5: "-0.500", 1e-5: "1e-05"}
    assert [number(value) for value in shown] == [*shown.values()]
    lines = format_table([ROW, ROW, Row("t", "f", "few", 1.0, n=3, independent=3), Row("u", "f", error="broke")])
    assert lines[2].startswith("  ")
    assert any("under 10 independent images" in line for line in lines)
    assert lines[-1] == "u on f: not measured: broke"


def test_the_document_is_a_table_with_what_is_said_of_a_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    text = markdown([ROW, Row("t", "g", error="a | b\nc")], "agrotools tools bench", today="2026-01-01")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in table} == {len(COLUMNS)}
    assert "on 2026-01-01" in text
    rows = [Row("t", "f", metric, 1.0, n=12, independent=12, note="drawn") for metric in ("a", "b")]
    rows += [Row("t", "g", "c", 1.0, n=12, independent=12, note="drawn"), Row("t", "g", "d", 1.0, n=12, independent=12)]
    notes = [line for line in markdown(rows, "agrotools tools bench").splitlines() if line.startswith("*")]
    assert notes == ["* f: drawn", "* g, c: drawn"]
    (tmp_path / "prose").mkdir()
    (tmp_path / "prose" / "t.md").write_text("Pale fruit is missed.\n")
    monkeypatch.setattr("agrotools.build.accuracy.table.files", lambda _: tmp_path)
    text = markdown([ROW], "agrotools tools bench")
    assert text.index("## t") < text.index("Pale fruit is missed.") < text.index("| folder |")


def test_help_comes_without_heavy_imports():
    code = "import sys; from agrotools.cli.main import app; print([m for m in ('numpy', 'cv2') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.strip() == "[]"
