"""Statistics of a benchmark as in the papers of GTA, ThinkGeo and Agent-X: steps, tools, files, answers."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from statistics import median
from typing import Annotated, Any

import orjson
from pydantic import Field

from agrotools.core import FAMILIES, FrozenModel, Sample, UsageError
from agrotools.core.installed import plugins, scope_of
from agrotools.core.lazy import np
from agrotools.formats.benchmark import Benchmark
from agrotools.formats.funnel import Funnel
from agrotools.loading.easy import easy_answers
from agrotools.packages import packaged_file
from agrotools.scoring.constants import ConstantScores
from agrotools.scoring.metrics import CONSTANT_METRIC, GUESS_METRIC, counts_in_guess
from agrotools.scoring.open_text import count_words
from agrotools.scoring.slots import guess_points, pair_points
from agrotools.scoring.statistics import MIN_CLUSTERS, planned_detectable
from agrotools.scoring.unit_estimates import shown_mean

Counts = dict[str, int]

MOST_SAMPLES = 5000
"""Most samples of which floors are computed, so that a description comes within seconds."""
PAIRED_CORRELATION = 0.3
"""Correlation of the scores of two runs on the same samples for which a detectable difference is given."""


class DecidingCalls(FrozenModel):
    """Reference calls whose result decides: with that of another question in its place, the right answer changes.

    ``questions``: answerable ones whose true results are all known. ``calls``: those of them that another question has
    a result for. The two tables count questions by the different tools, and by the calls, whose result decides.
    """

    questions: int
    calls: int
    deciding: int
    tools_per_question: Counts
    calls_per_question: Counts


class TaskTypePlan(FrozenModel):
    """Difference that two runs must have on the questions of one task type, as in :attr:`Description.detectable`."""

    questions: int
    clusters: int
    detectable: dict[str, float]


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
    scope: str
    """What a score says, what it does not, and which task types are not asked; empty if the plug-in does not tell."""
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
    """Smallest difference between two runs of a mean score near 0.5 that is found with 80 % power at the 5 % level, as
    expected before any run: ``independent``, and ``paired`` on the same samples with scores correlated at 0.3, as
    ``agrotools compare`` does. Scores are taken to spread as much as they can (each is 0 or 1), and those of a cluster
    to correlate at 0.5. Empty with too few clusters for an interval.
    """
    by_task_type: dict[str, TaskTypePlan]
    """The same for the questions of each task type alone, the type with the most questions first."""
    reviewed: Counts = {}
    """Number of questions that people and models have reviewed (decisions in ``NAME.review.jsonl`` beside the pack)."""
    floors: dict[str, float] = {}
    """Score of each floor, ``guess`` and ``constant``, in [0, 1]; without constants if there are too few clusters."""
    floor: str = ""
    """The floor that runs print: the higher one; empty without any."""
    easy: tuple[str, ...] = ()
    """Kinds of answers that a constant meets too often, and what would help."""
    deciding: DecidingCalls | None = None
    """Calls whose result decides; None from :func:`describe`, and if no question has true results."""
    funnel: Annotated[Funnel | None, Field(exclude_if=lambda funnel: funnel is None)] = None
    """Counts of drafts by stage; None from :func:`describe`, and if no model drafted the questions."""
    notes: tuple[str, ...] = ()


def count_samples(
    samples: Iterable[Sample], frames: Collection[str] = ()
) -> Mapping[str, Counter[Any]]:
    """Return counts over samples by the names of the fields of :class:`Description`, and some more.

    More are ``clusters``, ``templates``, ``languages``, ``words`` of a query, ``no_tool`` (whether a sample can be run
    without tools) and ``groups`` (by group and value). Only samples with a reference count in numbers of steps and
    tools.
    ``frames``: first parts of the paths of frames of videos.
    """
    counts: defaultdict[str, Counter[Any]] = defaultdict(Counter)
    kinds: dict[str, str] = {}
    categories = _published_categories()
    for sample in samples:
        for file in sample.files:
            is_frame = file.path.partition("/")[0] in frames
            kinds[file.path] = "frame of a video" if is_frame else file.kind
        counts["answer_types"][sample.answer_type] += 1
        counts["task_types"][sample.task_type] += 1
        counts["sources"][sample.source] += 1
        counts["families"][FAMILIES.get(sample.family, sample.family)] += 1
        counts["files_per_question"][len(sample.files)] += 1
        counts["clusters"][sample.cluster] += 1
        counts["templates"][sample.template] += 1
        counts["no_tool"][sample.no_tool_eligible] += 1
        counts["languages"]["zh" if _CJK.search(sample.query) else "en"] += 1
        counts["words"][count_words(sample.query)] += 1
        counts["slots"].update(slot.type for slot in sample.answer)
        counts["groups"].update(sample.groups.items())
        if sample.reference is not None:
            _count_calls(sample.reference.tools, counts, categories)
    counts["file_kinds"].update(kinds.values())
    return counts


def _published_categories() -> dict[str, str]:
    """Return the category of each tool in the papers of the benchmarks."""
    categories: dict[str, str] = {}
    for plugin in plugins():
        for category, tools in plugin.paper.tool_categories.items():
            categories.update(dict.fromkeys(tools, category))
    return categories


def _count_calls(
    called: Sequence[str], counts: Mapping[str, Counter[Any]], categories: Mapping[str, str]
) -> None:
    """Add the calls of a reference to counts of steps and tools; ``categories``: by tool, as published."""
    tools = sorted(set(called))
    of_tools = sorted({categories.get(tool) or _category(tool) for tool in tools})
    counts["steps_per_question"][len(called)] += 1
    counts["tools_per_question"][len(tools)] += 1
    counts["combinations"][" + ".join(tools) or "none"] += 1
    counts["category_combinations"][" + ".join(of_tools) or "none"] += 1
    counts["tools"].update(called)
    counts["questions_with_tool"].update(tools)


_CJK = re.compile(r"[㐀-鿿豈-﫿]")


class ClusterWeights:
    """Sums of the weights, and of the squared weights, of the samples of each cluster."""

    def __init__(self) -> None:
        self._sums = defaultdict[str | None, float](float)
        self._squares = defaultdict[str | None, float](float)

    def add(self, sample: Sample) -> None:
        self._sums[sample.cluster] += sample.weight
        self._squares[sample.cluster] += sample.weight**2

    @property
    def n_clusters(self) -> int:
        return len(self._sums)

    def detectable(self) -> dict[str, float]:
        """Return the smallest difference of two runs that is found, by plan; see :func:`planned_detectable`.

        Empty with too few clusters for an interval.
        """
        if self.n_clusters < MIN_CLUSTERS:
            return {}
        sums, squares = [*self._sums.values()], [*self._squares.values()]
        plans = {"independent": 0.0, "paired": PAIRED_CORRELATION}
        return {
            plan: planned_detectable(sums, squares, correlation=correlation) or 0.0
            for plan, correlation in plans.items()
        }


class PlannedWeights:
    """Weights by cluster of all samples, and of those of each task type."""

    def __init__(self) -> None:
        self.overall = ClusterWeights()
        self._of_types = defaultdict[str, ClusterWeights](ClusterWeights)

    def counting(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Return the samples as they are, and add each to the sums."""
        for sample in samples:
            self.overall.add(sample)
            self._of_types[sample.task_type].add(sample)
            yield sample

    def by_task_type(self, questions: Counts) -> dict[str, TaskTypePlan]:
        """Return the plan of each task type; ``questions``: their number by task type."""
        return {
            task_type: TaskTypePlan(
                questions=number,
                clusters=self._of_types[task_type].n_clusters,
                detectable=self._of_types[task_type].detectable(),
            )
            for task_type, number in questions.items()
        }


