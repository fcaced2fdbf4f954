"""Plug-ins of AgriEval and of CMMLU's agronomy questions, which are asked and scored alike, and their slots."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agrotools.benchmarks.counts import count_answers
from agrotools.core import Slot
from agrotools.plugin import BenchmarkPlugin, Download, ExpectedCount, MetricInfo, PublishedFiles, deferred

OptionKind = Literal["single", "multiple", "true_false"]
KINDS: Mapping[str, OptionKind] = {"单选": "single", "多选": "multiple", "判断": "true_false"}
"""Kinds of questions by their names in the files."""


class OptionsSlot(Slot):
    """Correct options of an examination question, by their letters. ``options``: text of each option as shown, by
    letter."""

    scored_apart: ClassVar[bool] = True
    type: Literal["options"] = "options"
    kind: OptionKind
    value: Annotated[tuple[str, ...], Field(min_length=1)]
    options: dict[str, str]

    @property
    def expected_text(self) -> str:
        return f"{', '.join(self.value)} (of {', '.join(f'{key} {text}' for key, text in self.options.items())})"

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(self.options)

    @property
    def takes_several(self) -> bool:
        return self.kind == "multiple"

    @property
    def right_text(self) -> str:
        return "".join(self.value)

    @property
    def comparable_value(self) -> str:
        return "".join(self.value)


class ReferenceTextSlot(Slot):
    """Free text, scored by its overlap with the text ``value``."""

    scored_apart: ClassVar[bool] = True
    free_text: ClassVar[bool] = True
    type: Literal["reference_text"] = "reference_text"
    value: Annotated[str, Field(min_length=1)]

    @property
    def right_text(self) -> str:
        return self.value


ROUGES = ("rouge_1", "rouge_2", "rouge_l", "hf_rouge1", "hf_rouge2", "hf_rougel", "hf_rougelsum")
"""Overlap metrics computed by AgriEval's own code; metric ids are ``agrieval.NAME_published``."""


def _files_of(name: str) -> dict[str, Any]:
    """Return the arguments of a plug-in that find and load its files."""
    functions = {"load": "load_questions", "find": "found_files"}
    room = "agrotools.benchmarks.agrieval.load"
    return {part: partial(deferred(f"{room}:{function}"), name) for part, function in functions.items()}


def _has_options(slot: Slot) -> bool:
    return isinstance(slot, OptionsSlot)


def has_text(slot: Slot) -> bool:
    return isinstance(slot, ReferenceTextSlot)


def _of_options(label: str, meaning: str) -> MetricInfo:
    return MetricInfo(label, meaning, slots=_has_options)


def _of_text(label: str, meaning: str) -> MetricInfo:
    return MetricInfo(label, meaning, slots=has_text)


def _on_request(label: str, meaning: str) -> MetricInfo:
    return MetricInfo(label, meaning, slots=has_text, on_request=True)


METRICS = {
    "agrieval.accuracy": MetricInfo(
        "Accuracy",
        "the very set of right options",
        slots=_has_options,
        scores_sample=True,
        compared_in=("no-tool",),
    ),
    "agrieval.partial": _of_options("Partial", "share of the right options given, 0 where a wrong one was"),
    "agrieval.accuracy_lexeval": _of_options("Acc. LexEval", "accuracy with answers read by the rule of LexEval"),
    "agrieval.accuracy_published": _of_options("Acc. published", "mean credit of the scorer in AgriEval's repository"),
    "agrieval.likelihood": MetricInfo(
        "Likelihood", "the likeliest letter of the first token is right", slots=_has_options, on_request=True
    ),
    "agrieval.rouge_l": MetricInfo(
        "ROUGE-L",
        "overlap with the reference text, by characters",
        slots=has_text,
        scores_sample=True,
        compared_in=("no-tool",),
    ),
    "agrieval.rouge_l_normalised": _of_text("ROUGE-L norm.", "the same without punctuation, spaces and case"),
    **{
        f"agrieval.{name}_published": _of_text(
            name.replace("hf_rouge", "rouge-score: ").replace("rouge_", "ROUGE-").upper() + " published",
            "overlap with the reference text as the code in AgriEval's repository has it: by words between spaces"
            if name.startswith("rouge")
            else "the same by the package rouge-score: by words of a to z and digits",
        )
        for name in ROUGES
    },
    "agrieval.rouge_l_lexeval": _on_request(
        "ROUGE-L LexEval", "overlap by words of jieba, as the code of LexEval has it"
    ),
    "agrieval.similarity_minilm": _on_request(
        "Similarity (MiniLM)", "cosine of sentence embeddings of all-MiniLM-L6-v2 (English)"
    ),
    "agrieval.similarity_mpnet": _on_request(
        "Similarity (mpnet)", "cosine of sentence embeddings of all-mpnet-base-v2 (English)"
    ),
    "agrieval.judge": MetricInfo(
        "Judge",
        "grade of a model that compares the answer with the reference text",
        slots=has_text,
        on_request=True,
        by_judge=True,
    ),
}
"""Metrics of examination questions; see :mod:`agrotools.benchmarks.agrieval.score`."""

AGRIEVAL = BenchmarkPlugin(
    name="agrieval",
    about="examination questions on agriculture, in Chinese, without tools",
    needs="DIR/AgriEval/Dataset/*.json of github.com/YanPioneer/AgriEval",
    download=Download(
        "https://github.com/YanPioneer/AgriEval/tree/HEAD/Dataset",
        "Apache-2.0 file and AgriBench community licence: non-commercial use",
        "AgriEval/Dataset",
    ),
    takes_options=True,
    **_files_of("agrieval"),
    expected=(
        # Table 1 of the paper.
        ExpectedCount("multiple-choice questions", 14697, True, count_answers("exact")),
        ExpectedCount("open questions", 2167, True, count_answers("open_text")),
    ),
    without_tools=True,
    slots=(OptionsSlot, ReferenceTextSlot),
    metrics=METRICS,
    published=PublishedFiles("agrotools.benchmarks.agrieval", "agrieval"),
    predictions={"agrieval": "agrotools.benchmarks.agrieval.predictions:FORMAT"},
    scoring_target="agrotools.benchmarks.agrieval.score:SCORING",
    judging_target="agrotools.benchmarks.agrieval.score:JUDGING",
    reporting_target="agrotools.benchmarks.agrieval.report:REPORTING",
)
CMMLU_AGRONOMY = BenchmarkPlugin(
    name="cmmlu-agronomy",
    about="questions on agronomy, in Chinese, without tools",
    needs="DIR/cmmlu/agronomy.csv, data/test/agronomy.csv of github.com/haonan-li/CMMLU",
    download=Download(
        "https://github.com/haonan-li/CMMLU/tree/HEAD/data/test/agronomy.csv", "CC BY-NC-SA 4.0", "cmmlu"
    ),
    takes_options=True,
    **_files_of("cmmlu-agronomy"),
    without_tools=True,
    # Slots and metrics are those of AgriEval.
    scoring_target="agrotools.benchmarks.agrieval.score:SCORING",
)
