"""How an index lies on disk: its manifest, its passages with their texts, and the documents they come from.

``index.json`` names the folder beside it that holds the data, and is written last and at once: a build that was stopped
leaves data that nothing names.
"""

import json
import re
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self

import numpy as np
from pydantic import Field

from agrotools.core.frozen_model import FrozenModel
from agrotools.knowledge.corpus.tokens import TokensName

MANIFEST = "index.json"
DATA = "agrotools-corpus-"
"""How the names of folders with data begin. Such folders are removed when they are of no use."""
FORMAT = 1
ROW_TYPE = np.dtype([("end", "<u8"), ("position", "<u8"), ("document", "<u4"), ("length", "<u4")])
"""Of a passage: where its text ends, where it begins in its document, the document, and how many terms it has."""
END_TYPE = np.dtype("<u8")
POSTINGS = "postings"
TEXTS, ROWS, DOCUMENTS, DOCUMENT_ENDS = "texts.utf8", "passages.rows", "documents.jsonl", "documents.ends"
_NOT_SHOWN = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_LONGEST_TITLE, _LONGEST_SOURCE = 200, 500


_Count = Annotated[int, Field(ge=1)]


class CorpusState(FrozenModel):
    """The corpus that an index was built from."""

    path: str
    files: int
    bytes: int
    sha256: str
    """of names and contents of all files"""
    stamp: str
    """of names, sizes and times of change: as long as it is the same, nothing has to be hashed"""


class IndexSettings(FrozenModel):
    """What decides how the same corpus is indexed."""

    tokens: TokensName
    tokens_version: str
    units: int
    text_field: str | None = None
    title_field: str | None = None


class IndexManifest(FrozenModel):
    """``index.json``. ``sha256`` and ``settings`` say what a run has searched."""

    format: int
    corpus: CorpusState
    settings: IndexSettings
    documents: _Count
    passages: _Count
    terms: _Count
    postings: _Count
    occurrences: _Count
    """of terms in passages, repeated ones included: the mean length of a passage is ``occurrences / passages``"""
    text_bytes: _Count
    document_bytes: _Count
    passed_over: dict[str, int]
    data: Annotated[str, Field(pattern=rf"^{DATA}[0-9a-f]{{8}}$")]
    """name of the folder with the data"""


def one_line(text: str, longest: int) -> str:
    return _NOT_SHOWN.sub(" ", text).strip()[:longest]


class PassageWriter:
    """Writes texts, rows of passages, and documents into a folder.

    Raises (all methods):
        OSError: it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        with ExitStack() as opened:
            self._texts, self._rows, self._documents, self._ends = (
                opened.enter_context((folder / name).open("wb")) for name in (TEXTS, ROWS, DOCUMENTS, DOCUMENT_ENDS)
            )
            self._files = opened.pop_all()
        self.documents = 0
        self.passages = 0
        self.occurrences = 0
        self.text_bytes = 0
        self.document_bytes = 0

    def add_document(self, source: str, title: str) -> None:
        row = {"source": one_line(source, _LONGEST_SOURCE), "title": one_line(title, _LONGEST_TITLE)}
        self.document_bytes += self._documents.write(
            json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        )
        self._ends.write(np.array(self.document_bytes, END_TYPE).tobytes())
        self.documents += 1

    def add_passages(self, passages: list[tuple[int, int, str]], lengths: np.ndarray) -> None:
        """Passages as ``(document, position, text)``, and how many terms each has."""
        texts = [text.encode("utf-8", "replace") for _, _, text in passages]
        rows = np.empty(len(passages), ROW_TYPE)
        rows["end"] = np.cumsum([len(text) for text in texts]) + self.text_bytes
        rows["document"], rows["position"] = zip(*((document, at) for document, at, _ in passages), strict=True)
        rows["length"] = lengths
        self.text_bytes += self._texts.write(b"".join(texts))
        self._rows.write(rows.tobytes())
        self.passages += len(passages)
        self.occurrences += int(lengths.sum())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: TracebackType | None) -> None:
        self._files.close()
