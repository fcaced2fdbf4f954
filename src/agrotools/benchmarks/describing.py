"""Statistics of a benchmark as in the papers of GTA, ThinkGeo and Agent-X: steps, tools, files, answers."""

from collections import Counter, defaultdict
from functools import cache
from statistics import median

import orjson

from agrotools.benchmarks.pack import pack_path
from agrotools.core import FAMILIES, FrozenModel, UsageError
from agrotools.formats.benchmark import Benchmark
from agrotools.plugin import plugins
from agrotools.scoring.open_text import count_words
from agrotools.scoring.statistics import planned_detectable

Counts = dict[str, int]


class Description(FrozenModel):
    """Counts over the samples of a benchmark, the most frequent first; counts by number are in ascending order.

    ``tools`` counts reference calls and ``questions_with_tool`` the questions whose reference calls a tool.
    ``combinations`` counts questions by the set of tools that they call, ``category_combinations`` by the categories of
    those tools.
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
    """Number of questions that can be run in each mode."""
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
    """Minimum, median and maximum number of words in a question; a Chinese character counts as half a word."""
    detectable: dict[str, float]
    """Smallest difference between two runs of a mean score near 0.5 that is found with 80 % power at the 5 % level:
    ``independent``, and ``paired`` on the same samples with scores correlated at 0.3.
    """
    reviewed: Counts = {}
    """Number of questions that people and models have reviewed (decisions in ``NAME.review.jsonl`` beside the pack)."""
    notes: tuple[str, ...] = ()


def describe(benchmark: Benchmark) -> Description:
    """Compute the statistics of ``benchmark``."""
    counted: dict[str, Counter[str]] = {name: Counter() for name in _COUNTED}
    numbers: dict[str, Counter[int]] = {name: Counter() for name in _NUMBERS}
    modes: dict[str, int] = dict.fromkeys(benchmark.modes, 0)
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: dict[str, str] = {}
    words: list[float] = []
    published = [table for plugin in plugins() for table in plugin.paper.tool_categories.items()]
    categories = {tool: category for category, tools in published for tool in tools}
    for sample in benchmark.samples:
        called = sample.reference.tools if sample.reference else ()
        distinct = dict.fromkeys(called)
        for file in sample.files:
            is_frame = file.path.partition("/")[0] in benchmark.external_folders  # extracted from a video by the loader
            kinds[file.path] = "frame of a video" if is_frame else file.kind
        words.append(count_words(sample.query))
        numbers["files_per_question"][len(sample.files)] += 1
        counted["answer_types"][sample.answer_type] += 1
        counted["slots"].update(slot.type for slot in sample.answer)
        counted["families"][FAMILIES.get(sample.family, sample.family)] += 1
        counted["task_types"][sample.task_type] += 1
        counted["sources"][sample.source] += 1
        for mode in modes:
            runs = sample.no_tool_eligible if mode == "no-tool" else mode == "end-to-end" or sample.reference
            modes[mode] += bool(runs)
        for group, value in sample.groups.items():
            groups[group][value] += 1
        if sample.reference is not None:
            numbers["steps_per_question"][len(called)] += 1
            numbers["tools_per_question"][len(distinct)] += 1
            counted["tools"].update(called)
            counted["questions_with_tool"].update([*distinct])
            counted["combinations"][" + ".join(sorted(distinct)) or "none"] += 1
            of_tools = {categories.get(tool) or _category(tool) for tool in distinct}
            counted["category_combinations"][" + ".join(sorted(of_tools)) or "none"] += 1
    notes = benchmark.header.metadata.get("notes")
    sizes = [*Counter(sample.cluster for sample in benchmark.samples).values()]
    plans = {"independent": 0.0, "paired": 0.3} if len(sizes) > 1 else {}
    return Description(
        name=benchmark.name,
        version=benchmark.version,
        licence=benchmark.licence,
        description=benchmark.header.description,
        synthetic=benchmark.synthetic,
        questions=len(benchmark.samples),
        clusters=len({sample.cluster for sample in benchmark.samples}),
        calls=counted["tools"].total(),
        files=len(kinds),
        offered_tools=len(benchmark.toolset),
        modes=modes,
        file_kinds=_by_frequency(Counter(kinds.values())),
        groups={group: _sort_counts(members) for group, members in sorted(groups.items())},
        words_per_question={"least": min(words), "median": median(words), "most": max(words)} if words else {},
        detectable={plan: planned_detectable(sizes, correlation=r) or 0.0 for plan, r in plans.items()},
        reviewed=_reviewed(benchmark) if benchmark.header.quick else {},
        notes=tuple(str(note) for note in notes) if isinstance(notes, list) else (),
        **{name: {str(number): counts[number] for number in sorted(counts)} for name, counts in numbers.items()},
        **{name: _by_frequency(counts) for name, counts in counted.items()},
    )


def _reviewed(benchmark: Benchmark) -> Counts:
    """Return the number of questions with a recorded decision of a person, and with one of a model."""
    file = pack_path(benchmark.name).with_name(f"{benchmark.name}.review.jsonl")
    decisions = [*map(orjson.loads, file.read_bytes().splitlines() if file.is_file() else ())]
    kinds = {"people": True, "models": False}
    return {
        kind: len({each["sample"] for each in decisions if each["person"] is person}) for kind, person in kinds.items()
    }


_NUMBERS = ("steps_per_question", "tools_per_question", "files_per_question")
_COUNTED = (
    *("tools", "questions_with_tool", "combinations", "category_combinations", "answer_types", "slots", "families"),
    *("task_types", "sources"),
)


@cache
def _category(tool: str) -> str:
    """Return the category in the specification of an installed tool, or "other"."""
    from agrotools.tools import get_tool

    try:
        return get_tool(tool).spec.category
    except UsageError:
        return "other"


def _by_frequency(counts: Counter[str]) -> Counts:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _sort_counts(counts: Counter[str]) -> Counts:
    """Sort counts by number if all values are numbers, otherwise by frequency."""
    if all(value.isdecimal() for value in counts):
        return {value: counts[value] for value in sorted(counts, key=int)}
    return _by_frequency(counts)
