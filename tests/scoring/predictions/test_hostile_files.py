"""Prediction files, data sets and judgements of any content: figures or one typed error that names the file.

Files start out sound and have values replaced in a few places, so that what lies deep inside is reached as well.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agrotools.cli.main import main
from agrotools.core import BenchmarkError
from agrotools.report.predictions import as_data, compared_tables
from agrotools.scoring.embedders import Embedder
from agrotools.scoring.predictions import ScoredFile, compare_file
from support.gta_files import overlap
from support.made_predictions import made_files
from support.shown import rendered
from support.spoilt import spoilt

NAMES = (
    "gta, step-by-step", "gta, end-to-end", "thinkgeo, step-by-step", "thinkgeo, end-to-end", "agentx, single-shot",
)  # fmt: skip
EMBEDDER = Embedder("word overlap", overlap)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**30), 2**63])
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud800", "\x00", "\x1b[2J", "[/bold]", "-", "$", "%", "\\", "(", "0" * 70, "1e9999", "NaN"])
)
anything = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("role content tool_calls name type 0 Score value".split()) | st.text(), inner)
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    files = made_files(tmp_path_factory.mktemp("made"), 5)
    return {name: {kind: json.loads(path.read_text()) for kind, path in files[name].items()} for name in NAMES}


def scored(name: str, folder: Path, files: dict[str, Any], embeds: bool) -> ScoredFile | str:
    paths: dict[str, Path] = {}
    for kind, content in files.items():
        paths[kind] = folder / f"{kind}.json"
        paths[kind].write_text(json.dumps(content), encoding="utf-8")
    format_: str = "gta" if name.startswith("gta") else "thinkgeo" if name.startswith("thinkgeo") else "agentx"
    embedder = EMBEDDER if embeds else None
    try:
        return compare_file(format_, paths.pop("predictions"), embedder=embedder, **paths)
    except BenchmarkError as error:
        return error.message


def checked(found: ScoredFile | str) -> None:
    if isinstance(found, str):
        assert found.strip()
        return
    for figure in found.corrected.metrics.values():
        assert figure.value is None or 0 <= figure.value <= 100
    json.dumps(as_data(found), allow_nan=False)
    table = rendered(compared_tables(found, "x"), 80)
    assert all(letter.isprintable() or letter == "\n" for letter in table)
    table.encode("utf-8")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    name=st.sampled_from(NAMES),
    seed=st.integers(0, 2**32),
    changes=st.lists(st.tuples(st.sampled_from(["predictions", "data", "judgements"]), anything), max_size=4),
    left_out=st.sets(st.sampled_from(["data", "judgements"])),
    embeds=st.booleans(),
)
def test_any_change_of_any_file_is_scored_or_refused(tmp_path, sound, name, seed, changes, left_out, embeds):
    rng = random.Random(seed)
    files = {kind: content for kind, content in sound[name].items() if kind not in left_out}
    for kind, other in changes:
        if kind in files:
            files[kind] = spoilt(files[kind], rng, other)
    result = scored(name, tmp_path, files, embeds)
    checked(result)
    assert repr(result) == repr(scored(name, tmp_path, files, embeds))


CONTENTS: dict[str, bytes] = {
    "empty": b"", "blank": b" \n", "binary": bytes(range(256)), "utf-16": "{}".encode("utf-16"),
    "cut off": b'{"0": {"gold": [', "NaN": b"NaN",
    "NaN inside": b'{"0": {"gold": [], "prediction": [{"role": "assistant", "content": NaN}]}}',
    "huge number": b"1" * 6000, "huge number inside": b'[{"0": {"reasoning_steps": ' + b"9" * 5000 + b"}}]",
    "deep lists": b"[" * 100_000 + b"]" * 100_000, "deep objects": b'{"0":' * 100_000 + b"1" + b"}" * 100_000,
    "text": b'"predictions"', "number": b"3", "null": b"null", "true": b"true",
    "half a pair as key": b'{"\\ud800": {"gold": [], "prediction": []}}',
    "half a pair as id": b'[{"\\ud800": {"reasoning_steps": "\\ud800", "final_answer": "\\ud83d"}}]',
    "steers a terminal": b'[{"\\u001b[2J": []}]', "the same key twice": b'{"0": {}, "0": {}}',
}  # fmt: skip


SOUND_BUT_FOR_AN_ENTRY = (("gta", "NaN inside"), ("agentx", "half a pair as id"), ("agentx", "steers a terminal"))
"""Predictions in which an entry is malformed, or of no sample of the data set: it is wrong, and no reason to stop."""


def ended(arguments: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    monkeypatch.setattr("sys.argv", ["agrotools", "score", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    output = capfd.readouterr()
    assert "Traceback" not in output.err
    assert "\x1b" not in output.out
    return int(stop.value.code or 0), output.err


@pytest.mark.parametrize(
    ("format_", "option"),
    [
        (format_, option)
        for format_ in ("gta", "thinkgeo", "agentx")
        for option in ("", "--data", "--judgements")
        if (format_, option) != ("gta", "--judgements")
    ],
)
@pytest.mark.parametrize("content", CONTENTS)
def test_hostile_bytes_end_the_command_with_a_message(tmp_path, sound, format_, option, content, capfd, monkeypatch):
    hostile = tmp_path / "hostile.json"
    hostile.write_bytes(CONTENTS[content])
    files = sound[next(name for name in reversed(NAMES) if name.startswith(format_))]
    arguments = ["--format", format_]
    for kind, known in files.items():
        path = tmp_path / f"{kind}.json"
        path.write_text(json.dumps(known), encoding="utf-8")
        flag = "" if kind == "predictions" else f"--{kind}"
        arguments += [*([flag] if flag else []), str(hostile if flag == option else path)]
    code, output = ended(arguments, capfd, monkeypatch)
    if not option and (format_, content) in SOUND_BUT_FOR_AN_ENTRY:
        assert (code, output) == (0, "")
        return
    assert code not in (0, 1), content
    assert output.startswith("error: "), output
    assert "\x1b" not in output


@pytest.mark.parametrize("format_", ["thinkgeo", "agentx", "agrieval"])
def test_what_is_no_file_ends_the_command_with_a_message(tmp_path, format_, capfd, monkeypatch):
    for path, ends in ((tmp_path, 2), (tmp_path / "absent.json", 2), (tmp_path / ("x" * 300), 3)):
        code, output = ended(["--format", format_, str(path)], capfd, monkeypatch)
        assert (code, output[:7]) == (ends, "error: "), output
