"""Wikipedia dumps (``pages-articles``, plain or bz2): articles as plain text, one at a time.

The dump is parsed as a stream by expat. ``iterparse`` of the standard library is not used for two reasons: it cannot
refuse entity declarations, and it builds a page of any length in memory.

Wiki markup is converted to plain text that is good enough for search. Templates, tables, files, categories, references,
formulas and galleries are removed; links are replaced by their wording, and conversions between Chinese variants
(``-{zh-hans:...; zh-hant:...}-``) by the simplified wording. Every step is linear in the length of the page, whatever
the page contains.
"""

import bz2
import html
import re
from collections.abc import Iterator
from typing import BinaryIO
from xml.parsers import expat

from agrotools.core import CorpusError
from agrotools.knowledge.corpus.documents import LONGEST, CorpusFile, Document, ReadingCounts

_BLOCK = 1 << 16
_DEEPEST = 20
_REDIRECT = re.compile(r"\s*#\s*(?:redirect|重定向)", re.IGNORECASE)
_FIELDS = frozenset(
    {
        ("mediawiki", "page", "title"),
        ("mediawiki", "page", "ns"),
        ("mediawiki", "page", "id"),
        ("mediawiki", "page", "revision", "model"),
        ("mediawiki", "page", "revision", "text"),
    }
)
_DROPPED_TAGS = (
    "ref|math|chem|ce|gallery|timeline|syntaxhighlight|source|score|imagemap|templatedata|graph|mapframe|maplink|hiero"
)
"""Tags that are removed together with their content."""
_BREAKING_TAGS = "br|p|div|li|ul|ol|dl|dt|dd|tr|td|th|table|h[1-6]|hr|blockquote|center|poem"
_OTHER_TAGS = (
    "references|nowiki|noinclude|includeonly|onlyinclude|span|small|big|sub|sup|b|i|u|s|em|strong|del|ins|tt|code|pre|"
    "font|abbr|cite|var|kbd|samp|q|bdi|bdo|ruby|rb|rt|rp|rtc|wbr|section|indicator|data|time|dfn|mark|caption|tbody|"
    "thead|tfoot|col|colgroup|strike|langconvert|templatestyles|inputbox|categorytree|ol|phonos"
)
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>(?P<dropped>{_DROPPED_TAGS})|(?P<breaking>{_BREAKING_TAGS})|{_OTHER_TAGS})"
    r"(?=[\s/>])[^<>]*>",
    re.IGNORECASE,
)
_MARK = re.compile(r"\{\{|\}\}|\[\[|\]\]|-\{(?!\{(?!\{))|\}-|^[ \t:]*\{\||^[ \t]*\|\}(?!\})", re.MULTILINE)
_CLOSES = {"}}": "{{", "]]": "[[", "}-": "-{", "|}": "{|"}
_DEEPEST_MARKS = 40
"""Maximum nesting of links and conversions; deeper ones are treated as text, to keep the time linear."""
_NAMESPACES = frozenset(
    (
        "file image media category template portal wikipedia wp help draft module special user mediawiki talk "
        "文件 檔案 档案 图像 圖像 图片 圖片 媒体 媒體 分类 分類 模板 维基百科 維基百科 主题 主題 帮助 "
        "幫助 草稿 用户 使用者 特殊 模块 模組"
    ).split()
)
_LANGUAGE = re.compile(r"(?:[a-z]{2,3}|simple|zh-[a-z-]+|[a-z]{2,3}-[a-z]+):")
_EXTERNAL = re.compile(r"\[(?:(?:https?|ftp):)?//[^\s\[\]]++[ \t]*+([^\[\]\n]*)\]")
_SWITCH = re.compile(r"__[^\W_]{1,30}__")
_QUOTES = re.compile(r"'{2,}")
_LINE_START = re.compile(r"^[ \t]*[*#:;]+[ \t]*|^-{4,}[ \t]*", re.MULTILINE)
_HEADING = re.compile(r"^[ \t]*={1,6}([^=\n]*)={1,6}[ \t]*$", re.MULTILINE)
_EMPTY_BRACKETS = re.compile(r"[（(][ \t,，;；、:：]*[)）]")
_EMPTY_PLACES = re.compile(r"([（(])[ \t]*[,，;；、][ \t,，;；、]*")
_SPACE = re.compile(r"[ \t\u00a0\u3000]+")


