"""A dump of Wikipedia (``pages-articles``, plain or bz2): its articles as plain text, one at a time.

The dump is parsed by expat as it streams. iterparse of the standard library would do but for two things: it cannot
refuse entity declarations, and it builds a page of any length before one sees it.
"""

import bz2
import re
from collections.abc import Iterator
from typing import BinaryIO
from xml.parsers import expat

from agrotools.core import CorpusError
from agrotools.knowledge.corpus.documents import LONGEST, Document, Tally
from agrotools.knowledge.corpus.files import CorpusFile
from agrotools.knowledge.corpus.markup import plain_text

_BLOCK = 1 << 16
_DEEPEST = 20
_REDIRECT = re.compile(r"\s*#\s*(?:redirect|重定向)", re.IGNORECASE)
_KEPT = frozenset(
    {
        ("mediawiki", "page", "title"),
        ("mediawiki", "page", "ns"),
        ("mediawiki", "page", "id"),
        ("mediawiki", "page", "revision", "model"),
        ("mediawiki", "page", "revision", "text"),
    }
)


def read_dump(file: CorpusFile, tally: Tally) -> Iterator[Document]:
    """The articles: pages of namespace 0 that are wikitext and redirect nowhere.

    Raises:
        CorpusError: it cannot be read, is cut off, is no dump, or declares a document type, as entity bombs do.
    """
    pages = _Pages(file)
    before = tally.bytes_read
    try:
        with file.path.open("rb") as raw:
            opened: BinaryIO = bz2.BZ2File(raw) if file.name.lower().endswith(".bz2") else raw  # pyright: ignore
            while block := opened.read(_BLOCK):
                tally.bytes_read = before + raw.tell()
                pages.feed(block)
                yield from _articles(pages, tally)
            pages.feed(b"", ended=True)
    except EOFError as error:
        raise CorpusError(f"{file.path} is cut off", hint="fetch it again, and compare its checksum") from error
    except expat.ExpatError as error:
        cut_off = error.code in _CUT_OFF
        told = "is cut off" if cut_off else f"is no well-formed XML: {error}"
        raise CorpusError(f"{file.path} {told}", hint="fetch it again, and compare its checksum") from error
    except OSError as error:
        told = error.strerror or "its compressed content is damaged"
        raise CorpusError(f"{file.path} cannot be read: {told}", hint="fetch it again, or make it readable") from error


_CUT_OFF = frozenset(
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
    )
)


def _articles(pages: "_Pages", tally: Tally) -> Iterator[Document]:
    for page in pages.taken():
        text = page.get("text", "")
        if page.get("ns", "0").strip() != "0" or page.get("model", "wikitext").strip() != "wikitext":
            tally.other_pages += 1
        elif "redirect" in page or _REDIRECT.match(text):
            tally.redirects += 1
        elif "too long" in page:
            tally.too_long += 1
        elif plain := plain_text(text):
            yield Document(f"{pages.name}#{page.get('id', '').strip()}", page.get("title", "").strip(), (plain,))
        else:
            tally.without_text += 1


class _Pages:
    """The pages of a dump as dictionaries of what is kept of them."""

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

    def taken(self) -> list[dict[str, str]]:
        """The pages that ended since this was last called."""
        done, self._done = self._done, []
        return done

    def _doctype(self, *_: object) -> None:
        raise CorpusError(
            f"{self._file.path} declares a document type, which no dump does and entity bombs need",
            hint="give the file pages-articles.xml as dumps.wikimedia.org has it",
        )

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._path.append(name)
        if self._path[0] != "mediawiki" or len(self._path) > _DEEPEST:
            raise CorpusError(
                f"{self._file.path} is no dump of a wiki: it has <{name}> where <mediawiki> and pages belong",
                hint="give the file pages-articles.xml, or texts as .txt, .md or .jsonl",
            )
        if self._path == ["mediawiki", "page", "redirect"]:
            self._page["redirect"] = ""
        if tuple(self._path) in _KEPT:
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
        if self._parts is not None and path in _KEPT:
            self._page[name] = "".join(self._parts)
            self._parts = None
        elif path == ("mediawiki", "page"):
            self._done.append(self._page)
            self._page = {}
