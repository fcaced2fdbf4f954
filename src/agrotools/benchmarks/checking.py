"""Whether the files of a benchmark are whole: what is missing or broken, and counts beside the published ones."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agrotools.benchmarks import BENCHMARKS, load_benchmark
from agrotools.benchmarks.published.findings import EntryFault, told
from agrotools.benchmarks.published.loaded import ReadSet
from agrotools.benchmarks.published.places import Layout, find_file, how_to_get
from agrotools.core import BenchmarkError, Sample
from agrotools.core.progress import Progress, no_progress


class Count(NamedTuple):
    """A count beside the published one. ``decides``: whether the benchmark is another one where they differ.

    Others rest on a rule of ours (which answer is an image, what a use case is), or on how the paper counted.
    """

    what: str
    published: int
    here: int
    decides: bool

    @property
    def agrees(self) -> bool:
        return self.published == self.here


class Checkup(NamedTuple):
    """What a check found. ``missing``: what is not there; nothing else was looked at then.

    ``hint``: what to do about what is missing, or about the faults.
    """

    name: str
    files: tuple[str, ...]
    entries: int
    usable: int
    faults: Sequence[EntryFault]
    notes: Sequence[str]
    counts: Sequence[Count]
    missing: str = ""
    hint: str = ""

    @property
    def sound(self) -> bool:
        return not self.missing and not self.faults and all(count.agrees for count in self.counts if count.decides)


def check_benchmark(name: str, data_root: Path | None, progress: Progress = no_progress) -> Checkup:
    """Look for the files of the benchmark ``name`` below ``data_root``, read all of them, and count.

    Raises:
        UsageError: there is no such benchmark, or no folder was given for one that needs it.
    """
    if name not in BENCHMARKS:
        BENCHMARKS.get(name)  # says which names are close
    try:
        if name not in _READERS:
            return _of_loaded(name, data_root, progress)
        read, layout = _READERS[name](data_root, progress)
    except BenchmarkError as error:
        return Checkup(name, (), 0, 0, (), (), (), error.message, error.hint or "")
    files = tuple(str(path) for path in read.files)
    notes = read.findings.notes()
    counts = _counts(name, read.samples)
    if name == "thinkgeo" and len(read.files) < 2:
        notes.append("the SAR split is not there: 50 questions fewer")
    notes += _on_toolmeta(read.root)
    hint = f"whole files are {how_to_get(layout)}" if read.faults else ""
    return Checkup(name, files, read.entries, len(read.samples), read.faults, notes, counts, hint=hint)


def _on_toolmeta(root: Path) -> list[str]:
    """What is wrong with the ``toolmeta.json`` beside the data, which the protocol lagent reads."""
    from agrotools.tools.published.declared import TOOLMETA_FILE, read_toolmeta

    try:
        if (root / TOOLMETA_FILE).is_file():
            read_toolmeta(root / TOOLMETA_FILE)
    except BenchmarkError as error:
        return [told(error)]
    return []


def _of_loaded(name: str, data_root: Path | None, progress: Progress) -> Checkup:
    benchmark = load_benchmark(name, data_root, progress)
    told = benchmark.header.metadata.get("notes")
    notes = [str(note) for note in told] if isinstance(told, list) else []
    total = len(benchmark.samples)
    counts = _counts(name, benchmark.samples) if name in _COUNTS else []
    return Checkup(name, (str(benchmark.root),), total, total, (), notes, counts)


def _read_gta(data_root: Path | None, progress: Progress) -> tuple[ReadSet, Layout]:
    from agrotools.benchmarks.gta import GTA_LAYOUT, read_gta

    return read_gta(find_file(GTA_LAYOUT, data_root), progress), GTA_LAYOUT


def _read_gta2(data_root: Path | None, progress: Progress) -> tuple[ReadSet, Layout]:
    from agrotools.benchmarks.gta2 import layout_of, read_gta2

    try:
        tasks = find_file(layout_of("end"), data_root)
    except BenchmarkError as error:
        try:
            dialogs = find_file(layout_of("step"), data_root)
        except BenchmarkError:
            raise error from None
        return read_gta2(dialogs, "step", progress), layout_of("step")
    return read_gta2(tasks, "end", progress), layout_of("end")


def _read_thinkgeo(data_root: Path | None, progress: Progress) -> tuple[ReadSet, Layout]:
    from agrotools.benchmarks.thinkgeo import THINKGEO_LAYOUT, find_sar, read_thinkgeo

    path = find_file(THINKGEO_LAYOUT, data_root)
    try:
        find_sar(path)
        split = "all"
    except BenchmarkError:
        split = "optical"
    return read_thinkgeo(path, split, progress), THINKGEO_LAYOUT


def _read_agent_x(data_root: Path | None, progress: Progress) -> tuple[ReadSet, Layout]:
    from agrotools.benchmarks.agent_x import AGENT_X_LAYOUT, read_agent_x

    return read_agent_x(find_file(AGENT_X_LAYOUT, data_root), progress=progress), AGENT_X_LAYOUT


_READERS: Mapping[str, Callable[[Path | None, Progress], tuple[ReadSet, Layout]]] = {
    "gta": _read_gta,
    "gta-2": _read_gta2,
    "thinkgeo": _read_thinkgeo,
    "agent-x": _read_agent_x,
}

_Measure = Callable[[Sequence[Sample]], int]
_Expected = tuple[str, int, bool, _Measure]


def _calls(samples: Sequence[Sample]) -> int:
    return sum(len(sample.reference.steps) for sample in samples if sample.reference)


def _answers(*kinds: str) -> _Measure:
    return lambda samples: sum(sample.answer_type in kinds for sample in samples)


def _files(samples: Sequence[Sample]) -> int:
    return len({file.path for sample in samples for file in sample.files})


def _offered(samples: Sequence[Sample]) -> int:
    return len({tool for sample in samples for tool in sample.toolset})


def _with_tools(number: int) -> _Measure:
    return lambda samples: sum(len(sample.toolset) == number for sample in samples)


def _grouped(group: str, value: str, inner: _Measure = len) -> _Measure:
    return lambda samples: inner([sample for sample in samples if sample.groups.get(group) == value])


def _on_video(samples: Sequence[Sample]) -> int:
    return sum(sample.groups.get("input") == "video" for sample in samples)


def _open(samples: Sequence[Sample]) -> int:
    return Counter(sample.answer_type for sample in samples)["open_text"]


_TEXT = _answers("exact", "open_text")
_OPTICAL: tuple[_Expected, ...] = tuple(
    (what, number, decides, _grouped("sensor", "optical", measure))
    for what, number, decides, measure in (
        ("optical questions", 436, True, len),
        ("optical tool steps", 1534, True, _calls),
        ("optical text answers", 368, True, _TEXT),
        ("optical image answers", 68, True, _answers("image")),
        ("easy optical questions", 281, False, _grouped("difficulty", "easy")),
        ("disaster and change", 148, False, _grouped("use_case", "disaster_and_change")),
        ("urban planning", 71, False, _grouped("use_case", "urban_planning")),
        ("transportation", 90, False, _grouped("use_case", "transportation")),
        ("aviation", 40, False, _grouped("use_case", "aviation")),
        ("industrial sites", 15, False, _grouped("use_case", "industrial_sites")),
        ("recreation", 41, False, _grouped("use_case", "recreation")),
        ("environment", 31, False, _grouped("use_case", "environment")),
    )
)
_SAR: tuple[_Expected, ...] = tuple(
    (what, number, decides, _grouped("sensor", "sar", measure))
    for what, number, decides, measure in (
        ("radar questions", 50, True, len),
        ("radar tool steps", 244, True, _calls),
        ("radar text answers", 36, False, _TEXT),
    )
)
_COUNTS: Mapping[str, tuple[_Expected, ...]] = {
    "gta": (
        ("questions", 229, True, len),
        ("tool steps", 557, True, _calls),
        ("text answers", 172, True, _TEXT),
        ("image answers", 57, True, _answers("image")),
        ("objective answers", 156, False, _answers("exact")),
        ("subjective answers", 16, False, _answers("open_text")),
        ("image files", 252, False, _files),
        ("tools", 14, False, _offered),
        ("questions with 1 tool", 17, False, _with_tools(1)),
        *((f"questions with {n} tools", count, False, _with_tools(n)) for n, count in enumerate((147, 50, 15), 2)),
    ),
    "gta-2": (("tools", 37, False, _offered),),
    "thinkgeo": (*_OPTICAL, *_SAR),
    "agent-x": (
        ("questions", 828, True, len),
        ("tool steps", 2807, True, _calls),
        ("questions on videos", 112, True, _on_video),
        ("image answers", 222, False, _answers("image")),
        ("tools", 14, False, _offered),
        *(
            (f"questions with {n} tools", count, False, _with_tools(n))
            for n, count in enumerate((239, 389, 130, 24), 2)
        ),
    ),
    "agrieval": (
        ("multiple-choice questions", 14697, True, _answers("exact")),
        ("open questions", 2167, True, _open),
    ),
}
"""Published counts: GTA tables 3 and 4 and its figure 3 (557 steps and 172 text answers follow from its result table),
GTA-2 agentlego/benchmark_toollist_v2.txt of its repository (no other count of it is known here), ThinkGeo section 3 and
table A3 (1,534 and 368 follow likewise), Agent-X's table of statistics, AgriEval table 1."""


def _counts(name: str, samples: Sequence[Sample]) -> list[Count]:
    expected = _COUNTS[name]
    if name == "thinkgeo" and not any(sample.groups.get("sensor") == "sar" for sample in samples):
        expected = _OPTICAL
    return [Count(what, published, measure(samples), decides) for what, published, decides, measure in expected]
