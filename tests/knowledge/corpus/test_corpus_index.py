"""Searching an index: what is found, with which scores, in which order."""

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import UsageError
from agrotools.knowledge.corpus import CorpusIndex, build_index
from support.corpora import made_up, write_lines


def plain_terms(text: str) -> list[str]:
    """Words and pairs of Chinese characters, read letter by letter."""
    found: list[str] = []
    for run in re.findall(r"[\u4e00-\u9fff]+|(?:[a-z0-9]|(?<=\d)\.(?=\d))+", text.lower()):
        pairs = [run[at : at + 2] for at in range(len(run) - 1)]
        found += pairs if pairs and "\u4e00" <= run[0] <= "\u9fff" else [run]
    return found


def plain_scores(texts: Sequence[str], query: str, k1: float = 1.2, b: float = 0.75) -> list[float]:
    """BM25 by its formula, one passage after the other."""
    counted = [Counter(plain_terms(text)) for text in texts]
    mean = sum(each.total() for each in counted) / len(counted)
    scores = [0.0] * len(texts)
    for term in plain_terms(query):
        holding = sum(term in each for each in counted)
        rarity = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for number, counts in enumerate(counted):
            norm = k1 * (1 - b + b * counts.total() / mean)
            scores[number] += rarity * counts[term] / (counts[term] + norm)
    return scores


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return made_up(400, 3)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> CorpusIndex:
    folder = tmp_path_factory.mktemp("corpus")
    return build_index(write_lines(folder / "a.jsonl", texts), folder / "index")


@pytest.mark.parametrize("seed", range(8))
def test_ranking_is_that_of_a_plain_bm25(index: CorpusIndex, texts: list[str], seed: int):
    query = "".join(made_up(3, 100 + seed))
    expected = plain_scores(texts, query)
    found = index.search(query, 400)
    assert len(found) == sum(score > 0 for score in expected)
    scores = {passage.text: passage.score for passage in found}
    for text, score in zip(texts, expected, strict=True):
        assert scores.get(text, 0.0) == pytest.approx(score, abs=1e-5)
    assert [passage.score for passage in found] == sorted((passage.score for passage in found), reverse=True)
    for k in (1, 2, 7, 300):
        assert index.search(query, k) == found[:k]


@given(st.lists(st.text("稻麦病 ab,3.", max_size=25), min_size=1, max_size=8), st.text("稻麦病 ab,3.", max_size=12))
def test_any_small_corpus_is_ranked_so(tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str):
    texts = [f"{text.strip()} x" for text in texts]
    folder = tmp_path_factory.mktemp("small")
    index = build_index(write_lines(folder / "a.jsonl", texts), folder / "index")
    expected = sorted((score for score in plain_scores(texts, query) if score > 0), reverse=True)
    assert [passage.score for passage in index.search(query, 10)] == pytest.approx(expected, abs=1e-5)


def test_a_passage_knows_where_it_is_from(tmp_path: Path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    filling = "小麦锈病。" * 100
    (corpus / "rice.md").write_text(f"{filling}\n水稻纹枯病由立枯丝核菌引起。", encoding="utf-8")
    (corpus / "a.jsonl").write_text(
        json.dumps({"text": "常见于高温。", "title": "玉米\n大斑病", "id": 4}) + '\n{"n": 1}\n'
    )
    index = build_index(corpus, tmp_path / "index")
    best = index.search("立枯丝核菌", 1)[0]
    assert (best.source, best.title) == ("rice.md", "")
    assert f"{filling}\n水稻纹枯病由立枯丝核菌引起。"[best.position :] == best.text
    by_title = index.search("玉米大斑病", 1)[0]
    assert (by_title.source, by_title.title, by_title.text) == ("a.jsonl#4", "玉米 大斑病", "常见于高温。")
    assert index.manifest.passed_over == {"without text": 1}
    assert index.identity()["corpus_sha256"] == index.manifest.corpus.sha256


def test_what_is_not_there_is_not_found_and_equal_scores_keep_the_order(index: CorpusIndex, tmp_path: Path):
    assert index.search("qwertz", 5) == []
    assert index.search("", 5) == []
    assert index.search("？！", 5) == []
    assert len(index.search("第", 5_000_000)) <= 400
    with pytest.raises(UsageError, match="k is 0"):
        index.search("稻", 0)
    index = build_index(write_lines(tmp_path / "a.jsonl", ["水稻 x"] * 50), tmp_path / "index")
    assert [passage.source for passage in index.search("水稻", 3)] == ["a.jsonl:1", "a.jsonl:2", "a.jsonl:3"]


def test_hostile_text_reaches_no_terminal(tmp_path: Path):
    rows = [{"text": "水稻\x1b]0;x\x07 \ud800", "title": "\x1b[2J" + "t" * 900, "id": "\x1b[1m"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = build_index(tmp_path / "a.jsonl", tmp_path / "index").search("水稻")[0]
    shown = found.text + found.title + found.source
    assert shown.isprintable()
    assert "水稻" in found.text
    assert len(found.title) <= 200
