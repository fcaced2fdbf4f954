"""Building of an index of a corpus of any size in limited memory: read, cut, spread, sort, then write the manifest.

Nothing of a stopped build is used again; the next one begins anew and removes it.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from agrotools.core import CorpusError, UsageError
from agrotools.core.files import sync, write_whole
from agrotools.knowledge.corpus.documents import (
    MEGABYTE,
    READ,
    CorpusStamp,
    Document,
    Progress,
    ReadingCounts,
    content_hash,
    read_corpus,
    stamp,
)
from agrotools.knowledge.corpus.index import (
    DATA,
    FORMAT,
    MANIFEST,
    CorpusIndex,
    CorpusState,
    IndexManifest,
    IndexSettings,
    read_manifest,
)
from agrotools.knowledge.corpus.terms import UNITS, TermCutter, TokensName, split
from agrotools.knowledge.corpus.writing import MOST_PASSAGES, SORTING_BYTES, PassageWriter, PostingsWriter, one_line

LEAST_MEMORY_MB = 128
_LOCK = ".lock"
_PROCESS_BYTES = 136 * MEGABYTE
"""Memory that the interpreter, the libraries and a batch of text take."""
_LEAST_ROOM = 8 * MEGABYTE
_BYTES_PER_POSTING = 3.5
_BZ2_RATIO = 5
_BATCH_CHARACTERS = 1 << 17
_BATCH_PASSAGES = 4096


def build_index(
    corpus: Path,
    out: Path,
    *,
    tokens: TokensName = "bigrams",
    memory_mb: int = 300,
    text_field: str | None = None,
    title_field: str | None = None,
    replace: bool = False,
    progress: Progress = lambda *_: None,
) -> CorpusIndex:
    """Build the index of a corpus in the folder ``out``, or open it where it is there already.

    Args:
        corpus: a file or a folder: .txt, .md, .jsonl, .xml and .xml.bz2 (dumps of Wikipedia).
        out: the folder of the index, outside the corpus.
        tokens: ``bigrams``, or ``jieba`` (extra ``zh``).
        memory_mb: memory of a process that does nothing else, about. On disk the build takes up to four times the size
            of the text, and leaves about two and a half times.
        text_field, title_field: fields of JSONL, where they are not the usual ones.
        replace: build anew where ``out`` holds an index of something else.
        progress: called with the name of the stage, the amount done, and the total.

    Raises:
        UsageError: the corpus does not exist or holds no text, ``out`` holds something else, or an argument is out of
            range.
        CorpusError: the corpus cannot be read as what its name says, or changed meanwhile; the index cannot be written.
    """
    corpus, out = corpus.expanduser().absolute(), out.expanduser().absolute()
    if memory_mb < LEAST_MEMORY_MB:
        raise UsageError(f"{memory_mb} MB of memory are too few", hint=f"give {LEAST_MEMORY_MB} or more")
    cutter = TermCutter(tokens)
    settings = IndexSettings(
        tokens=tokens, tokens_version=cutter.version, units=UNITS, text_field=text_field, title_field=title_field
    )
    before = stamp(corpus)
    if not before.files:
        raise UsageError(f"{corpus} holds no text files", hint=f"give {READ}")
    try:
        _check_places(corpus, out)
        with _locked(out):
            state = _state(corpus, before, out, progress)
            if _is_built(out, state, settings, replace=replace):
                return CorpusIndex.open(out)
            _clear(out, keep=_named_data(out))
            _build(corpus, out, state, settings, cutter, memory_mb * MEGABYTE, progress)
    except OSError as error:
        raise CorpusError(
            f"the index cannot be written to {out}: {error.strerror or error}",
            hint="check that it is a folder you may write to, on a disk with four times the space of the text",
        ) from error
    return CorpusIndex.open(out)


def _check_places(corpus: Path, out: Path) -> None:
    real, target = Path(os.path.realpath(corpus)), Path(os.path.realpath(out))
    if real == target or target in real.parents:
        raise UsageError(f"the corpus {corpus} is inside the folder of the index, {out}", hint="choose another folder")
    if real in target.parents:
        raise UsageError(f"the index {out} would be inside the corpus {corpus}", hint="choose a folder beside it")
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file", hint="name a folder for the index")
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    ours = {name for name in names if name.startswith(DATA)}
    if not ours or MANIFEST not in names:
        others = sorted(name for name in names - ours if name != _LOCK and not name.startswith(f".{MANIFEST}."))
        if others:
            raise UsageError(f"{out} holds other things, such as {others[0]}", hint="choose a new or empty folder")


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """One build at a time. The lock ends with the process, however that ends."""
    import fcntl

    out.mkdir(parents=True, exist_ok=True)
    lock = os.open(out / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"another process is building {out}", hint="wait for it, or choose another folder"
            ) from error
        yield
    finally:
        os.close(lock)


def _state(corpus: Path, current: CorpusStamp, out: Path, progress: Progress) -> CorpusState:
    """The state of the corpus. It is hashed, unless an index there knows it with the same times and sizes."""
    try:
        known = read_manifest(out).corpus
    except (UsageError, CorpusError):
        known = None
    if known is not None and (known.path, known.stamp) == (str(corpus), current.sha256):
        return known
    sha256 = content_hash(corpus, current.size, progress)
    return CorpusState(path=str(corpus), files=current.files, bytes=current.size, sha256=sha256, stamp=current.sha256)


def _is_built(out: Path, state: CorpusState, settings: IndexSettings, *, replace: bool) -> bool:
    if not (out / MANIFEST).exists():
        return False
    try:
        known = read_manifest(out)
    except CorpusError:
        if replace:
            return False
        raise
    if known.corpus.sha256 == state.sha256 and known.settings == settings:
        try:
            CorpusIndex.open(out, check=False)
        except CorpusError:  # its data is damaged and has to be built again
            return False
        if known.corpus != state:  # the same content elsewhere, or touched: remember that
            _write_manifest(out, known.model_copy(update={"corpus": state}))
        return True
    if replace:
        return False
    same = known.corpus.sha256 == state.sha256
    difference = "other settings" if same else "another corpus, or of this one before it changed"
    raise UsageError(
        f"{out} holds an index of {difference}", hint="give --replace to build it again, or choose another folder"
    )


def _named_data(out: Path) -> str | None:
    try:
        return read_manifest(out).data
    except (UsageError, CorpusError):
        return None


def _clear(out: Path, *, keep: str | None) -> None:
    """Remove the remains of stopped builds."""
    for path in out.glob(f"{DATA}*"):
        if path.name != keep:
            shutil.rmtree(path)
    for path in out.glob(f".{MANIFEST}.*"):
        path.unlink()


def _build(
    corpus: Path,
    out: Path,
    state: CorpusState,
    settings: IndexSettings,
    cutter: TermCutter,
    memory: int,
    progress: Progress,
) -> None:
    folder = out / f"{DATA}{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        room = max(_LEAST_ROOM, memory - _PROCESS_BYTES)
        counts = ReadingCounts()
        postings = PostingsWriter(folder, room // 8, _partitions(corpus, state, room))
        with PassageWriter(folder) as passages:
            documents = read_corpus(corpus, counts, text_field=settings.text_field, title_field=settings.title_field)
            for batch in _batches(documents, passages):
                _index(batch, cutter, passages, postings)
                position = min(counts.bytes_read, state.bytes)
                progress("reading the corpus (MB)", position // MEGABYTE, state.bytes // MEGABYTE)
        if not passages.occurrences:
            raise UsageError(f"{corpus} holds no text", hint="give files that hold letters or digits")
        if stamp(corpus).sha256 != state.stamp:
            raise CorpusError(f"{corpus} changed while it was read", hint="build the index again when it is at rest")
        term_count, posting_count = postings.finish(lambda at, total: progress("sorting (postings)", at, total))
        for path in (*folder.iterdir(), folder):
            sync(path)
        manifest = IndexManifest(
            format=FORMAT,
            corpus=state,
            settings=settings,
            documents=passages.documents,
            passages=passages.passages,
            terms=term_count,
            postings=posting_count,
            occurrences=passages.occurrences,
            text_bytes=passages.text_bytes,
            document_bytes=passages.document_bytes,
            passed_over=counts.skipped(),
            data=folder.name,
        )
        _write_manifest(out, manifest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    _clear(out, keep=folder.name)


def _partitions(corpus: Path, state: CorpusState, room: int) -> int:
    """A number of partitions of which each can be sorted in half of the memory."""
    packed = corpus.is_dir() or corpus.name.lower().endswith(".bz2")
    expected = state.bytes * (_BZ2_RATIO if packed else 1) / _BYTES_PER_POSTING
    return 1 + int(2 * expected * SORTING_BYTES / room)


_Batch = list[tuple[int, int, str, str]]
"""Passages as (document, position, text, title)."""


def _batches(documents: Iterator[Document], passages: PassageWriter) -> Iterator[_Batch]:
    batch: _Batch = []
    characters = 0
    for document in documents:
        title = one_line(document.title, 200)
        first = True
        for position, text in split(document.pieces):
            if first:
                passages.add_document(document.source, document.title)
                first = False
            batch.append((passages.documents - 1, position, text, title))
            characters += len(text) + len(title)
            if characters >= _BATCH_CHARACTERS or len(batch) >= _BATCH_PASSAGES:
                yield batch
                batch, characters = [], 0
    if batch:
        yield batch


def _index(batch: _Batch, cutter: TermCutter, passages: PassageWriter, postings: PostingsWriter) -> None:
    if passages.passages + len(batch) > MOST_PASSAGES:
        raise CorpusError(f"the corpus has more than {MOST_PASSAGES:,} passages", hint="index parts of it")
    # The title of an article stands for what its later passages call "it".
    terms, owners = cutter.terms([f"{title}\n{text}" if title else text for _, _, text, title in batch])
    passages.add_passages([row[:3] for row in batch], np.bincount(owners, minlength=len(batch)))
    postings.add(terms, owners, len(batch))


def _write_manifest(out: Path, manifest: IndexManifest) -> None:
    write_whole(out / MANIFEST, (manifest.model_dump_json(indent=2) + "\n").encode())
