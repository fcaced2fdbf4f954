"""``agrotools eval --serve llama`` with llama.cpp's own server, where ``AGROTOOLS_TEST_SERVERS`` names its folder."""

import json
import math
import os
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from agrotools.runner.records import iter_records
from support.command import run_command
from support.sums_benchmark import write_sums

ROOT = Path(__file__).resolve().parents[3]
SERVERS = os.environ.get("AGROTOOLS_TEST_SERVERS")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SERVERS, reason="AGROTOOLS_TEST_SERVERS names no folder with xllamacpp"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a benchmark and a tiny model; ``llama-server`` is that of the package xllamacpp."""
    python = Path(str(SERVERS)).resolve() / "bin" / "python"
    write_sums(tmp_path / "sums", 6)
    subprocess.run(
        [python, ROOT / "performance" / "tiny_gguf.py", tmp_path / "tiny.gguf"], check=True
    )
    program = tmp_path / "bin" / "llama-server"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nexec "{python}" "{ROOT}/src/agrotools/models/xllamacpp_server.py" "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(model: str, *options: str) -> "subprocess.CompletedProcess[str]":
    words = [
        "eval",
        "sums",
        "-m",
        model,
        "--serve",
        "llama",
        "--mode",
        "no-tool",
        "--no-images",
        "--out",
        "run",
    ]
    return run_command(*words, *options)


def test_a_tiny_model_is_served_and_answers_rightly(folder: Path):
    done = command("tiny.gguf", "--serve-args", "-c 4096 -np 2 -t 1", "--json")
    assert done.returncode == 0, done.stderr
    (scores,) = json.loads(done.stdout)
    assert scores["modes"]["no-tool"]["metrics"]["fas"]["overall"]["value"] == 1
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    assert manifest["server"] == ["llama", "-c", "4096", "-np", "2", "-t", "1"]
    assert manifest["server_version"].startswith("xllamacpp 20")


def test_a_damaged_model_file_is_named_with_what_the_server_wrote(folder: Path):
    whole = (folder / "tiny.gguf").read_bytes()
    (folder / "half.gguf").write_bytes(whole[: len(whole) // 2])
    done = command("half.gguf")
    assert done.returncode == 3
    assert "llama does not start" in done.stderr
    assert "half.gguf" in (folder / "run" / "server.log").read_text()


# --- pictures --------------------------------------------------------------------------------------------------------

PATCH_PX = 64
PICTURES = {"none": [], "small": [(64, 64)], "wide": [(512, 256)], "two": [(512, 256), (256, 512)]}
"""Sizes of the pictures of each question, in pixels, by its id."""


def tokens_of(width: int, height: int) -> int:
    """Tokens of a picture: one for each patch, and one for the end of each row of patches but the last."""
    columns, rows = math.ceil(width / PATCH_PX), math.ceil(height / PATCH_PX)
    return columns * rows + rows - 1


@pytest.fixture
def seeing(folder: Path) -> Path:
    """The folder with the model's vision part, and a benchmark of questions on pictures."""
    python = Path(str(SERVERS)).resolve() / "bin" / "python"
    script = ROOT / "performance" / "tiny_gguf.py"
    subprocess.run([python, script, folder / "mmproj.gguf", "--vision"], check=True)
    (template, *_) = (folder / "sums" / "samples.jsonl").read_text().splitlines()
    lines: list[str] = []
    for name, sizes in PICTURES.items():
        files: list[dict[str, str]] = []
        for number, size in enumerate(sizes):
            file = f"{name}_{number}.png"
            Image.effect_noise(size, 60).convert("RGB").save(folder / "sums" / file)
            files.append({"name": file, "path": file, "kind": "image"})
        lines.append(json.dumps(json.loads(template) | {"id": name, "files": files}))
    (folder / "sums" / "samples.jsonl").write_text("\n".join(lines))
    return folder


def evaluated(folder: Path, mode: str, context: int, *options: str) -> dict[str, object]:
    serve = f"--mmproj mmproj.gguf -c {context} -np 1 -t 1"
    words = ["eval", "sums", "-m", "tiny.gguf", "--serve", "llama", "--mode", mode]
    done = run_command(*words, "--serve-args", serve, "--out", "run", *options)
    assert done.returncode in (0, 1), done.stderr
    return {record.sample.id: record for record in iter_records(folder / "run")}


@pytest.mark.parametrize("mode", ["no-tool", "end-to-end"])
def test_pictures_reach_the_model_in_every_turn_and_are_counted_as_tokens(seeing: Path, mode: str):
    records = evaluated(seeing, mode, 8192)
    assert {*records} == {*PICTURES}
    inputs = {
        name: [reply.usage.input_tokens for reply in record.replies]
        for name, record in records.items()
    }
    assert {len(each) for each in inputs.values()} == {len(inputs["none"])}
    for name, sizes in PICTURES.items():
        pictures = sum(tokens_of(*size) for size in sizes)
        for with_pictures, without in zip(inputs[name], inputs["none"], strict=True):
            # Names and notes of the files take some words of the prompt, too.
            assert with_pictures - without >= pictures, (name, inputs)


def test_too_many_pictures_for_the_context_end_the_sample_and_no_other(seeing: Path):
    context = 640
    sizes = [(1024, 1024)] * 4
    assert sum(tokens_of(*size) for size in sizes) > context
    lines = (seeing / "sums" / "samples.jsonl").read_text().splitlines()
    files: list[dict[str, str]] = []
    for number, size in enumerate(sizes):
        Image.effect_noise(size, 60).convert("RGB").save(seeing / "sums" / f"many_{number}.png")
        files.append({"name": f"many_{number}.png", "path": f"many_{number}.png", "kind": "image"})
    many = json.dumps(json.loads(lines[0]) | {"id": "many", "files": files})
    (seeing / "sums" / "samples.jsonl").write_text("\n".join([lines[0], many]))
    records = evaluated(seeing, "no-tool", context)
    assert records["many"].trajectory.termination == "context"
    assert records["none"].trajectory.termination == "answered"
