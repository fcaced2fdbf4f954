"""Builds that are killed, or meet a full disk."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agrotools.core import UsageError
from agrotools.knowledge.corpus import CorpusIndex, build_index

BUILD = """
import os, resource, signal, sys
from pathlib import Path
from agrotools.knowledge.corpus import build_index, building
corpus, out, stage, count, limit = sys.argv[1:]
building._BATCH_PASSAGES = 50
building._BUFFERED = 1 << 15
seen = 0
def kill(what, done, total):
    global seen
    if what.startswith(stage):
        seen += 1
        if seen == int(count):
            os.kill(os.getpid(), signal.SIGKILL)
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    build_index(Path(corpus), Path(out), replace=True, progress=kill)
except Exception as error:
    print(type(error).__name__, error)
    sys.exit(5)
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(1)
    path = tmp_path_factory.mktemp("stopped") / "a.jsonl"
    with path.open("w") as file:
        for number in range(300):
            text = "".join(chr(0x4E00 + int(900 * rng.random() ** 3)) for _ in range(400))
            file.write(json.dumps({"id": number, "text": text}) + "\n")
    return path


def command(corpus: Path, out: Path, stage: str = "", count: int = 0, limit: int = 0) -> list[str]:
    return [sys.executable, "-c", BUILD, str(corpus), str(out), stage, str(count), str(limit)]


def killed(corpus: Path, out: Path, stage: str, count: int) -> None:
    assert subprocess.run(command(corpus, out, stage, count), check=False).returncode == -signal.SIGKILL


def content(index: CorpusIndex) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (index.folder / index.manifest.data).iterdir()}


@pytest.mark.parametrize(("stage", "count"), [("hashing", 1), ("sorting", 3)])
def test_a_killed_build_is_no_index_and_is_begun_anew(tmp_path: Path, corpus: Path, stage: str, count: int):
    out = tmp_path / "index"
    killed(corpus, out, stage, count)
    assert len(list(out.glob("agrotools-corpus-*"))) == (stage != "hashing")
    with pytest.raises(UsageError, match="holds no index" if stage == "hashing" else "was not finished"):
        CorpusIndex.open(out)
    (out / ".index.json.12.0").write_text("{")  # as a kill at the very last leaves it
    index = build_index(corpus, out)
    assert content(index) == content(build_index(corpus, tmp_path / "undisturbed"))
    assert sorted(path.name for path in out.iterdir()) == sorted([".lock", "index.json", index.manifest.data])


def test_a_killed_build_leaves_an_older_index_whole(tmp_path: Path, corpus: Path):
    out = tmp_path / "index"
    (tmp_path / "old.jsonl").write_text('{"text": "rice"}')
    build_index(tmp_path / "old.jsonl", out)
    killed(corpus, out, "sorting", 1)
    assert CorpusIndex.open(out).search("rice")
    assert len(build_index(corpus, out, replace=True).search("一丁", 3)) == 3
    assert len(list(out.glob("agrotools-corpus-*"))) == 1


def test_a_full_disk_is_told_and_cleared_up(tmp_path: Path, corpus: Path):
    """A limit on the size of files stands for the disk: the failing write is a real one."""
    out = tmp_path / "index"
    ended = subprocess.run(command(corpus, out, limit=350_000), capture_output=True, text=True, check=False)
    assert ended.returncode == 5
    assert ended.stdout.startswith("CorpusError the index cannot be written")
    assert "File too large" in ended.stdout
    assert [path.name for path in out.iterdir()] == [".lock"]
