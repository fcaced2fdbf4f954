"""Loading of AgriEval and of CMMLU's agronomy part: search for the files, and conversion of their items to samples."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson
from pydantic import JsonValue

from agrotools.core import Sample, UsageError
from agrotools.core.files import cache_dir, write_whole
from agrotools.core.progress import Progress
from agrotools.formats.benchmark import (
    Benchmark,
    BenchmarkHeader,
    LazySamples,
    SampleFacts,
    SourceNote,
)
from agrotools.loading.benchmarks import Loading, find_below, settings_of
from agrotools_benchmarks.agrieval.items import (
    Item,
    ItemFile,
    QuestionSettings,
    question_key,
    read_items,
    slot_of,
)
from agrotools_benchmarks.agrieval.plugin import SETS
from agrotools_benchmarks.agrieval.prompting import (
    Examples,
    Ordered,
    orders_of,
    prompt_of,
    prompts_hash,
)

if TYPE_CHECKING:
    from agrotools.knowledge.corpus import Passage


def load_questions(name: str, loading: Loading) -> Benchmark:
    """Load the questions of the set ``name`` below ``loading.data_root``, asked as ``loading.options`` specify.

    Raises:
        UsageError: an option is unknown or has an invalid value.
        BenchmarkError: the files are missing or cannot be read.
    """
    settings = settings_of(QuestionSettings, name, loading.options)
    root, paths = find_files(name, loading.data_root, settings)
    files = [read_items(path) for path in paths]
    return question_benchmark(
        name, SourceNote(**SETS[name]["source"]), root, files, settings, loading.progress
    )


def found_files(name: str, data_root: Path | None) -> str:
    """Return the folder and the files of the set ``name``, for a list of benchmarks; errors as in
    :func:`find_files`."""
    root, paths = find_files(name, data_root, QuestionSettings())
    return f"{root}: {', '.join(path.name for path in paths)}"


_VARIANTS = ("(main)", "(rag)", "(shuffle)")
"""Variants of a file in order of preference."""


def find_files(
    name: str, data_root: Path | None, settings: QuestionSettings
) -> tuple[Path, list[Path]]:
    """Return the folder of the set ``name`` and its files: those named in ``settings``, or one for each part of the
    set.

    Raises:
        UsageError: a named file does not exist.
        NoFileError: the folder does not exist or holds no such file.
    """
    layout = SETS[name]["layout"]

    def find(folder: Path) -> list[Path]:
        if settings.files:
            return [
                _named_file(folder, each.strip())
                for each in settings.files.split(",")
                if each.strip()
            ]
        there = sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() in (".json", ".csv") and path.is_file()
        )
        if name == "cmmlu-agronomy":
            return [path for path in there if "agronomy" in path.name.lower()][:1]
        parts = [part for part in ("choice", "question") if settings.part in ("all", part)]
        return list(dict.fromkeys(path for part in parts if (path := _preferred(there, part))))

    hint = f"get them: agrotools benchmarks get {name} (from {layout['get_it']}), or name files: --option files=NAME"
    return find_below(name, data_root, layout["folders"], find, "file", hint)


def _named_file(root: Path, name: str) -> Path:
    path = {path.name.casefold(): path for path in root.iterdir()}.get(name.casefold(), root / name)
    if not path.is_file():
        hint = "--option files= takes names in the folder, with commas between"
        raise UsageError(f"there is no file {path}", hint=hint)
    return path


def _preferred(paths: Sequence[Path], part: str) -> Path | None:
    def rank(path: Path) -> int:
        return next(
            (i for i, each in enumerate(_VARIANTS) if each in path.name.lower()), len(_VARIANTS)
        )

    return min((path for path in paths if part in path.name.lower()), key=rank, default=None)


VERSION = "1"
_SEARCH_THREADS = 8
FAMILY = "knowledge"
_TYPES = {"single": "single_choice", "multiple": "multiple_choice", "true_false": "true_false"}
TASK_TYPES = {**_TYPES, None: "short_answer"}


class _Place(NamedTuple):
    """Sample to be made: its item, the ordered options, and the id of the first sample with the same question."""

    item: Item
    ordered: Ordered
    cluster: str


def question_benchmark(
    name: str,
    source: SourceNote,
    root: Path,
    files: Sequence[ItemFile],
    settings: QuestionSettings,
    progress: Progress,
) -> Benchmark:
    """Return a benchmark of all items of ``files``, asked as ``settings`` specify; samples are made on first access.

    Its content hash covers the items, order, passages, examples, settings and prompt texts; :data:`VERSION` represents
    the code.

    Raises:
        UsageError: there are not enough examples to draw from.
        BenchmarkError: the file of examples or the index cannot be read.
    """
    items = [item for file in files for item in file.items if _is_selected(item, settings)]
    pool = read_items(settings.examples.expanduser()).items if settings.examples else items
    examples = Examples(pool, settings.seed) if settings.shots else None
    find, note = _passages_for(items, settings.retrieval, settings.passages, progress)
    ids, places = _place_items(items, settings)

    def make(position: int) -> Sample:
        item, ordered, cluster = places[position]
        shots = examples.for_item(item, settings.shots) if examples else []
        passages = find(item)
        return Sample(
            id=ids[position],
            query=prompt_of(item, ordered.options, settings, shots, passages),
            files=(),
            family=FAMILY,
            task_type=TASK_TYPES[item.kind],
            answer_type="exact" if item.kind else "open_text",
            template=f"{TASK_TYPES[item.kind]}_{len(item.options)}",
            source=source.name,
            toolset=(),
            answer=(slot_of(item, ordered.options, ordered.answer or item.answer),),
            cluster=cluster,
            groups=dict(item.groups),
            metadata=_metadata(item, ordered, passages, shots),
        )

    facts = SampleFacts(ids, [True] * len(ids), [False] * len(ids))
    header = _header(name, source, files, settings, examples, note)
    if examples:
        examples.check((place.item for place in places), settings.shots)
    digest = hashlib.sha256(
        prompts_hash().encode() + header.model_dump_json(exclude={"metadata", "quick"}).encode()
    )
    digest.update(settings.model_dump_json(exclude={"examples", "retrieval", "files"}).encode())
    for item in pool if settings.examples else ():
        digest.update(_content(item))
    for sample_id, (item, ordered, _) in zip(ids, places, strict=True):
        digest.update(_content(item, sample_id, ordered.origin, [each.text for each in find(item)]))
    return Benchmark(header, root, LazySamples(facts, make), digest.hexdigest())


def _passages_for(
    items: Sequence[Item], index: Path | None, count: int, progress: Progress
) -> "tuple[Callable[[Item], Sequence[Passage]], str]":
    """Return a function that looks up the ``count`` best passages of an item (none without an index), and a note."""
    if index is None:
        return lambda _item: (), ""
    from agrotools.knowledge.corpus import CorpusIndex, Passage

    def query_of(item: Item) -> str:
        return "\n".join([item.question, *sorted(item.options.values())])

    corpus = CorpusIndex(index)
    queries = list(dict.fromkeys(map(query_of, items)))
    key = orjson.dumps([corpus.manifest["sha256"], count, queries])
    cached = cache_dir("passages", f"{hashlib.sha256(key).hexdigest()}.json")
    passages: dict[str, list[Passage]] = {}
    with suppress(OSError, ValueError, TypeError):
        passages = {
            query: [Passage(*each) for each in rows]
            for query, rows in orjson.loads(cached.read_bytes())
        }
    if len(passages) < len(queries):
        with ThreadPoolExecutor(_SEARCH_THREADS) as pool:
            found = pool.map(lambda query: corpus.search(query, count), queries)
            for query, results in zip(queries, found, strict=True):
                passages[query] = results
                progress("passages", len(passages), len(queries))
        with suppress(OSError):
            cached.parent.mkdir(parents=True, exist_ok=True)
            write_whole(
                cached,
                orjson.dumps([[query, list(map(list, each))] for query, each in passages.items()]),
            )
    return lambda item: passages[query_of(item)], corpus.stale or ""


def _is_selected(item: Item, settings: QuestionSettings) -> bool:
    return settings.part == "all" or (item.kind is None) == (settings.part == "question")


def _content(item: Item, *more: object) -> bytes:
    content = [
        item.number,
        item.kind,
        item.question,
        item.answer,
        dict(item.options),
        dict(item.groups),
        *more,
    ]
    return orjson.dumps(content) + b"\n"


def _place_items(
    items: Sequence[Item], settings: QuestionSettings
) -> tuple[list[str], list[_Place]]:
    """Return the ids and the contents of all samples, sorted by id."""
    first: dict[str, str] = {}
    ids: list[str] = []
    places: list[_Place] = []
    used_ids = set[str]()
    for item in items:
        number = item.number.zfill(5) if item.number.isdigit() else item.number
        sample_id = f"{'choice' if item.kind else 'question'}-{number}"
        while sample_id in used_ids:
            # Two files may use the same numbers.
            sample_id += "x"
        used_ids.add(sample_id)
        cluster = first.setdefault(question_key(item.question), sample_id)
        seed = f"{settings.seed}/{sample_id}"
        orders = (
            orders_of(item.options, item.answer, settings.order, seed)
            if item.kind
            else [Ordered({}, (), ())]
        )
        for ordered in orders:
            ids.append(
                sample_id if ordered.rotation is None else f"{sample_id}-r{ordered.rotation}"
            )
            places.append(_Place(item, ordered, cluster))
    order = sorted(range(len(ids)), key=ids.__getitem__)
    return [ids[at] for at in order], [places[at] for at in order]


def _metadata(
    item: Item, ordered: Ordered, passages: "Sequence[Passage]", shots: Sequence[Item]
) -> dict[str, JsonValue]:
    metadata: dict[str, JsonValue] = {"question": item.question}
    if (
        item.kind is not None and ordered.origin != tuple(range(len(ordered.origin)))
    ) or ordered.rotation is not None:
        metadata["origin"] = list(ordered.origin)
    if ordered.rotation is not None:
        metadata["rotation"] = ordered.rotation
    if passages:
        shown = (
            {"source": each.source, "title": each.title, "score": round(each.score, 4)}
            for each in passages
        )
        metadata["passages"] = [*shown]
    if shots:
        metadata["examples"] = [each.number for each in shots]
    return metadata


def _header(
    name: str,
    source: SourceNote,
    files: Sequence[ItemFile],
    settings: QuestionSettings,
    examples: Examples | None,
    note: str,
) -> BenchmarkHeader:
    digest = hashlib.sha256(b"".join(file.path.read_bytes() for file in files))
    left_out = sum((Counter(file.left_out) for file in files), Counter[str]())
    notes = [note] if note else []
    notes += [f"{count} entries left out: {reason}" for reason, count in left_out.items()]
    choices = [
        item for file in files for item in file.items if item.kind and _is_selected(item, settings)
    ]
    if choices and not any("domain" in item.groups for item in choices):
        notes.append(
            "the multiple-choice questions tell no field, cognitive level or task, only a type"
        )
    if examples and not all(examples.groups_kept_out.values()):
        alike = ", ".join(
            kind or "open" for kind, kept_out in examples.groups_kept_out.items() if not kept_out
        )
        notes.append(f"examples may be of the question's own group, since all are of one: {alike}")
    return BenchmarkHeader(
        name=name,
        version=VERSION,
        licence=source.licence,
        description="examination questions on agriculture",
        toolset=(),
        modes=("no-tool",),
        bare=True,
        sources=(source,),
        metadata={
            "files": [file.path.name for file in files],
            "files_sha256": digest.hexdigest(),
            "setting": settings.label,
            "settings": json.loads(settings.model_dump_json(exclude_defaults=True)),
            "notes": list(notes),
        },
    )
