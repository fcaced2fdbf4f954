"""From files to documents."""

import bz2
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from agrotools.core import CorpusError
from agrotools.knowledge.corpus import documents
from agrotools.knowledge.corpus.documents import read_corpus

DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="zh">
  <siteinfo><sitename>Wikipedia</sitename><namespaces><namespace key="10">Template</namespace></namespaces></siteinfo>
  <page><title>水稻</title><ns>0</ns><id>7</id>
    <revision><id>70</id><contributor><username>A</username><id>9</id></contributor>
      <model>wikitext</model><format>text/x-wiki</format>
      <text bytes="9" xml:space="preserve">'''水稻'''是[[禾本科|一种禾本科]]植物。&lt;ref&gt;x&lt;/ref&gt;</text>
    </revision></page>
  <page><title>稻米</title><ns>0</ns><id>8</id><redirect title="水稻" />
    <revision><id>71</id><text>#REDIRECT [[水稻]]</text></revision></page>
  <page><title>大米</title><ns>0</ns><id>9</id><redirect title="水稻" />
    <revision><text>#重定向 [[水稻]]</text></revision></page>
  <page><title>Template:水稻</title><ns>10</ns><id>10</id><revision><text>模板</text></revision></page>
  <page><title>脚本</title><ns>0</ns><id>11</id><revision><model>javascript</model><text>x</text></revision></page>
  <page><title>空</title><ns>0</ns><id>12</id><revision><text>{{stub}}</text></revision></page>
  <page><title>小麦</title><ns>0</ns><id>13</id><revision><text>小麦锈病。</text></revision></page>
</mediawiki>
"""


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


@pytest.mark.parametrize("name", ["dump.xml", "dump.xml.bz2"])
def test_a_dump_gives_its_articles(tmp_path: Path, name: str):
    content = DUMP.encode()
    (tmp_path / name).write_bytes(
        bz2.compress(content[:900]) + bz2.compress(content[900:]) if "bz2" in name else content
    )
    skipped = Counter[str]()
    assert read(tmp_path, skipped) == [
        (f"{name}#7", "水稻", "水稻是一种禾本科植物。"),
        (f"{name}#13", "小麦", "小麦锈病。"),
    ]
    assert skipped == {"redirects and pages that are not articles": 4, "without text": 1}


BOMB = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {after} "{f"&{before};" * 10}">' for before, after in zip("abcdefghijk", "bcdefghijkl", strict=True)
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (DUMP[:900], "is cut off"),
        ("", "is cut off"),
        (DUMP.replace("</title>", "</titel>", 1), "mismatched tag"),
        (f"{BOMB}]><mediawiki><page><title>&l;</title></page></mediawiki>", "amplification"),
        ("<rss><item/></rss>", "not a dump of a wiki: it has <rss>"),
    ],
)
def test_dumps_that_are_refused(tmp_path: Path, content: str, message: str):
    (tmp_path / "a.xml").write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError, match=message) as caught:
        read(tmp_path)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[: len(content) // 2], "is cut off"),
        (lambda content: b"BZh9" + bytes(200), "is cut off, damaged"),
        (lambda content: content[:40] + bytes(20) + content[60:], "is cut off, damaged"),
    ],
)
def test_damaged_bz2(tmp_path: Path, damage, message: str):
    (tmp_path / "a.xml.bz2").write_bytes(damage(bz2.compress(DUMP.encode())))
    with pytest.raises(CorpusError, match=message):
        read(tmp_path)
