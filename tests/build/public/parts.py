"""Parts that adapters read: all their things, and the benchmark made of one."""

from collections.abc import Sequence
from pathlib import Path

from agrotools.benchmarks import load_folder
from agrotools.benchmarks.validate import validate_folder
from agrotools.build.sources.assembling import assembled
from agrotools.build.sources.part import Part
from agrotools.build.templates import Thing
from agrotools.core import Sample
from agrotools.core.base import no_progress
from agrotools.formats.benchmark import BenchmarkHeader


def things_of(part: Part, *kinds: str) -> list[Thing]:
    """Every thing of the subjects of these kinds, or of all, as the first of a sample."""
    subjects = [subject for subject in part.subjects if subject.of in kinds or not kinds]
    return [subject.shown(index, 1) for subject in subjects for index in range(subject.things)]


def original_of(part: Part, thing: Thing) -> Path:
    """The file that the first file of a thing is."""
    return part.files[thing.files[0].path]


def sound_benchmark(part: Part, folder: Path) -> tuple[BenchmarkHeader, Sequence[Sample]]:
    """Header and samples of the benchmark that is made of ``part`` in ``folder / "out"``, as many as are wanted."""
    out = folder / "out"
    header = assembled([part], out, name="made", version="1", description="Test.", progress=no_progress)
    assert validate_folder(out) == []
    samples = load_folder(out).samples
    assert len(samples) == part.samples
    return header, samples
