"""Loader of the benchmark ``field``: its questions are in the package, its photographs where ``data get`` put them."""

from pathlib import Path

from agrotools.benchmarks.field.pack import PackHead, read_head, read_samples
from agrotools.benchmarks.field.photographs import lacks_heads
from agrotools.benchmarks.loading import Loading, data_folder, settings_of
from agrotools.core import FrozenModel
from agrotools.core.base import NoFileError
from agrotools.core.files import sha256_of_file
from agrotools.formats.benchmark import Benchmark, ContentDigest
from agrotools.formats.clusters import with_clusters

_GET_IT = "agrotools data get field"


class FieldSettings(FrozenModel):
    """Options of ``agrotools eval field``."""

    missing: bool = False
    """Ask the questions whose photographs are there if others are missing; the content hash then differs."""


def field_folder(data_root: Path | None) -> Path:
    """Return the folder of the photographs below ``data_root``, or where ``agrotools data get`` puts them.

    Raises:
        NoFileError: there is none.
    """
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
    head, root = read_head(), field_folder(loading.data_root)
    intact: set[str] = set()
    for number, file in enumerate(head.files, start=1):
        path = root / file.path
        if path.is_file() and sha256_of_file(path) == file.sha256:
            intact.add(file.path)
        loading.progress("photographs", number, len(head.files))
    lacking = len(head.files) - len(intact)
    if lacking and not settings.missing:
        raise NoFileError(
            f"{lacking} of {len(head.files)} photographs of field are missing or altered in {root}",
            hint=f"{_GET_IT} fetches them; --option missing=true asks about the others",
        )
    samples = [sample for sample in read_samples() if all(file.path in intact for file in sample.files)]
    if not samples:
        raise NoFileError(f"no photograph of field is in {root}", hint=_GET_IT)
    notes = [_heads_note(head)]
    if lacking:
        notes.append(f"{lacking} photographs are missing: {len(samples)} questions are asked, not the whole benchmark")
    header = head.header.model_copy(update={"metadata": {**head.header.metadata, "notes": [*notes]}})
    digest = ContentDigest(header)
    for sample in samples:
        digest.add(sample)
    content_hash = digest.hexdigest(lambda: sorted(samples, key=lambda sample: sample.id))
    return Benchmark(header, root, with_clusters(samples), content_hash)


def _heads_note(head: PackHead) -> str:
    if lacks_heads(head):
        return f"heads for crop and weeds are not on this machine: tools do not tell them apart; {_GET_IT} trains them"
    return "heads for crop and weeds are on this machine; none learnt from the photograph that it measures"