def describe(benchmark: Benchmark) -> Description:
    """Compute the statistics of ``benchmark``."""
    weights = PlannedWeights()
    samples = weights.counting(benchmark.samples)
    counts = count_samples(samples, benchmark.external_folders)
    questions = counts["families"].total()
    words = sorted(counts["words"].elements())
    lengths: dict[str, float] = {}
    if words:
        lengths = {"least": words[0], "median": median(words), "most": words[-1]}
    # The other modes run all questions.
    modes = {
        "no-tool": counts["no_tool"][True],
        "step-by-step": counts["steps_per_question"].total(),
    }
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for (group, value), count in sorted(counts["groups"].items()):
        groups[group][value] = count
    notes = benchmark.header.metadata.get("notes")
    floors = _floors(benchmark.samples) if questions <= MOST_SAMPLES else {}
    easy = easy_answers(benchmark.samples) if questions <= MOST_SAMPLES else []
    counted = {name: _in_order(counts[name]) for name in _COUNTED}
    return Description(
        name=benchmark.name,
        version=benchmark.version,
        licence=benchmark.licence,
        description=benchmark.header.description,
        scope=scope_of(benchmark.name),
        synthetic=benchmark.synthetic,
        questions=questions,
        clusters=weights.overall.n_clusters,
        calls=counts["tools"].total(),
        files=counts["file_kinds"].total(),
        offered_tools=len(benchmark.toolset),
        modes={mode: modes.get(mode, questions) for mode in benchmark.modes},
        groups={group: _in_order(members) for group, members in groups.items()},
        words_per_question=lengths,
        detectable=weights.overall.detectable(),
        by_task_type=weights.by_task_type(counted["task_types"]),
        reviewed=_reviewed(benchmark) if benchmark.header.quick else {},
        floors=floors,
        floor=max(floors, key=lambda name: floors[name], default=""),
        easy=tuple(each.sentence() for each in easy),
        deciding=None,
        funnel=None,
        notes=tuple(str(note) for note in notes) if isinstance(notes, list) else (),
        **counted,
    )


