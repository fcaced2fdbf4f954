"""Files of a corpus as pieces of plain text, each small enough to be held in memory."""

import bz2
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from agrotools.core import CorpusError

READ = ".txt, .md, .jsonl (with text in text, contents, content or passage), .xml and .xml.bz2"
_NAME = re.compile(r"(?:[^./][^/]*/)*[^./][^/]*\.(?:txt|md|jsonl|xml|xml\.bz2)", re.IGNORECASE)
_PIECE, _LONGEST_LINE, _LONGEST_NAME = 1 << 20, 8 << 20, 200
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that could control a terminal or cannot be encoded; each is replaced by a space."""
_DEEPEST = 20
"""Maximum nesting of templates, tables and links that is resolved."""
_DROPPED = "ref|math|chem|ce|gallery|timeline|syntaxhighlight|source|score|imagemap|graph|mapframe"
"""Tags that are removed together with their content."""
_TAGS = (
    (rf"(?is)<!--.*?(?:-->|\Z)|<({_DROPPED})(?=[\s/>])[^<>]*?(?:/>|>.{{0,5000}}?</\1\s*>)", ""),
    (r"(?i)</?(?:br|p|div|li|ul|ol|dl|dt|dd|tr|td|th|table|h[1-6]|hr|blockquote)(?:[\s/][^<>]*)?>", "\n"),
    (r"(?i)</?[a-z]\w*(?:[\s/][^<>]*)?>", ""),
)
_INNERMOST = re.compile(
    r"(?ms)\{\{[^{}]*+\}\}|^[ \t:]*\{\|(?:(?!\{\||^[ \t]*\|\}(?!\})).)*+\|\}|-\{(?:[HTDN-]\||[^{}]*=>)[^{}]*+\}-"
    r"|\[\[(?P<link>[^\[\]]*+)\]\]|-\{(?P<variants>[^{}]*+)\}-"
)
_REMOVED_LINK = re.compile(
    r"(?i)\s*(?:file|image|media|category|template|portal|文件|檔案|档案|图像|圖像|图片|圖片|媒体|媒體|分类|分類"
    r"|[a-z]{2,3}(?:-[a-z-]+)?)\s*:"
)
"""Files, categories and links to other languages."""
_MARKS = (
    (r"(?m)\{\{|\}\}|\[\[|\]\]|-\{|\}-|^[ \t:]*\{\||^[ \t]*\|\}", ""),
    (r"\[(?:(?:https?|ftp):)?//[^\s\[\]]++[ \t]*+([^\[\]\n]*)\]", r"\1"),
    (r"(?m)__[^\W_]{1,30}__|'{2,}|^[ \t]*(?:[*#:;]+|-{4,})[ \t]*", ""),
    (r"(?m)^[ \t]*={1,6}([^=\n]*)={1,6}[ \t]*$", r"\1"),
    (r"[（(][ \t,，;；、:：]*[)）]|(?<=[（(])[ \t,，;；、]+", ""),
)


class Piece(NamedTuple):
    """Text of a document, or the part of a long text file at ``position``; ``read``: bytes read of the file so far."""

    source: str
    title: str
    position: int
    text: str
    read: int


def corpus_files(corpus: Path) -> dict[str, Path]:
    """Return the files of a corpus by name: a file, or all files of known formats below a folder, in order."""
    paths, root = (sorted(corpus.rglob("*")), corpus) if corpus.is_dir() else ([corpus], corpus.parent)
    names = {path.relative_to(root).as_posix(): path for path in paths}
    return {name: path for name, path in names.items() if _NAME.fullmatch(name) and path.is_file()}


def stamp(corpus: Path) -> str:
    """Return a hash of the names, sizes and modification times of the files of a corpus."""
    states = [(name, path.stat()) for name, path in corpus_files(corpus).items()]
    return hashlib.sha256(repr([(name, each.st_size, each.st_mtime_ns) for name, each in states]).encode()).hexdigest()


def read_corpus(corpus: Path, skipped: Counter[str]) -> Iterator[Piece]:
    """Yield the text of all documents of a corpus, and count those that are ``skipped``, by the reason."""
    done = 0
    readers = {".txt": _read_text, ".md": _read_text, ".jsonl": _read_lines}
    for name, path in corpus_files(corpus).items():
        for piece in readers.get(path.suffix.lower(), _read_articles)(path, name, skipped):
            source, title = (" ".join(_CONTROLS.sub(" ", each).split())[:_LONGEST_NAME] for each in piece[:2])
            yield Piece(source, title, piece.position, _CONTROLS.sub(" ", piece.text), done + piece.read)
        done += path.stat().st_size


def _read_text(path: Path, name: str, _: Counter[str]) -> Iterator[Piece]:
    for encoding in ("utf-8-sig", "gb18030"):
        position = 0
        try:
            with path.open(encoding=encoding) as file:
                while text := file.read(_PIECE) + file.readline(_PIECE):
                    yield Piece(name, "", position, text, file.buffer.tell())  # pyright: ignore
                    position += len(text)
            return
        except UnicodeDecodeError:
            if position:
                break
    raise CorpusError(f"{path} is neither UTF-8 nor GB18030 text", hint="save it as UTF-8")


def _read_lines(path: Path, name: str, skipped: Counter[str]) -> Iterator[Piece]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
            try:
                row: dict[str, Any] = dict(json.loads(line)) if line.strip() else {"text": ""}
            except (ValueError, TypeError, RecursionError) as error:
                fault = f"{path}, line {number}, is not a JSON object of at most {_LONGEST_LINE >> 20} MiB"
                raise CorpusError(fault, hint="fix or remove this line") from error
            text = row.get("text") or row.get("contents") or row.get("content") or row.get("passage") or ""
            text = "\n".join(map(str, text)) if isinstance(text, list) else str(text)  # pyright: ignore
            place = str(row.get("url") or row.get("id") or "")
            source = place if "://" in place else f"{name}#{place}" if place else f"{name}:{number}"
            if text.strip():
                yield Piece(source, str(row.get("title") or ""), 0, text, file.tell())
            elif line.strip():
                skipped["without text"] += 1


def _read_articles(path: Path, name: str, skipped: Counter[str]) -> Iterator[Piece]:
    """Yield the wikitext pages of namespace 0 of a dump that are not redirects. Expat refuses entity bombs."""
    root = None
    try:
        with path.open("rb") as raw, bz2.open(raw) if path.suffix.lower() == ".bz2" else raw as file:
            for event, page in ElementTree.iterparse(file, ("start", "end")):
                root = page if root is None else root
                if not root.tag.endswith("mediawiki"):
                    raise ElementTree.ParseError(f"it has <{root.tag}> in place of <mediawiki>")
                if event == "start" or not page.tag.endswith("page"):
                    continue
                number, title, kind = (page.findtext(f"{{*}}{field}", "") for field in ("id", "title", "ns"))
                is_text = page.findtext("{*}revision/{*}model", "wikitext") == "wikitext"
                if kind != "0" or not is_text or page.find("{*}redirect") is not None:
                    skipped["redirects and pages that are not articles"] += 1
                elif text := plain_text(page.findtext("{*}revision/{*}text", "")):
                    yield Piece(f"{name}#{number}", title, 0, text, raw.tell())
                else:
                    skipped["without text"] += 1
                root.clear()
    except (ElementTree.ParseError, EOFError, OSError) as error:
        hint = "give pages-articles.xml of a wiki; download it again and compare its checksum"
        raise CorpusError(f"{path} is cut off, damaged or not a dump of a wiki: {error}", hint=hint) from error


def plain_text(text: str) -> str:
    """Convert wiki markup to plain text, one paragraph per line."""
    for pattern, replacement in _TAGS:
        text = re.sub(pattern, replacement, text)
    for _ in range(_DEEPEST):
        text, count = _INNERMOST.subn(_wording, text)
        if not count:
            break
    for pattern, replacement in _MARKS:
        text = re.sub(pattern, replacement, text)
    lines = (" ".join(line.split()) for line in html.unescape(text).split("\n"))
    return "\n".join(filter(None, lines))


def _wording(match: re.Match[str]) -> str:
    """Return what a reader sees of a link or of variants in Chinese; nothing for a template or a table."""
    if variants := match["variants"]:
        simplified = re.search(r"zh-(?:hans|cn|sg)\s*:\s*([^;]*)", variants)
        return simplified[1] if simplified else variants.rpartition("|")[2].rpartition(":")[2]
    if not match["link"] or _REMOVED_LINK.match(match["link"]):
        return ""
    target, _, wording = match["link"].partition("|")
    return wording.strip() if wording.strip(" '\t\n") else target.strip().lstrip(":").partition("#")[0]