def read_dump(file: CorpusFile, counts: ReadingCounts) -> Iterator[Document]:
    """Yield the articles: wikitext pages of namespace 0 that are not redirects.

    Raises:
        CorpusError: the file cannot be read, is truncated, is not a dump, or declares a document type (as entity bombs
            do).
    """
    pages = _Pages(file)
    before = counts.bytes_read
    try:
        with file.path.open("rb") as raw:
            opened: BinaryIO = bz2.BZ2File(raw) if file.name.lower().endswith(".bz2") else raw  # pyright: ignore
            while block := opened.read(_BLOCK):
                counts.bytes_read = before + raw.tell()
                pages.feed(block)
                yield from _articles(pages, counts)
            pages.feed(b"", ended=True)
    except EOFError as error:
        raise CorpusError(f"{file.path} is cut off", hint="download it again and compare its checksum") from error
    except expat.ExpatError as error:
        cut_off = error.code in _CUT_OFF
        fault = "is cut off" if cut_off else f"is not well-formed XML: {error}"
        raise CorpusError(f"{file.path} {fault}", hint="download it again and compare its checksum") from error
    except OSError as error:
        fault = error.strerror or "its compressed content is damaged"
        raise CorpusError(
            f"{file.path} cannot be read: {fault}", hint="download it again, or make it readable"
        ) from error


_CUT_OFF = frozenset(
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
    )
)


def _articles(pages: "_Pages", counts: ReadingCounts) -> Iterator[Document]:
    for page in pages.take_finished():
        text = page.get("text", "")
        if page.get("ns", "0").strip() != "0" or page.get("model", "wikitext").strip() != "wikitext":
            counts.other_pages += 1
        elif "redirect" in page or _REDIRECT.match(text):
            counts.redirects += 1
        elif "too long" in page:
            counts.too_long += 1
        elif plain := plain_text(text):
            yield Document(f"{pages.name}#{page.get('id', '').strip()}", page.get("title", "").strip(), (plain,))
        else:
            counts.without_text += 1


class _Pages:
    """Pages of a dump as dictionaries of their relevant fields."""

    def __init__(self, file: CorpusFile) -> None:
        self.name = file.name
        self._file = file
        self._path: list[str] = []
        self._page: dict[str, str] = {}
        self._parts: list[str] | None = None
        self._length = 0
        self._done: list[dict[str, str]] = []
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.buffer_size = _BLOCK
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def feed(self, block: bytes, *, ended: bool = False) -> None:
        self._parser.Parse(block, ended)

    def take_finished(self) -> list[dict[str, str]]:
        """Return the pages that have ended since the last call."""
        finished, self._done = self._done, []
        return finished

    def _doctype(self, *_: object) -> None:
        why = f"{self._file.path} declares a document type, which no dump does and entity bombs need"
        raise CorpusError(why, hint="give the file pages-articles.xml as dumps.wikimedia.org has it")

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._path.append(name)
        if self._path[0] != "mediawiki" or len(self._path) > _DEEPEST:
            why = f"{self._file.path} is not a dump of a wiki: it has <{name}> where <mediawiki> and pages belong"
            raise CorpusError(why, hint="give the file pages-articles.xml, or texts as .txt, .md or .jsonl")
        if self._path == ["mediawiki", "page", "redirect"]:
            self._page["redirect"] = ""
        if tuple(self._path) in _FIELDS:
            self._parts, self._length = [], 0

    def _characters(self, text: str) -> None:
        if self._parts is None:
            return
        self._length += len(text)
        if self._length <= LONGEST:
            self._parts.append(text)
        else:
            self._page["too long"] = ""
            self._parts.clear()

    def _end(self, name: str) -> None:
        path = tuple(self._path)
        self._path.pop()
        if self._parts is not None and path in _FIELDS:
            self._page[name] = "".join(self._parts)
            self._parts = None
        elif path == ("mediawiki", "page"):
            self._done.append(self._page)
            self._page = {}


