"""Reading a corpus, building, opening and searching its index: what is found, with which scores, in which order."""

import json
import math
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import CorpusError, UsageError
from agrotools.knowledge import corpus as index
from agrotools.knowledge.corpus import (
    UNITS,
    CorpusIndex,
    build_index,
    cut_terms,
    read_corpus,
    split,
)
from support.corpora import made_up, write_lines


def plain_scores(texts: Sequence[str], query: str) -> list[float]:
    """BM25 by its formula, one passage after the other, with the least weight of FTS5 for very common terms."""
    counted = [Counter(cut_terms(text)) for text in texts]
    mean = sum(each.total() for each in counted) / len(counted)
    scores = [0.0] * len(texts)
    for term in set(cut_terms(query)):
        holding = sum(term in each for each in counted)
        rarity = math.log((len(texts) - holding + 0.5) / (holding + 0.5))
        for number, counts in enumerate(counted):
            norm = 1.2 * (0.25 + 0.75 * counts.total() / mean)
            scores[number] += max(rarity, 1e-6) * counts[term] * 2.2 / (counts[term] + norm)
    return scores


@pytest.mark.parametrize("seed", range(3))
def test_ranking_is_that_of_a_plain_bm25(tmp_path: Path, seed: int):
    texts = made_up(200, seed)
    built = build_index(write_lines(tmp_path / "a.jsonl", texts), tmp_path / "index")
    query = "".join(made_up(3, 100 + seed))
    expected = plain_scores(texts, query)
    found = built.search(query, 400)
    assert {passage.text: passage.score for passage in found} == pytest.approx(
        {text: score for text, score in zip(texts, expected, strict=True) if score > 0}
    )
    assert [passage.score for passage in found] == sorted(
        (passage.score for passage in found), reverse=True
    )
    assert built.search(query, 7) == found[:7]


def test_the_commonest_terms_of_a_question_are_left_out_of_a_large_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    texts = ["水稻"] * 150 + ["水稻 纹枯"] * 2
    built = build_index(write_lines(tmp_path / "a.jsonl", texts), tmp_path / "index")
    assert len(built.search("水稻纹枯", 9)) == 9
    monkeypatch.setattr(index, "_MOST_MATCHES", 100)
    assert [passage.source for passage in built.search("水稻 纹枯", 9)] == [
        "a.jsonl:151",
        "a.jsonl:152",
    ]
    assert len(built.search("水稻", 9)) == 9


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Rice BLAST", "blast, rice!"), ("ＲＩＣＥ　３．５", "rice 3.5"), ("稻 3.5kg", "3.5KG、稻"),
        ("Éclair", "éclair"), ("𠀀𠀁", "（𠀀𠀁）"),
    ],
)  # fmt: skip
def test_what_counts_as_the_same(tmp_path: Path, one: str, other: str):
    assert sorted(cut_terms(one)) == sorted(cut_terms(other))
    built = build_index(write_lines(tmp_path / "a.jsonl", [one]), tmp_path / "index")
    for term in cut_terms(other):
        assert built.search(term), f"{term} is a term of SQLite, too"