def _floors(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the Final Answer Score of each floor by name; empty if no answer counts in it."""
    scores = ConstantScores()
    weights: list[float] = []
    of_guess: list[float] = []
    refuses: dict[str, bool] = {}
    unanswerable: list[Sample] = []
    for sample in samples:
        if not sample.answerable:
            unanswerable.append(sample)
        if any(map(counts_in_guess, sample.answer)):
            guess = guess_points(sample)
            refuses[sample.id] = guess.refuses
            if sample.answerable:
                scores.add(len(weights), sample, guess)
                weights.append(sample.weight)
                of_guess.append(guess.score)
    of_constants = scores.by_sample()
    constants = [of_constants.get(at, 0.0) for at in range(len(weights))]
    # A refusal counts beside that of the twin, and both floors refuse the same questions.
    pairs = [each for each in unanswerable if each.twin in refuses]
    of_pairs = [
        pair_points(refused=refuses[each.id], twin_refused=refuses[str(each.twin)])
        for each in pairs
    ]
    weights += [each.weight for each in pairs]
    if not weights:
        return {}
    floors = {GUESS_METRIC: shown_mean(np.array(of_guess + of_pairs), np.array(weights))}
    if of_constants:
        floors[CONSTANT_METRIC] = shown_mean(np.array(constants + of_pairs), np.array(weights))
    return floors


def _reviewed(benchmark: Benchmark) -> Counts:
    """Return the number of its questions with a recorded decision of a person, and with one of a model."""
    own = {sample.id for sample in benchmark.samples}
    file = packaged_file(f"{benchmark.name}.review.jsonl")
    reviewed: dict[str, set[str]] = {"people": set(), "models": set()}
    for decision in map(orjson.loads, file.read_bytes().splitlines() if file else ()):
        reviewed["people" if decision["person"] else "models"].add(decision["sample"])
    return {kind: len(samples & own) for kind, samples in reviewed.items()}


_COUNTED = (
    "steps_per_question",
    "tools_per_question",
    "files_per_question",
    "tools",
    "questions_with_tool",
    "combinations",
    "category_combinations",
    "answer_types",
    "slots",
    "families",
    "task_types",
    "sources",
    "file_kinds",
)
"""Fields of a description that are counts over all samples."""


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
