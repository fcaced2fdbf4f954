"""Loader of the benchmark ``field``: its questions are in the package, its photographs where ``data get`` put them."""

from itertools import count
from pathlib import Path

from agrotools.benchmarks.field.pack import PackHead, read_head, read_samples
from agrotools.benchmarks.field.photographs import NO_HEADS, lacks_heads, train_missing_heads
from agrotools.benchmarks.loading import INCOMPLETE, Loading, data_folder, settings_of
from agrotools.core import FrozenModel
from agrotools.core.base import NoFileError, Progress
from agrotools.core.files import sha256_of_file
from agrotools.formats.benchmark import Benchmark, content_hash_of
from agrotools.formats.clusters import with_clusters

_GET_IT = "agrotools data get field"


class FieldSettings(FrozenModel):
    """Options of ``agrotools eval field``."""

    missing: bool = False
    """Ask the questions whose photographs are there if others are missing; the content hash then differs."""


def field_folder(data_root: Path | None) -> Path:
    """Return the photographs' folder below ``data_root``, or of ``agrotools data get``; NoFileError if none."""
    root = data_root.expanduser() if data_root else data_folder()
    for folder in (root / "field", root):
        if (folder / "files").is_dir():
            return folder.resolve()
    raise NoFileError(f"{root} holds no photographs of field", hint=f"get them: {_GET_IT}")


def load_field(loading: Loading) -> Benchmark:
    """Load the benchmark with the photographs below ``loading.data_root``.

    Raises:
        UsageError: an option is unknown.
        NoFileError: photographs are missing or altered.
    """
    settings = settings_of(FieldSettings, "field", loading.options)
    head, root, samples = read_head(), field_folder(loading.data_root), read_samples()
    in_quick = {file.path for sample in samples if sample.id in head.header.quick for file in sample.files}
    needed = [file for file in head.files if not loading.quick or file.path in in_quick]
    lacking: set[str] = set()
    for number, file in enumerate(needed, start=1):
        path = root / file.path
        if not path.is_file() or sha256_of_file(path) != file.sha256:
            lacking.add(file.path)
        loading.progress("photographs", number, len(needed))
    if lacking and not settings.missing:
        raise NoFileError(
            f"{len(lacking)} of {len(needed)} photographs of field are missing or altered in {root}",
            hint=f"{_GET_IT} fetches them; --option missing=true asks about the others",
        )
    notes = [_heads_note(head, root, loading.progress)]
    header = head.header
    if lacking:
        samples = [sample for sample in samples if lacking.isdisjoint(file.path for file in sample.files)]
        notes.append(f"{INCOMPLETE}: {len(lacking)} photographs are missing: {len(samples)} questions only; {_GET_IT}")
        if not samples:
            raise NoFileError(f"no photograph of field is in {root}", hint=_GET_IT)
    ids = {sample.id for sample in samples}
    quick = tuple(each for each in header.quick if each in ids)
    header = header.model_copy(update={"quick": quick, "metadata": {**header.metadata, "notes": [*notes]}})
    content_hash = content_hash_of(header, samples)
    return Benchmark(header, root, with_clusters(samples), content_hash)


def _heads_note(head: PackHead, root: Path, progress: Progress) -> str:
    """Train missing heads if their files are there, and return a note on the heads."""
    steps, of = count(1), len(head.head_files) // 2 + 3

    def show(_: str) -> None:
        progress("training heads for crop and weeds", next(steps), of)

    if lacks_heads(head):
        if not head.head_files or not all((root / file.path).is_file() for file in head.head_files):
            return f"{INCOMPLETE}: {NO_HEADS}; {_GET_IT} trains them"
        lacking = train_missing_heads(root, show)
        if lacking or lacks_heads(head):
            return f"{INCOMPLETE}: {lacking or NO_HEADS}; then run: {_GET_IT}"
    return "crop and weed models: trained two-fold, no model measures a photograph that it was trained on"
