"""Where an index may be built, opening one again, and indexes that are damaged or of something else."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from agrotools.core import CorpusError, UsageError
from agrotools.knowledge.corpus import CorpusIndex, build_index
from support.corpora import made_up, write_lines


def test_the_same_again_is_opened_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    corpus = write_lines(tmp_path / "a.jsonl", made_up(5, 1))
    first = build_index(corpus, tmp_path / "index")
    told: list[str] = []
    again = build_index(corpus, tmp_path / "index", progress=lambda what, *_: told.append(what))
    assert again.manifest == first.manifest
    assert told == []


def test_another_corpus_or_setting_is_refused_without_replace(tmp_path: Path):
    corpus = write_lines(tmp_path / "a.jsonl", ["水稻"])
    out = tmp_path / "index"
    build_index(corpus, out)
    write_lines(corpus, ["小麦"])
    with pytest.raises(UsageError, match="another corpus") as caught:
        build_index(corpus, out)
    assert "--replace" in str(caught.value.hint)
    replaced = build_index(corpus, out, replace=True)
    assert [passage.text for passage in replaced.search("小麦")] == ["小麦"]
    assert len(list(out.glob("agrotools-corpus-*"))) == 1


def test_an_index_says_when_its_corpus_changed(tmp_path: Path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    write_lines(corpus / "a.jsonl", ["水稻"])
    out = tmp_path / "index"
    assert build_index(corpus, out).stale is None
    (corpus / "b.txt").write_text("b")
    assert "has changed since" in str(CorpusIndex.open(out).stale)
    (corpus / "b.txt").unlink()
    assert CorpusIndex.open(out).stale is None
    write_lines(corpus / "a.jsonl", ["小麦"])
    assert "has changed since" in str(CorpusIndex.open(out).stale)
    assert CorpusIndex.open(out).search("水稻")[0].text == "水稻"
    (corpus / "a.jsonl").unlink()
    corpus.rmdir()
    assert CorpusIndex.open(out).stale is None


def test_places_that_do_not_fit_together(tmp_path: Path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_text("水稻", encoding="utf-8")
    (tmp_path / "link").symlink_to(corpus)
    for out in (corpus, corpus / "index", tmp_path, tmp_path / "link" / "index"):
        with pytest.raises(UsageError, match=r"(is|would be) inside") as caught:
            build_index(corpus, out)
        assert caught.value.hint
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.txt", "corpus", "link"]
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        build_index(corpus, tmp_path / "file")
    for name in ("photo.jpg", "index.json", "data-20240101"):
        folder = tmp_path / f"with {name}"
        (folder / name).mkdir(parents=True)
        with pytest.raises(UsageError, match=f"holds other things, such as {name}"):
            build_index(corpus, folder, replace=True)
        assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.parametrize("content", [None, "", " \n---\n"])
def test_an_empty_corpus_is_refused(tmp_path: Path, content: str | None):
    (tmp_path / "corpus").mkdir()
    if content is not None:
        (tmp_path / "corpus" / "a.txt").write_text(content)
    with pytest.raises(UsageError, match="holds no"):
        build_index(tmp_path / "corpus", tmp_path / "index")
    assert not list(tmp_path.glob("index/agrotools-corpus-*"))


def test_targets_and_corpora_that_cannot_be_used_leave_no_data(tmp_path: Path):
    corpus = write_lines(tmp_path / "a.jsonl", ["水稻"])
    with pytest.raises(CorpusError, match="cannot be written") as caught:
        build_index(corpus, Path("/proc/agrotools-index"))
    assert caught.value.hint
    with pytest.raises(CorpusError, match="cannot be written"):
        build_index(corpus, corpus.with_name("a.jsonl.d") / ("x" * 300))
    (tmp_path / "a.jsonl").write_text('{"text": "水稻"}\n{')
    with pytest.raises(CorpusError, match="line 2"):
        build_index(tmp_path / "a.jsonl", tmp_path / "index")
    assert [path.name for path in (tmp_path / "index").iterdir()] == [".lock"]


def test_a_corpus_that_changes_meanwhile(tmp_path: Path):
    corpus = write_lines(tmp_path / "a.jsonl", ["水稻"])

    def meddle(what: str, done: int, total: int) -> None:
        if what.startswith("reading"):
            write_lines(corpus, ["小麦"] * 3)

    with pytest.raises(CorpusError, match="changed while it was read"):
        build_index(corpus, tmp_path / "index", progress=meddle)


def test_one_build_at_a_time(tmp_path: Path):
    corpus = write_lines(tmp_path / "a.jsonl", ["水稻"])
    faults: list[UsageError] = []

    def meanwhile(what: str, done: int, total: int) -> None:
        def other() -> None:
            try:
                build_index(corpus, tmp_path / "index")
            except UsageError as error:
                faults.append(error)

        if what.startswith("reading"):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()

    build_index(corpus, tmp_path / "index", progress=meanwhile)
    assert ["another process is building" in fault.message for fault in faults] == [True]


def test_damaged_indexes_are_named(tmp_path: Path):
    corpus = write_lines(tmp_path / "a.jsonl", made_up(30, 2))
    out = tmp_path / "index"
    data = out / build_index(corpus, out).manifest.data
    with pytest.raises(UsageError, match="holds no index"):
        CorpusIndex.open(tmp_path)
    with pytest.raises(UsageError, match="holds no index"):
        CorpusIndex.open(corpus)
    for path in sorted(data.iterdir()):
        content = path.read_bytes()
        for damaged in (content[:-1], b"", content + b"\0"):
            path.write_bytes(damaged)
            with pytest.raises(CorpusError, match="is damaged"):
                CorpusIndex.open(out)
        path.unlink()
        with pytest.raises(CorpusError, match="is damaged"):
            CorpusIndex.open(out)
        path.write_bytes(content)
    rows = data / "passages.rows"
    content = rows.read_bytes()
    rows.write_bytes(b"\x7f" * len(content))
    with pytest.raises(CorpusError, match="is damaged"):
        CorpusIndex.open(out).search("第")
    rows.write_bytes(content)
    postings = data / "postings.passages"
    np.full(postings.stat().st_size // 4, 0xFFFFFFFF, "<u4").tofile(postings)
    with pytest.raises(CorpusError, match="is damaged"):
        CorpusIndex.open(out).search("第")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "format 99"), ({"format": 2}, "format 2; this version reads format 3"),
        ({"data": "../elsewhere"}, "is not the manifest"), ({"passages": -1}, "is not the manifest"),
        ({"unknown": 1}, "is not the manifest"),
    ],
)  # fmt: skip
def test_strange_manifests_are_refused(tmp_path: Path, change: dict[str, object], message: str):
    out = tmp_path / "index"
    corpus = write_lines(tmp_path / "a.jsonl", ["水稻"])
    build_index(corpus, out)
    manifest = json.loads((out / "index.json").read_text())
    (out / "index.json").write_text(json.dumps(manifest | change))
    with pytest.raises(CorpusError, match=message) as caught:
        CorpusIndex.open(out)
    assert caught.value.hint
    with pytest.raises(CorpusError, match=message):
        build_index(corpus, out)
    assert build_index(corpus, out, replace=True).search("水稻")


def test_other_versions_of_the_tokens_are_refused(tmp_path: Path):
    out = tmp_path / "index"
    build_index(write_lines(tmp_path / "a.jsonl", ["水稻"]), out)
    manifest = json.loads((out / "index.json").read_text())
    manifest["settings"]["tokens_version"] = "0"
    (out / "index.json").write_text(json.dumps(manifest))
    with pytest.raises(CorpusError, match="version 0, here is 2"):
        CorpusIndex.open(out)
