"""``agrotools eval --serve llama`` with llama.cpp's own server, where ``AGROTOOLS_TEST_SERVERS`` names its folder."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.command import run_command
from support.sums_benchmark import write_sums

ROOT = Path(__file__).resolve().parents[2]
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