def test_a_passage_knows_where_it_is_from(tmp_path: Path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    filling = "小麦锈病。" * 100
    (corpus / "rice.md").write_text(f"{filling}\n水稻纹枯病由立枯丝核菌引起。", encoding="utf-8")
    (corpus / "a.jsonl").write_text(
        json.dumps({"text": "常见于高温。", "title": "玉米\n大斑病", "id": 4}) + '\n{"n": 1}\n'
    )
    built = build_index(corpus, tmp_path / "index")
    best = built.search("立枯丝核菌", 1)[0]
    assert (best.source, best.title) == ("rice.md", "")
    assert f"{filling}\n水稻纹枯病由立枯丝核菌引起。"[best.position :] == best.text
    by_title = built.search("玉米大斑病", 1)[0]
    assert (by_title.source, by_title.title, by_title.text) == (
        "a.jsonl#4",
        "玉米 大斑病",
        "常见于高温。",
    )
    assert built.manifest["skipped"] == {"without text": 1}


def test_what_is_not_there_is_not_found_and_equal_scores_keep_the_order(tmp_path: Path):
    assert list(cut_terms("水稻病，a稻b 25.5 rice_x")) == [
        "水稻",
        "稻病",
        "a",
        "稻",
        "b",
        "25.5",
        "rice",
        "x",
    ]
    assert list(cut_terms("?! _")) == []
    built = build_index(write_lines(tmp_path / "a.jsonl", ["水稻 x"] * 50), tmp_path / "index")
    assert built.search("qwertz") == built.search("") == built.search('？！" OR *') == []
    assert [passage.source for passage in built.search("水稻", 3)] == [
        "a.jsonl:1",
        "a.jsonl:2",
        "a.jsonl:3",
    ]
    with pytest.raises(UsageError, match="k is 0"):
        built.search("稻", 0)


def test_hostile_text_reaches_no_terminal(tmp_path: Path):
    rows = [{"text": "水稻\x1b]0;x\x07 \ud800", "title": "\x1b[2J" + "t" * 900, "id": "\x1b[1m"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = build_index(tmp_path / "a.jsonl", tmp_path / "index").search("水稻")[0]
    assert (found.text + found.title + found.source).isprintable()
    assert "水稻" in found.text
    assert len(found.title) <= 200


def test_the_same_again_is_opened_and_another_corpus_needs_replace(tmp_path: Path):
    corpus, out = write_lines(tmp_path / "a.jsonl", ["水稻"]), tmp_path / "index"
    first = build_index(corpus, out)
    told: list[str] = []
    again = build_index(corpus, out, progress=lambda what, *_: told.append(what))
    assert (again.manifest, told) == (first.manifest, [])
    write_lines(corpus, ["小麦"])
    assert "has changed since" in str(CorpusIndex(out).stale)
    with pytest.raises(UsageError, match="another corpus") as caught:
        build_index(corpus, out)
    assert "--replace" in str(caught.value.hint)
    replaced = build_index(corpus, out, replace=True)
    assert [passage.text for passage in replaced.search("小麦")] == ["小麦"]
    assert replaced.manifest["sha256"] != first.manifest["sha256"]
    corpus.unlink()
    assert CorpusIndex(out).stale is None


def test_what_is_no_index_is_neither_opened_nor_replaced(tmp_path: Path):
    corpus = write_lines(tmp_path / "a.jsonl", ["水稻"])
    (tmp_path / "notes").write_text("mine")
    with sqlite3.connect(tmp_path / "other.sqlite") as database:
        database.execute("CREATE TABLE mine (x)")
    for name, message in (
        ("notes", "no index"),
        ("other.sqlite", "no index"),
        (".", "is not a corpus index"),
    ):
        before = (tmp_path / name).read_bytes() if name != "." else b""
        with pytest.raises((CorpusError, UsageError), match=message) as caught:
            build_index(corpus, tmp_path / name, replace=True)
        assert caught.value.hint
        assert not before or (tmp_path / name).read_bytes() == before
    with pytest.raises(UsageError, match="is not a corpus index"):
        CorpusIndex(tmp_path / "nowhere")
    built = build_index(corpus, tmp_path / "index")
    (tmp_path / "index").write_bytes((tmp_path / "index").read_bytes()[:9000])
    with pytest.raises(CorpusError, match="is damaged"):
        built.search("水稻")


def test_corpora_without_text_targets_that_cannot_be_written_and_sqlite_without_fts5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "corpus").mkdir()
    for content in (None, "", " \n---\n"):
        if content is not None:
            (tmp_path / "corpus" / "a.txt").write_text(content)
        with pytest.raises(UsageError, match="contains no text"):
            build_index(tmp_path / "corpus", tmp_path / "index")
    with pytest.raises(UsageError, match="does not exist"):
        build_index(tmp_path / "nowhere", tmp_path / "index")
    corpus = write_lines(tmp_path / "a.jsonl", ["水稻"])
    for out in (Path("/proc/agrotools-index"), tmp_path / "a.jsonl" / "index"):
        with pytest.raises(CorpusError, match="cannot be built"):
            build_index(corpus, out)
    monkeypatch.setattr(index, "_SCHEMA", index._SCHEMA.replace("fts5(", "fts0("))
    with pytest.raises(CorpusError, match="no such module") as caught:
        build_index(corpus, tmp_path / "index")
    assert "sqlite3 has FTS5" in str(caught.value.hint)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "corpus"]


BUILD = """
import os, resource, signal, sys
from pathlib import Path
from agrotools.core import AgrotoolsError
from agrotools.knowledge.corpus import build_index
corpus, out, limit = sys.argv[1:]
def kill(what, done, total):
    if not int(limit):
        os.kill(os.getpid(), signal.SIGKILL)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit) or resource.RLIM_INFINITY, resource.RLIM_INFINITY))
try:
    build_index(Path(corpus), Path(out), replace=True, progress=kill)
except AgrotoolsError as error:
    sys.exit(error.message)
"""


@pytest.mark.process
def test_a_build_that_is_killed_or_meets_a_full_disk_leaves_the_older_index(tmp_path: Path):
    """A limit on the size of files stands for the disk: the failing write is a real one."""
    out = tmp_path / "out" / "index"
    build_index(write_lines(tmp_path / "old.jsonl", ["rice"]), out)
    corpus = write_lines(tmp_path / "a.jsonl", made_up(2000, 1))
    command = [sys.executable, "-c", BUILD, str(corpus), str(out)]
    full, killed = (
        subprocess.run([*command, limit], capture_output=True, text=True)
        for limit in ("60000", "0")
    )
    assert full.returncode == 1
    assert "cannot be built" in full.stderr
    assert killed.returncode == -signal.SIGKILL
    assert CorpusIndex(out).search("rice")
    assert len([*out.parent.iterdir()]) == 2, "the index, and what was begun and killed"
    assert len(build_index(corpus, out, replace=True).search("第1号", 3)) == 3


def units(text: str) -> int:
    return len(re.findall(r"[\u4e00-\u9fff\u0e01]|[^\W_\u4e00-\u9fff\u0e01]+", text))


def test_passages_end_at_sentences_and_long_ones_are_cut():
    assert list(split("  水稻。\n")) == [(2, "水稻。")]
    assert list(split("")) == list(split(" \n --- ")) == []
    found = [text for _, text in split("水稻纹枯病由立枯丝核菌引起。" * 100)]
    assert {units(passage) for passage in found[:-1]} == {299}  # 23 sentences of 13
    assert all(passage.endswith("。”") for _, passage in split("他说：“水稻得了纹枯病。”" * 60))
    found = [
        text
        for _, text in split("Rice blast is caused by a fungus. It spreads at 25.5 degrees. " * 60)
    ]
    assert all(passage.endswith(".") and not passage.endswith("25.") for passage in found)
    assert all(passage.endswith("，") for _, passage in list(split("水稻小麦玉米，" * 200))[:-1])
    assert [len(passage) for _, passage in split("稻" * 1000)] == [300, 300, 300, 100]
    assert [len(passage) for _, passage in split("a" * 7000)] == [3000, 3000, 1000]


@given(
    st.text(st.sampled_from('稻麦病虫害ab 019.。！？；，,”"\n\u3000-😀\u0e01'), max_size=2000),
    st.integers(1, 3),
)
def test_nothing_is_lost_moved_or_too_long(text: str, times: int):
    text *= times
    found = [(0, ""), *split(text), (len(text), "")]
    for (start, passage), (following, _) in pairwise(found):
        assert text[start : start + len(passage)] == passage == passage.strip()
        assert units(passage) <= UNITS
        assert not units(text[start + len(passage) : following])


def read(corpus: Path, skipped: Counter[str] | None = None) -> list[tuple[str, str, str]]:
    """(source, title, text) of all pieces."""
    found = list(read_corpus(corpus, Counter() if skipped is None else skipped))
    assert not found or found[-1].read <= sum(
        path.stat().st_size for path in index.corpus_files(corpus).values()
    )
    return [(each.source, each.title, each.text) for each in found]


def test_a_folder_is_read_in_order_of_names(tmp_path: Path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.md").write_text("# 二", encoding="utf-8")
    (tmp_path / "a.TXT").write_text("一", encoding="utf-8")
    (tmp_path / ".hidden.txt").write_text("no", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    os.mkfifo(tmp_path / "pipe.txt")
    assert read(tmp_path) == [("a.TXT", "", "一"), ("b/x.md", "", "# 二")]
    assert [piece.read for piece in read_corpus(tmp_path, Counter())] == [3, 8]
    assert read(tmp_path / "a.TXT") == [("a.TXT", "", "一")]
    assert read(tmp_path / "picture.png") == []


def test_a_text_is_read_whole_in_each_encoding_and_others_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(index, "_PIECE", 5)
    text = "水稻纹枯病，3.5 ℃\n" * 4
    for name, encoding in (
        ("1.txt", "utf-8"),
        ("2.txt", "utf-8-sig"),
        ("3.txt", "gb18030"),
        ("4.txt", "ascii"),
    ):
        (tmp_path / name).write_text(text if encoding != "ascii" else "rice", encoding=encoding)
    found = list(read_corpus(tmp_path, Counter()))
    for name in ("1.txt", "2.txt", "3.txt"):
        pieces = [piece for piece in found if piece.source == name]
        assert len(pieces) > 1
        assert all(text[piece.position :].startswith(piece.text) for piece in pieces)
        assert "".join(piece.text for piece in pieces) == text
    assert found[-1].text == "rice"
    (tmp_path / "5.txt").write_bytes("水稻".encode("utf-16"))
    with pytest.raises(CorpusError, match=r"5\.txt is neither UTF-8 nor GB18030 text"):
        read(tmp_path)


def test_a_name_that_is_no_text_still_names_its_file(tmp_path: Path):
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("稻", encoding="utf-8")
    assert read(tmp_path)[0][2] == "稻"


def test_lines_of_json_give_texts_with_their_titles_and_sources(tmp_path: Path):
    rows = [
        {"text": "一", "title": " 水稻 ", "url": "https://example.org/1"}, {"contents": "二", "id": 5},
        {"content": ["三", "四"], "id": True}, {"passage": "五", "title": 7}, {"text": "", "content": "六"},
        {"text": "   "}, {"other": "七"},
    ]  # fmt: skip
    path = tmp_path / "pages.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\n\n".join(json.dumps(row).encode() for row in rows))
    skipped = Counter[str]()
    assert read(path, skipped) == [
        ("https://example.org/1", "水稻", "一"),
        ("pages.jsonl#5", "", "二"),
        ("pages.jsonl#True", "", "三\n四"),
        ("pages.jsonl:7", "7", "五"),
        ("pages.jsonl:9", "", "六"),
    ]
    assert skipped == {"without text": 2}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"text": "a"}\n{"text": \n', "line 2, is not a JSON object"),
        (b"[1]\n", "line 1, is not a JSON object"),
        (b'{"text": "\xff\xff"}', "line 1, is not a JSON object"),
        (b"[" * 200_000, "line 1, is not a JSON object"),
        (b'{"text": "a", "n": ' + b"9" * 5000 + b"}", "line 1, is not a JSON object"),
        (b'{"text": "' + b"a" * (8 << 20) + b'"}', "line 1, is not a JSON object of at most 8 MiB"),
    ],
)
def test_jsonl_that_cannot_be_read(tmp_path: Path, content: bytes, message: str):
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(CorpusError, match=message) as caught:
        read(tmp_path)
    assert caught.value.hint