def plain_text(wikitext: str) -> str:
    """Convert wiki markup to plain text, one paragraph per line."""
    text = _without_marks(_without_tags(_without_comments(wikitext)))
    text = _EXTERNAL.sub(r"\1", text)
    text = _LINE_START.sub("", _SWITCH.sub("", text))
    text = _QUOTES.sub("", _HEADING.sub(r"\1", text))
    text = _EMPTY_PLACES.sub(r"\1", _EMPTY_BRACKETS.sub("", html.unescape(text)))
    lines = (line.strip() for line in _SPACE.sub(" ", text).split("\n"))
    return "\n".join(line for line in lines if line)


def _without_comments(text: str) -> str:
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0:
        parts.append(text[at:start])
        end = text.find("-->", start + 4)
        if end < 0:
            return "".join(parts)
        at = end + 3
    return "".join((*parts, text[at:]))


def _without_tags(text: str) -> str:
    parts: list[str] = []
    at = 0
    unclosed: set[str] = set()
    for tag in _TAG.finditer(text):
        if tag.start() < at:
            continue
        parts.append(text[at : tag.start()])
        at = tag.end()
        if tag["breaking"]:
            parts.append("\n")
        name = tag["name"].lower()
        if tag["dropped"] and not tag["close"] and not tag[0].endswith("/>") and name not in unclosed:
            end = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, at)
            if end is None:
                unclosed.add(name)  # later tags of this name are not closed either
            else:
                at = end.end()
    return "".join((*parts, text[at:]))


def _without_marks(text: str) -> str:
    """Remove templates and tables, and replace links and conversions by their wording; drop unpaired marks."""
    out: list[str] = []
    opened: list[tuple[str, int]] = []  # the mark, and the index in ``out`` where its content begins
    depth = dict.fromkeys(_CLOSES.values(), 0)
    at = 0
    for match in _MARK.finditer(text):
        mark = match[0].strip(" \t:")
        if (rest := match.start()) > at:
            out.append(text[at:rest])
        at = match.end()
        if mark in depth:
            if mark in ("{{", "{|") or depth["[["] + depth["-{"] < _DEEPEST_MARKS:
                opened.append((mark, len(out)))
                depth[mark] += 1
            continue
        partner = _CLOSES[mark]
        if not depth[partner]:
            continue
        while True:
            last, start = opened.pop()
            depth[last] -= 1
            if last == partner:
                break
        inside = "" if partner in ("{{", "{|") else "".join(out[start:])
        del out[start:]
        out.append(_link(inside) if partner == "[[" else _conversion(inside) if partner == "-{" else "")
    out.append(text[at:])
    return "".join(out)


def _link(inside: str) -> str:
    target, _, wording = inside.partition("|")
    target = target.strip()
    namespace, colon, _ = target.partition(":")
    if colon and (namespace.strip().lower() in _NAMESPACES or _LANGUAGE.match(target)):
        return ""
    return wording.strip() if wording.strip(" '\t\n") else target.lstrip(":").partition("#")[0]


def _conversion(inside: str) -> str:
    """Return the wording of a conversion in simplified characters. (mediawiki.org/wiki/Writing_systems/Syntax)"""
    flags, bar, rules = inside.rpartition("|")
    hidden = bar and not {"H", "T", "D", "N", "-"}.isdisjoint(flag.strip() for flag in flags.split(";"))
    if hidden or "=>" in rules:
        return ""
    variants: dict[str, str] = {}
    for rule in rules.split(";"):
        variant, colon, wording = rule.partition(":")
        if colon and (key := variant.strip().lower()).startswith("zh"):
            variants[key] = wording.strip()
    for key in ("zh-hans", "zh-cn", "zh-sg", "zh-my", "zh", *variants):
        if key in variants:
            return variants[key]
    return rules
