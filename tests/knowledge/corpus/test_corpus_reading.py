"""From files to documents."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from agrotools.core import CorpusError
from agrotools.knowledge import corpus as documents
from agrotools.knowledge.corpus import read_corpus


def read(corpus: Path, skipped: Counter[str] | None = None) -> list[tuple[str, str, str]]:
    """(source, title, text) of all pieces."""
    found = list(read_corpus(corpus, Counter() if skipped is None else skipped))
    assert not found or found[-1].read <= sum(path.stat().st_size for path in documents.corpus_files(corpus).values())
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


def test_encodings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(documents, "_PIECE", 5)
    text = "水稻纹枯病，3.5 ℃\n" * 4
    for name, encoding in (("1.txt", "utf-8"), ("2.txt", "utf-8-sig"), ("3.txt", "gb18030"), ("4.txt", "ascii")):
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


def test_jsonl(tmp_path: Path):
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
