"""Loader of the benchmark ``field``, download of its photographs, and training of the heads for crop and weeds."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson
from pydantic import JsonValue

from agrotools.core import FrozenModel, Sample, UsageError
from agrotools.core.errors import NoFileError
from agrotools.core.files import sha256_of_file, write_whole
from agrotools.core.progress import Progress
from agrotools.core.texts import command_line, count_text
from agrotools.formats.benchmark import Benchmark, BenchmarkHeader, SourceNote, with_clusters
from agrotools.loading.benchmarks import INCOMPLETE, Loading, data_folder, find_below, settings_of
from agrotools.loading.downloads import Downloader
from agrotools.loading.obtaining import Obtained, Request
from agrotools_benchmarks.field.pack import (
    DataSetNote,
    PackedFile,
    PackHead,
    read_head,
    read_samples,
    sha256_of,
)
from agrotools_tools.recognition.candidates import pest_pack_files

_GET_IT = "agrotools benchmarks get field"
NO_HEADS = "no heads, so tools do not tell crop from weeds"
_HEADS_ARE_HERE = (
    "crop and weed models: trained two-fold, no model measures a photograph that it was trained on"
)
_TRAINING_LIST = Path("cwfid", "truth.json")
"""Photographs and masks that the heads learn from, below the folder of the benchmark."""
_TRAIN_PESTS = "agrotools benchmarks get pests, then agrotools tools packs train pests"


class FieldSettings(FrozenModel):
    """Options of ``agrotools eval field``. Each of them changes the questions, and with them the content hash."""

    missing: bool = False
    """Ask the questions whose photographs are there if others are missing."""
    tune: int | None = None
    """Ask the questions of four fifths of the data sets, drawn by this number, so that the others stay unseen."""
    held: int | None = None
    """Ask the questions of the data sets that ``tune`` with the same number leaves out."""


_HELD_SHARE = 5
"""One repository in so many is held."""


def held_origins(origins: Iterable[str], seed: int) -> frozenset[str]:
    """Return the repositories that a laboratory with this seed does not tune on: one in five, rounded up."""
    by_lot = sorted(set(origins), key=lambda origin: sha256_of(f"{seed} {origin}".encode()))
    return frozenset(by_lot[: -(-len(by_lot) // _HELD_SHARE)])


def _part_of(
    samples: Sequence[Sample], data_sets: Iterable[DataSetNote], settings: FieldSettings
) -> list[Sample]:
    """Return the samples of the data sets that the settings ask about."""
    if settings.tune is not None and settings.held is not None:
        raise UsageError(
            "tune and held are two parts of the benchmark", hint="give --option of one of them"
        )
    seed = settings.tune if settings.held is None else settings.held
    if seed is None:
        return [*samples]
    # Two data sets of one repository show the same places.
    asked = [note.source for note in data_sets if not note.unused]
    origins = {source.name: source.url or source.name for source in asked}
    held = held_origins(origins.values(), seed)
    wants_held = settings.held is not None
    return [each for each in samples if (origins[each.source] in held) == wants_held]


_MOST_OF_A_QUESTION = 8
"""Largest weight of a question beside the average of 1: a few questions on one scene are not a twelfth of a score."""


def with_equal_task_types(samples: Sequence[Sample]) -> list[Sample]:
    """Return samples with weights in means: each task type weighs the same, 1 a sample on average.

    A task type of few samples weighs less: none of its samples counts as more than :data:`_MOST_OF_A_QUESTION` others.
    """
    counts = Counter(sample.task_type for sample in samples)
    equal = {task_type: len(samples) / (len(counts) * n) for task_type, n in counts.items()}
    limited = {task_type: min(weight, _MOST_OF_A_QUESTION) for task_type, weight in equal.items()}
    mean = sum(limited[sample.task_type] for sample in samples) / len(samples)
    weights = {task_type: round(weight / mean, 6) for task_type, weight in limited.items()}
    return [each.model_copy(update={"weight": weights[each.task_type]}) for each in samples]


def field_folder(data_root: Path | None) -> Path:
    """Return the photographs' folder below ``data_root``, or of ``agrotools benchmarks get``; NoFileError if none."""
    return find_below(
        "field",
        data_root,
        ["field"],
        lambda each: (each / "files").is_dir(),
        "photographs",
        _GET_IT,
    )[0]


