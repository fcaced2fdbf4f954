"""A pack of a few samples of ``embedded`` that are quickly drawn, in place of the packs of the package."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agrotools.loading.pack import Pack, read_pack, write_pack
from agrotools_benchmarks.embedded import load


def small_pack(
    path: Path, change: Callable[[dict[str, Any]], dict[str, Any]] = dict, samples: int = 4
) -> Pack:
    """Write a pack of samples with few files; the first is the quick part. ``change`` changes a file's entry."""
    whole = read_pack("embedded")
    alone = sorted(
        (sample for sample in whole.samples if not sample.twin),
        key=lambda sample: len(sample.files),
    )
    few = sorted(alone[:samples], key=lambda sample: sample.id)
    paths = {file.path for sample in few for file in sample.files}
    header = whole.header.model_copy(update={"quick": (few[0].id,)})
    write_pack(path, header, {each: change(dict(whole.files[each])) for each in sorted(paths)}, few)
    return Pack(path.read_bytes())


def use_pack(patch: pytest.MonkeyPatch, pack: Pack) -> Path:
    """Let the loader use this pack; return the folder that it draws into."""
    patch.setattr(load, "read_pack", lambda _: pack)
    return load.folder_of(pack)
