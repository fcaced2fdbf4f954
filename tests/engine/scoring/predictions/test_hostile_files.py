"""Prediction files, data sets and judgements of any content: figures or one typed error that names the file.

Files start out sound and have values replaced in a few places, so that what lies deep inside is reached as well.
"""

import json
from typing import Any

import pytest

from agrotools.cli.main import main
from support.made_predictions import made_files

NAMES = (
    "gta, step-by-step", "gta, end-to-end", "thinkgeo, step-by-step", "thinkgeo, end-to-end", "agentx, single-shot",
)  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    files = made_files(tmp_path_factory.mktemp("made"), 5)
    return {
        name: {kind: json.loads(path.read_text()) for kind, path in files[name].items()}
        for name in NAMES
    }


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


SOUND_BUT_FOR_AN_ENTRY = (
    ("gta", "NaN inside"),
    ("agentx", "half a pair as id"),
    ("agentx", "steers a terminal"),
)
"""Predictions in which an entry is malformed, or of no sample of the data set: it is wrong, and no reason to stop."""


def ended(
    arguments: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str]:
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
def test_hostile_bytes_end_the_command_with_a_message(
    tmp_path, sound, format_, option, content, capfd, monkeypatch
):
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