def load_field(loading: Loading) -> Benchmark:
    """Load the benchmark with the photographs below ``loading.data_root``; without any for ``questions_only``.

    Raises:
        UsageError: an option is unknown.
        NoFileError: photographs are missing or altered.
    """
    settings = settings_of(FieldSettings, "field", loading.options)
    head, every_sample = read_head(), read_samples()
    samples = with_equal_task_types(_part_of(every_sample, head.data_sets, settings))
    header = _with_quick_of(head.header, samples)
    if loading.questions_only:
        root = loading.data_root or data_folder()
        if len(samples) == len(every_sample):
            return Benchmark(header, root, with_clusters(samples), head.content_hash)
        return Benchmark.of(header, samples, root)
    root = field_folder(loading.data_root)
    shown = [each for each in samples if each.id in header.quick] if loading.quick else samples
    paths = {file.path for sample in shown for file in sample.files}
    needed = [file for file in head.files if file.path in paths]
    lacking = _lacking(root, needed, loading.progress)
    if lacking and not settings.missing:
        raise NoFileError(
            f"{len(lacking)} of {len(needed)} files of field are missing or altered in {root}, such as {min(lacking)}",
            hint=f"{_GET_IT} fetches them (those of the quick part alone with --quick); eval --option missing=true asks"
            " about the others",
        )
    absent = cast("list[JsonValue]", header.metadata.get("notes") or [])
    reasons: list[str] = []
    if lacking:
        samples = with_equal_task_types(
            [sample for sample in samples if lacking.isdisjoint(file.path for file in sample.files)]
        )
        if not samples:
            raise NoFileError(f"no photograph of field is in {root}", hint=_GET_IT)
        header = _with_quick_of(header, samples)
        n_asked = len(header.quick) if loading.quick else len(samples)
        photographs = count_text(len(lacking), "photograph")
        questions = count_text(n_asked, "question")
        reasons.append(f"{photographs} missing, {questions} left ({_GET_IT})")
    notes = [*absent, *_model_notes(head, root, reasons)]
    header = header.model_copy(update={"metadata": {**header.metadata, "notes": [*notes]}})
    benchmark = Benchmark.of(header, samples, root)
    return _weighted_as_quick_part(benchmark) if loading.quick else benchmark


def _lacking(root: Path, needed: Sequence[PackedFile], progress: Progress) -> set[str]:
    """Return the paths of files that are missing in ``root``, or altered."""
    lacking: set[str] = set()
    for number, file in enumerate(needed, start=1):
        if not (path := root / file.path).is_file() or sha256_of_file(path) != file.sha256:
            lacking.add(file.path)
        progress("photographs", number, len(needed))
    return lacking


def _weighted_as_quick_part(benchmark: Benchmark) -> Benchmark:
    """Return a benchmark in whose quick part each task type weighs the same; the content hash stays that of the whole.

    The quick part has at least one question of each kind, so that small task types are a larger part of it.
    """
    quick = {*benchmark.header.quick}
    members = [each for each in benchmark.samples if each.id in quick]
    weighted = {each.id: each for each in with_equal_task_types(members)}
    samples = [weighted.get(each.id, each) for each in benchmark.samples]
    return replace(benchmark, samples=samples)


def _with_quick_of(header: BenchmarkHeader, samples: Iterable[Sample]) -> BenchmarkHeader:
    """Return the header with those ids of its quick part that these samples have."""
    ids = {sample.id for sample in samples}
    return header.model_copy(update={"quick": tuple(each for each in header.quick if each in ids)})


