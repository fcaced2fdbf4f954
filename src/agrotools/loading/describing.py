"""Statistics of a benchmark as in the papers of GTA, ThinkGeo and Agent-X: steps, tools, files, answers."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from statistics import median
from typing import Any

import orjson

from agrotools.core import FAMILIES, FrozenModel, Sample, UsageError
from agrotools.formats.benchmark import Benchmark
from agrotools.packages import packaged_file
from agrotools.plugin.installed import plugins
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


def count_samples(
    samples: Iterable[Sample], frames: Collection[str] = ()
) -> Mapping[str, Counter[Any]]:
    """Return counts over samples by the names of the fields of :class:`Description`, and some more.

    Of numbers of steps and tools, only samples with a reference count. ``tasks``: by task type and answer type;
    ``clusters``, ``templates``, ``languages``, ``groups`` (by group and value), ``kind_of`` (kind of each file).
    ``frames``: first parts of the paths of frames of videos.
    """
    counts: defaultdict[str, Counter[Any]] = defaultdict(Counter)
    kinds: dict[str, str] = {}
    published = [table for plugin in plugins() for table in plugin.paper.tool_categories.items()]
    categories = {tool: category for category, tools in published for tool in tools}
    for sample in samples:
        frame = {file.path: file.path.partition("/")[0] in frames for file in sample.files}
        kinds |= {
            file.path: "frame of a video" if frame[file.path] else file.kind
            for file in sample.files
        }
        single = {
            **{
                "answer_types": sample.answer_type,
                "task_types": sample.task_type,
                "sources": sample.source,
            },
            **{
                "families": FAMILIES.get(sample.family, sample.family),
                "files_per_question": len(sample.files),
            },
            **{
                "clusters": sample.cluster,
                "templates": sample.template,
                "no_tool": sample.no_tool_eligible,
            },
            "languages": "zh" if _CJK.search(sample.query) else "en",
            "words": count_words(sample.query),
        }
        if sample.reference is not None:
            called = sample.reference.tools
            distinct = sorted(set(called))
            of_tools = sorted({categories.get(tool) or _category(tool) for tool in distinct})
            single |= {"steps_per_question": len(called), "tools_per_question": len(distinct)}
            single |= {"combinations": " + ".join(distinct) or "none"}
            single |= {"category_combinations": " + ".join(of_tools) or "none"}
            counts["tools"].update(called)
            counts["questions_with_tool"].update(distinct)
        for name, value in single.items():
            counts[name][value] += 1
        counts["slots"].update(slot.type for slot in sample.answer)
        counts["groups"].update(sample.groups.items())
    counts["file_kinds"].update(kinds.values())
    return counts


_CJK = re.compile(r"[㐀-鿿豈-﫿]")


def describe(benchmark: Benchmark) -> Description:
    """Compute the statistics of ``benchmark``."""
    counts = count_samples(benchmark.samples, benchmark.external_folders)
    questions, words = counts["families"].total(), sorted(counts["words"].elements())
    modes = {
        "no-tool": counts["no_tool"][True],
        "step-by-step": counts["steps_per_question"].total(),
    }
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for (group, value), count in sorted(counts["groups"].items()):
        groups[group][value] = count
    notes = benchmark.header.metadata.get("notes")
    sizes = [*counts["clusters"].values()]
    plans = {"independent": 0.0, "paired": 0.3} if len(sizes) > 1 else {}
    return Description(
        name=benchmark.name,
        version=benchmark.version,
        licence=benchmark.licence,
        description=benchmark.header.description,
        synthetic=benchmark.synthetic,
        questions=questions,
        clusters=len(sizes),
        calls=counts["tools"].total(),
        files=counts["file_kinds"].total(),
        offered_tools=len(benchmark.toolset),
        modes={mode: modes.get(mode, questions) for mode in benchmark.modes},
        groups={group: _in_order(members) for group, members in groups.items()},
        words_per_question={"least": words[0], "median": median(words), "most": words[-1]}
        if words
        else {},
        detectable={
            plan: planned_detectable(sizes, correlation=r) or 0.0 for plan, r in plans.items()
        },
        reviewed=_reviewed(benchmark) if benchmark.header.quick else {},
        notes=tuple(str(note) for note in notes) if isinstance(notes, list) else (),
        **{name: _in_order(counts[name]) for name in _COUNTED},
    )


def _reviewed(benchmark: Benchmark) -> Counts:
    """Return the number of questions with a recorded decision of a person, and with one of a model."""
    file = packaged_file(f"{benchmark.name}.review.jsonl")
    reviewed: dict[str, set[str]] = {"people": set(), "models": set()}
    for decision in map(orjson.loads, file.read_bytes().splitlines() if file else ()):
        reviewed["people" if decision["person"] else "models"].add(decision["sample"])
    return {kind: len(samples) for kind, samples in reviewed.items()}


_COUNTED = (
    *(
        "steps_per_question",
        "tools_per_question",
        "files_per_question",
        "tools",
        "questions_with_tool",
        "combinations",
    ),
    *(
        "category_combinations",
        "answer_types",
        "slots",
        "families",
        "task_types",
        "sources",
        "file_kinds",
    ),
)


@cache
def _category(tool: str) -> str:
    """Return the category in the specification of an installed tool, or "other"."""
    from agrotools.calling import get_tool

    try:
        return get_tool(tool).spec.category
    except UsageError:
        return "other"


def _in_order(counts: Counter[Any]) -> Counts:
    """Return counts by number if all values are numbers, otherwise the most frequent first."""
    if all(str(value).isdecimal() for value in counts):
        return {str(value): counts[value] for value in sorted(counts, key=int)}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
