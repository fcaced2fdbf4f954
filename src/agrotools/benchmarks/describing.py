"""Statistics of a benchmark as in the papers of GTA, ThinkGeo and Agent-X: steps, tools, files, answers."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from agrotools.core import FAMILIES, FrozenModel, SampleFile, UsageError
from agrotools.formats.benchmark import Benchmark
from agrotools.plugin import plugins
from agrotools.scoring.open_text import count_words

Counts = dict[str, int]


class Description(FrozenModel):
    """Counts over the samples of a benchmark, each by name, most first; numbers of something ascend.

    ``tools`` counts reference calls; ``questions_with_tool`` the questions whose reference calls a tool;
    ``combinations`` questions by the set of tools that they call, ``category_combinations`` by the tools' categories.
    """

    name: str
    version: str
    licence: str
    description: str
    synthetic: bool
    questions: int
    clusters: int
    calls: int
    files: int
    offered_tools: int
    modes: Counts
    """Questions that can be run in each mode."""
    steps_per_question: Counts
    tools_per_question: Counts
    files_per_question: Counts
    file_kinds: Counts
    tools: Counts
    questions_with_tool: Counts
    combinations: Counts
    category_combinations: Counts
    answer_types: Counts
    slots: Counts
    families: Counts
    task_types: Counts
    sources: Counts
    groups: dict[str, Counts]
    words_per_question: dict[str, float]
    """Least, median and most words of a question; a Chinese character counts as half a word."""
    notes: tuple[str, ...] = ()


def describe(benchmark: Benchmark) -> Description:
    """Count everything of ``benchmark``, whichever it is."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    numbers: dict[str, Counter[int]] = defaultdict(Counter)
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: dict[str, str] = {}
    clusters: set[str | None] = set()
    words: list[float] = []
    categories = _Categories()
    for sample in benchmark.samples:
        called = sample.reference.tools if sample.reference else ()
        distinct = dict.fromkeys(called)
        clusters.add(sample.cluster)
        kinds |= {file.path: _kind(file, benchmark) for file in sample.files}
        words.append(count_words(sample.query))
        numbers["files"][len(sample.files)] += 1
        counted["answer_types"][sample.answer_type] += 1
        counted["slots"].update(slot.type for slot in sample.answer)
        counted["families"][FAMILIES.get(sample.family, sample.family)] += 1
        counted["task_types"][sample.task_type] += 1
        counted["sources"][sample.source] += 1
        for mode in benchmark.modes:
            runs = sample.no_tool_eligible if mode == "no-tool" else mode == "end-to-end" or sample.reference
            counted["modes"][mode] += bool(runs)
        for group, value in sample.groups.items():
            groups[group][value] += 1
        if sample.reference is not None:
            numbers["steps"][len(called)] += 1
            numbers["tools"][len(distinct)] += 1
            counted["tools"].update(called)
            counted["with_tool"].update([*distinct])
            counted["combinations"][" + ".join(sorted(distinct)) or "none"] += 1
            counted["category_combinations"][categories.of(distinct)] += 1
    notes = benchmark.header.metadata.get("notes")
    return Description(
        name=benchmark.name,
        version=benchmark.version,
        licence=benchmark.licence,
        description=benchmark.header.description,
        synthetic=benchmark.synthetic,
        questions=len(benchmark.samples),
        clusters=len(clusters),
        calls=counted["tools"].total(),
        files=len(kinds),
        offered_tools=len(benchmark.toolset),
        modes=dict(counted["modes"]),
        steps_per_question=_ascending(numbers["steps"]),
        tools_per_question=_ascending(numbers["tools"]),
        files_per_question=_ascending(numbers["files"]),
        file_kinds=_by_frequency(Counter(kinds.values())),
        tools=_by_frequency(counted["tools"]),
        questions_with_tool=_by_frequency(counted["with_tool"]),
        combinations=_by_frequency(counted["combinations"]),
        category_combinations=_by_frequency(counted["category_combinations"]),
        answer_types=_by_frequency(counted["answer_types"]),
        slots=_by_frequency(counted["slots"]),
        families=_by_frequency(counted["families"]),
        task_types=_by_frequency(counted["task_types"]),
        sources=_by_frequency(counted["sources"]),
        groups={group: _sort_counts(members) for group, members in sorted(groups.items())},
        words_per_question=_spread(words),
        notes=tuple(str(note) for note in notes) if isinstance(notes, list) else (),
    )


def _kind(file: SampleFile, benchmark: Benchmark) -> str:
    """The kind of a file; frames, which loading took from videos, are told apart from published images."""
    return "frame of a video" if file.path.partition("/")[0] in benchmark.elsewhere else file.kind


class _Categories:
    """Categories of tools: the published ones, else what an installed tool says of itself."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {
            tool: category
            for plugin in plugins()
            for category, tools in plugin.tool_categories.items()
            for tool in tools
        }

    def of(self, tools: Mapping[str, None]) -> str:
        """The categories of ``tools``, each once."""
        return " + ".join(sorted({self._category(tool) for tool in tools})) or "none"

    def _category(self, tool: str) -> str:
        from agrotools.tools import get_tool

        if tool not in self._known:
            try:
                self._known[tool] = get_tool(tool).spec.category
            except UsageError:
                self._known[tool] = "other"
        return self._known[tool]


def _by_frequency(counts: Counter[str]) -> Counts:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _ascending(counts: Counter[int]) -> Counts:
    return {str(number): counts[number] for number in sorted(counts)}


def _sort_counts(counts: Counter[str]) -> Counts:
    """By number where all values are numbers, else by frequency."""
    if all(value.isdecimal() for value in counts):
        return {value: counts[value] for value in sorted(counts, key=int)}
    return _by_frequency(counts)


def _spread(numbers: list[float]) -> dict[str, float]:
    from statistics import median

    return {"least": min(numbers), "median": median(numbers), "most": max(numbers)} if numbers else {}


def counts_of(benchmark: Benchmark) -> dict[str, dict[str, int]]:
    """Samples by task type, answer type and number of reference calls; slots by type."""
    counts = defaultdict[str, Counter[str]](Counter)
    for sample in benchmark.samples:
        calls = len(sample.reference.steps) if sample.reference else 0
        counts["task types"][sample.task_type] += 1
        counts["answer types"][sample.answer_type] += 1
        counts["slots"].update(slot.type for slot in sample.answer)
        counts["number of reference calls"][str(calls)] += 1
        counts["without tools"]["yes" if sample.no_tool_eligible else "no"] += 1
    return {kind: dict(sorted(counts_of_kind.items())) for kind, counts_of_kind in counts.items()}
