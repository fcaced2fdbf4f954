"""From the records of a run to its summary."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agrotools.core import Record, Score
from agrotools.scoring.knowledge_answers import Extras
from agrotools.scoring.outcome import outcome_scores
from agrotools.scoring.reference.agrieval_open import ROUGES
from agrotools.scoring.sample_units import SampleTable, is_invalid
from agrotools.scoring.steps import step_scores
from agrotools.scoring.summary import Comparison, Summary
from agrotools.scoring.tally import Tally, comparison


@dataclass(frozen=True)
class MetricInfo:
    """What a metric id means to a reader."""

    label: str
    meaning: str
    lower_is_better: bool = False
    out_of: int = 100
    """What 1 is shown as: values are percent, points of 10, or as they are (1)."""


_AGENT_X = {
    "ground_s": ("Ground_s", "steps are borne out by input and reference"),
    "tool_p": ("Tool_p", "each step calls the tool of the reference"),
    "tool_acc": ("Tool_acc", "outputs are such as the tools give"),
    "faith_acc": ("Faith", "the plan follows the reference"),
    "context_s": ("Context_s", "steps use what is given"),
    "fact_p": ("Fact_p", "nothing is invented"),
    "sem_acc": ("Sem_acc", "all that matters is covered"),
    "goal_acc": ("Goal", "the answer is that of the reference"),
    "toolset_acc": ("Tool_acc_s", "the set of tools is that of the reference"),
    "step_s": ("Step_s", "steps go on from each other"),
    "clarity": ("Clarity", "every step is clear"),
    "reward": ("Reward", "later steps put earlier ones right"),
}
"""The criteria of Agent-X (arXiv 2505.24876)."""
METRICS: dict[str, MetricInfo] = {
    "agrotools.fas": MetricInfo("FAS", "Final Answer Score: mean over the slots of a sample"),
    "agrotools.guess": MetricInfo("Guess", "FAS of the answer that the prompt alone suggests, seeing no file"),
    "agrotools.css": MetricInfo("CSS", "Closed-Slot Score: labels, yes/no, sets, files and numbers"),
    "agrotools.ots": MetricInfo("OTS", "Open-Text Score: key facts stated"),
    "agrotools.ots_apart": MetricInfo("OTS apart", "Open-Text Score of slots that count in no headline"),
    "agrotools.plot": MetricInfo("Plot", "Plot Score: the data, kind and labels of the figure drawn"),
    "agrotools.st_acc": MetricInfo("STAcc", "predicted step type (call or answer) is right"),
    "agrotools.tool_acc": MetricInfo("ToolAcc", "right tool at steps that call one"),
    "agrotools.tool_acc_strict": MetricInfo("ToolAcc strict", "right tool in the written order"),
    "agrotools.tool_acc_guess": MetricInfo("ToolAcc guess", "ToolAcc of the usual plan for such an answer form"),
    "agrotools.arg_acc": MetricInfo("ArgAcc", "right tool and every argument agrees"),
    "agrotools.arg_acc_strict": MetricInfo("ArgAcc strict", "arguments equal those written, in the written order"),
    "agrotools.arg_acc_guess": MetricInfo("ArgAcc guess", "ArgAcc of the usual plan for such an answer form"),
    "agrotools.ear": MetricInfo("EAR", "answered where a call was due; lower is better", lower_is_better=True),
    "agrotools.summ_acc": MetricInfo("SummAcc", "final answer against what the shown observations imply"),
    "agrotools.summ_acc_truth": MetricInfo("SummAcc truth", "final answer against the ground truth"),
    "agrotools.call_ratio": MetricInfo(
        "Calls/needed",
        "calls made over calls of the reference, mean over answered samples; 1: as many as needed",
        out_of=1,
    ),
    "agrieval.accuracy": MetricInfo("Accuracy", "the very set of right options"),
    "agrieval.partial": MetricInfo("Partial", "share of the right options given, 0 where a wrong one was"),
    "agrieval.accuracy_lexeval": MetricInfo("Acc. LexEval", "accuracy with answers read by the rule of LexEval"),
    "agrieval.accuracy_published": MetricInfo("Acc. published", "mean credit of the scorer in AgriEval's repository"),
    "agrieval.likelihood": MetricInfo("Likelihood", "the likeliest letter of the first token is right"),
    "agrieval.rouge_l": MetricInfo("ROUGE-L", "overlap with the reference text, by characters"),
    "agrieval.rouge_l_normalised": MetricInfo("ROUGE-L norm.", "the same without punctuation, spaces and case"),
    **{
        f"agrieval.{name}_published": MetricInfo(
            name.replace("hf_rouge", "rouge-score: ").replace("rouge_", "ROUGE-").upper() + " published",
            "overlap with the reference text as the code in AgriEval's repository has it: by words between spaces"
            if name.startswith("rouge")
            else "the same by the package rouge-score: by words of a to z and digits",
        )
        for name in ROUGES
    },
    "agrieval.rouge_l_lexeval": MetricInfo(
        "ROUGE-L LexEval", "overlap by words of jieba, as the code of LexEval has it"
    ),
    "agrieval.similarity_minilm": MetricInfo(
        "Similarity (MiniLM)", "cosine of sentence embeddings of all-MiniLM-L6-v2 (English)"
    ),
    "agrieval.similarity_mpnet": MetricInfo(
        "Similarity (mpnet)", "cosine of sentence embeddings of all-mpnet-base-v2 (English)"
    ),
    "agrieval.judge": MetricInfo("Judge", "grade of a model that compares the answer with the reference text"),
    "agrotools.ots_judge": MetricInfo("OTS judge", "grade of a model that looks for the key facts in the answer"),
    "thinkgeo.llm_score": MetricInfo("LLM judge", "a model says yes to every question on the answer, as published"),
    "thinkgeo.llm_score_corrected": MetricInfo("LLM judge*", "the same, where a reply may say more than yes"),
    "gta2.gpt_score": MetricInfo(
        "gpt_score",
        "weighted mean of a judge's grades, 0 to 10, read as published; the judge is asked in words of ours",
        out_of=10,
    ),
    "gta2.score_corrected": MetricInfo("Score*", "the same as a share, where a reply that cannot be read has no grade"),
    **{f"agent_x.{name}": MetricInfo(label, f"{meaning}; by a judge") for name, (label, meaning) in _AGENT_X.items()},
}


def score_record(record: Record, extras: Extras | None = None) -> list[Score]:
    """All score rows of a record. An invalid record has none. ``extras``: metrics computed only when asked for.

    Raises:
        RunStoreError: the record does not hold what its mode needs.
        BenchmarkError: the gold of the sample cannot be scored against.
    """
    if is_invalid(record):
        return []
    return step_scores(record) if record.mode == "step-by-step" else outcome_scores(record, extras)


def summarise(
    records: Sequence[Record],
    scores: Sequence[Sequence[Score]] | None = None,
    *,
    allow_invalid: bool = False,
    **said: Any,
) -> Summary:
    """The metrics of a run with intervals and counts. A :class:`Tally` does the same record by record.

    Args:
        records: one per sample, mode and epoch, in any order.
        scores: the rows of each record, parallel to ``records``; computed with :func:`score_record` if None.
        allow_invalid: let a mode have a headline with more than 1 % invalid records.
        said: what the summary says of itself: ``benchmark``, ``model``... (see :class:`Summary`).
    """
    tally = _tallied(records, scores, SampleTable())
    if tally.wants_answers:
        for record in records:
            tally.add_answer(record)
    return tally.summary(allow_invalid=allow_invalid).model_copy(update=said)


def compare(
    first: Sequence[Record],
    second: Sequence[Record],
    *,
    first_scores: Sequence[Sequence[Score]] | None = None,
    second_scores: Sequence[Sequence[Score]] | None = None,
    names: tuple[str, str] = ("", ""),
    synthetic: bool = False,
) -> Comparison:
    """Differences of two runs, first minus second, paired on the samples (steps) that both have valid records of.

    ``synthetic``: whether their benchmark is drawn by code, which the comparison then says.
    """
    table = SampleTable()
    compared = comparison(_tallied(first, first_scores, table), _tallied(second, second_scores, table), names)
    return compared.model_copy(update={"synthetic": synthetic})


def _tallied(records: Sequence[Record], scores: Iterable[Sequence[Score]] | None, table: SampleTable) -> Tally:
    tally = Tally(table)
    for record, rows in zip(records, map(score_record, records) if scores is None else scores, strict=True):
        tally.add(record, rows)
    return tally