def _model_notes(head: PackHead, root: Path, others: Sequence[str] = ()) -> list[str]:
    """Return notes on the models that tools need for these photographs, and how to train those that are missing.

    One note holds all that is incomplete, ``others`` first.
    """
    reasons = [*others]
    has_heads = not lacks_heads(head)
    if not has_heads:
        reasons.append(f"{NO_HEADS} (train them: {_train_heads(root)})")
    if not pest_pack_files():
        reasons.append(f"no pest recogniser (train it: {_TRAIN_PESTS})")
    notes = [_HEADS_ARE_HERE] if has_heads else []
    if reasons:
        notes.append(f"{INCOMPLETE}: {'; '.join(reasons)}")
    return notes


def _train_heads(folder: Path) -> str:
    """Return the commands that train the heads from the files in ``folder``, which are fetched first if need be."""
    train = command_line("tools", "packs", "train", "crop-weed", "--data", folder)
    has_all = (folder / _TRAINING_LIST).is_file()
    return train if has_all else f"{_GET_IT}, then {train}"


def get_field(request: Request) -> Obtained:
    """Download the photographs below ``request.root``, and say which models of tools are to be trained from them.

    The masks that the heads for crop and weeds learn from come with the whole, not with the quick part.

    Raises:
        InfrastructureError: no server could be reached.
    """
    head, folder = read_head(), request.root / "field"
    for note in head.data_sets:
        if note.unused:
            request.say(
                f"left out of the benchmark: {note.source.name}, {note.questions} questions: {note.unused}"
            )
    downloader = Downloader(folder, request.mirror, request.patience)
    shown = _files_of_quick_part(head) if request.quick else head.files
    masks = () if request.quick else head.head_files
    failures = downloader.fetch([file.item for file in shown], request.progress, "photographs")
    if masks:
        items = [file.item for file in masks]
        failures += downloader.fetch(items, request.progress, "masks for the heads")
    if masks and not failures:
        write_training_list(folder, head)
    sources: dict[str, SourceNote] = {}
    for note in head.data_sets:
        if not note.unused:
            sources.setdefault(note.source.name, _with_places(note, head))
    paths = [folder / file.path for file in (*shown, *masks)]
    there = [path for path in paths if path.is_file()]
    return Obtained(there, [*sources.values()], failures, _model_notes(head, folder))


def _files_of_quick_part(head: PackHead) -> list[PackedFile]:
    """Return the files that the questions of the quick part show."""
    quick = {*head.header.quick}
    paths = {file.path for sample in read_samples() if sample.id in quick for file in sample.files}
    return [file for file in head.files if file.path in paths]


def _with_places(note: DataSetNote, head: PackHead) -> SourceNote:
    """Return the source of a data set with the repositories and commits that its files come from."""
    ours = [file for file in head.files if file.local.startswith(f"{note.folder}/")]
    places = dict.fromkeys(f"https://github.com/{file.repo}/tree/{file.commit}" for file in ours)
    return note.source.model_copy(update={"url": " ".join(places) or note.source.url})


def lacks_heads(head: PackHead) -> bool:
    """Return True if there is no head on this machine that never saw a certain photograph of crop and weeds."""
    from agrotools_tools.crop_weed.heads import list_heads

    photographs = {file.sha256 for file in head.files if file.local.startswith("cwfid/")}
    learnt = [{image.sha256 for image in each.training} for each in list_heads()[0]]
    ours = [some for some in learnt if some & photographs]
    return any(all(photograph in some for some in ours) for photograph in photographs)


def write_training_list(folder: Path, head: PackHead) -> None:
    """Write the list of photographs and masks that the training reads, :data:`_TRAINING_LIST`."""
    stored = {file.local: file.path for file in (*head.files, *head.head_files)}
    names = sorted(Path(local).stem for local in stored if local.startswith("cwfid/images/"))
    places = {"image": "images/{}.jpg", "mask": "masks/{}.png", "vegetation": "vegetation/{}.png"}
    items = [
        {
            "id": name,
            **{key: f"../{stored['cwfid/' + place.format(name)]}" for key, place in places.items()},
        }
        for name in names
    ]
    write_whole(
        folder / _TRAINING_LIST,
        orjson.dumps(items, option=orjson.OPT_INDENT_2),
        synced=False,
    )
