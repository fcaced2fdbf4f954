"""Counts of a run (terminations, errors, steps, tokens, seconds) and reasons for records without an answer.

Valid records come in one by one (:meth:`EventCounts.add`), and :class:`agrotools.scoring.summary.Counts` go out. The
second half turns the counts of a mode into words: how its records ended, what makes its scores doubtful, and what to
try. Counts change no score.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from statistics import median
from typing import Any

from agrotools.calling import get_tool
from agrotools.core import (
    Action,
    Answer,
    CallTools,
    Halt,
    Mode,
    Record,
    Sample,
    Score,
    Step,
    ToolCall,
    Trajectory,
    Unparseable,
    UsageError,
)
from agrotools.core.form_item import asked_items
from agrotools.core.record import UNREAD_CALL, UNREAD_CALLS
from agrotools.core.slot import counts_in_headline
from agrotools.core.texts import count_text
from agrotools.scoring.attribution import CAUSES, TOOL
from agrotools.scoring.constant_arguments import ConstantArgumentTally
from agrotools.scoring.metrics import FAS_TEXT, SLOT_METRIC, is_invalid, scores_sample
from agrotools.scoring.statistics import ROUNDING
from agrotools.scoring.summary import (
    Amount,
    CallRatio,
    Counts,
    MissingBackend,
    ModeSummary,
    NoForm,
    Unread,
)
from agrotools.text.answer_reader import lacks_form
from agrotools.text.turns import runs_on

TRUTH_METRIC = "summ_acc_truth"
"""Metric of the answer step, which every sample with a slot other than plots has."""

_RULES_OF_WORDS = {
    "open_text": "facts named",
    "keywords": "exact keywords",
    "reference_texts": "overlap of words",
}
"""Rules that score text at the answer step, by type of slot; a judge grades outcomes alone."""


class EventCounts:
    """Counter of events in the valid records of one mode."""

    def __init__(self) -> None:
        self._n = 0
        self._step_by_step = False
        self._successes = 0
        self._counts = Counter[str]()
        """Numbers of events by field of :class:`Counts`, and of ``made`` and ``needed`` calls of the call ratio."""
        self._terminations = Counter[str]()
        self._errors = Counter[str]()
        self._missing_backends = Counter[str]()
        """Number of records in which a tool had no back-end, by tool."""
        self._setups: dict[str, str] = {}
        """What to set up, by tool: the first text of each."""
        self._jaccards = array("d")
        self._ious = array("d")
        self._differing: set[str] = set()
        self._canaries: list[str] = []
        self._rules_of_words = Counter[str]()
        self._first_unread = ""
        """What the first call that was not read is, in words."""
        self._totals = defaultdict[str, float](float)
        self._known = Counter[str]()
        """Number of records in each total."""
        self._ratios = array("d")
        """Ratios of calls made to calls needed in the answered end-to-end records."""
        self._constant = ConstantArgumentTally()

    @property
    def formless(self) -> int:
        """Number of answers of an agent that takes no closing message."""
        return self._counts["formless"]

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """Add a valid record and its score rows."""
        self._n += 1
        of_sample = next((row.value for row in rows if scores_sample(row.metric)), 0.0)
        self._successes += of_sample >= 1 - ROUNDING
        if record.trajectory:
            self._add_trajectory(record, record.trajectory)
        if record.mode == "end-to-end":
            self._constant.add(record)
        if record.actions is not None:
            self._add_actions(record, record.actions, rows)
        self._jaccards.extend(
            _numbers([row.reading.get("jaccard") for row in rows if row.metric == SLOT_METRIC])
        )
        self._counts["ran_on"] += any(runs_on(reply.text) for reply in record.replies)
        if _gives_canary(record):
            self._canaries.append(record.sample.id)
        for name, amount in _spent(record).items():
            self._totals[name] += amount
            self._known[name] += 1

    def _add_trajectory(self, record: Record, made: Trajectory) -> None:
        self._terminations[made.termination] += 1
        if made.termination == "max_steps" and made.answer is not None:
            self._counts["answered_at_limit"] += 1
        has_unread_call = False
        without_backend = set[str]()
        for step in made.steps:
            self._counts["formless"] += step.formless
            self._counts["unparseable"] += step.kind == "unparseable"
            self._counts["tool_calls"] += step.kind == "call"
            self._counts["recorded"] += step.source == "recording"
            if step.call:
                self._counts["read_texts"] += _texts_read(step.call, record.sample)
            if step.observation and step.observation.error:
                self._errors[step.observation.error.kind] += 1
            if step.call and (setup := _missing_setup(step, record.sample)):
                without_backend.add(step.call.tool)
                self._setups.setdefault(step.call.tool, setup)
            if step.kind == "unparseable" and step.reason.startswith(UNREAD_CALLS):
                has_unread_call = True
                self._note_unread(step.reason)
        self._counts["unread_calls"] += has_unread_call
        self._missing_backends.update(without_backend)
        needed = len(record.sample.reference.steps) if record.sample.reference else 0
        if record.mode == "end-to-end" and needed and made.answer_text is not None:
            self._ratios.append(len(made.calls) / needed)
            self._counts["made"] += len(made.calls)
            self._counts["needed"] += needed

    def _note_unread(self, reason: str) -> None:
        self._first_unread = self._first_unread or reason.removeprefix(UNREAD_CALL).strip(": .")

    def _add_actions(
        self, record: Record, actions: Sequence[Action], rows: Sequence[Score]
    ) -> None:
        self._step_by_step = True
        unread = [each for each in actions if isinstance(each, Unparseable)]
        self._counts["unparseable"] += len(unread)
        unread_calls = [each for each in unread if each.reason.startswith(UNREAD_CALLS)]
        self._counts["unread_calls"] += bool(unread_calls)
        for each in unread_calls:
            self._note_unread(each.reason)
        for action in actions:
            if isinstance(action, Halt):
                self._terminations[action.termination] += 1
            elif isinstance(action, Answer) and lacks_form(
                action, asked_items(record.sample.answer)
            ):
                self._terminations["no_form"] += 1
            elif isinstance(action, CallTools):
                self._counts["tool_calls"] += len(action.calls)
                self._counts["unscored_calls"] += len(action.calls) - 1
                self._counts["read_texts"] += sum(
                    _texts_read(call, record.sample) for call in action.calls
                )
        self._ious.extend(_box_ious(rows))
        summed = [row for row in rows if row.metric == TRUTH_METRIC]
        if any(row.reading.get("differs") for row in summed):
            self._differing.add(record.sample.id)
        if summed:
            types = {slot.type for slot in record.sample.answer if counts_in_headline(slot)}
            self._rules_of_words.update(
                _RULES_OF_WORDS[each] for each in types & {*_RULES_OF_WORDS}
            )

    def call_ratio(self) -> CallRatio | None:
        """Return the ratio of calls made to calls needed; None if no answered end-to-end record needs calls."""
        if not (n := len(self._ratios)):
            return None
        return CallRatio(
            mean=sum(self._ratios) / n,
            n=n,
            made=self._counts["made"],
            needed=self._counts["needed"],
        )

    def counts(self, n_right: int = 0, n_alone: int = 0) -> Counts:
        """Return the counts of all added records.

        ``n_right``: unanswerable samples with a score of 1; ``n_alone``: those that are left out of FAS."""
        successes = None if self._step_by_step else self._successes + n_right
        # The other counts are those of the call ratio.
        of_fields = {name: n for name, n in self._counts.items() if name in Counts.model_fields}
        jaccard = sum(self._jaccards) / len(self._jaccards) if self._jaccards else None
        return Counts(
            **of_fields,
            successes=successes,
            without_twin=n_alone,
            terminations=_by_frequency(self._terminations),
            failed_calls=_by_frequency(self._errors),
            missing_backends=tuple(
                MissingBackend(tool=tool, samples=n, setup=self._setups[tool])
                for tool, n in _by_frequency(self._missing_backends).items()
            ),
            median_box_iou=median(self._ious) if self._ious else None,
            words_in_answers=_by_frequency(self._rules_of_words),
            implied_differs=len(self._differing),
            canaries=tuple(self._canaries),
            first_unread=self._first_unread,
            constant_arguments=self._constant.found(),
            choice_set_jaccard=jaccard,
            spent={name: self._amount(name, successes) for name in self._totals},
        )

    def _amount(self, name: str, successes: int | None) -> Amount:
        """Return what was spent in all, per record, and per success if it is known of every record."""
        total, n_known = self._totals[name], self._known[name]
        known_of_all = n_known == self._n
        return Amount(
            total=total,
            per_record=total / n_known,
            per_success=total / successes if successes and known_of_all else None,
        )


def _missing_setup(step: Step, sample: Sample) -> str:
    """Return what has to be set up for a call of the right argument to have a result; empty for other calls.

    A tool may lack a back-end for one value of an argument only, such as a crop. With another value than that of the
    reference, the model is to blame.
    """
    call, error = step.call, step.observation.error if step.observation else None
    if call is None or error is None or error.kind != "backend_unavailable" or not error.setup:
        return ""
    if error.argument is None or sample.reference is None:
        return error.setup
    wanted = [each for each in sample.reference.steps if each.tool == call.tool]
    given = call.arguments.get(error.argument)
    agrees = any(each.arguments.get(error.argument) == given for each in wanted)
    return error.setup if agrees else ""


def _texts_read(call: ToolCall, sample: Sample) -> int:
    """Return the number of arguments that the model wrote as text and the tool takes as another JSON value."""
    if not any(isinstance(value, str | list | dict) for value in call.arguments.values()):
        return 0
    with suppress(UsageError):  # there is no such tool
        read = get_tool(call.tool, sample.declared).read(call.arguments)
        return sum(value != call.arguments[name] for name, value in read.items())
    return 0


def _gives_canary(record: Record) -> bool:
    """Return True if the model wrote the canary GUID of the benchmark, which no prompt and no tool shows."""
    if not record.sample.canary:
        return False
    texts = [reply.text for reply in record.replies]
    for each in record.trajectory.steps if record.trajectory else record.actions or ():
        texts += [getattr(each, "text", ""), getattr(each, "thought", "")]
        calls = each.calls if isinstance(each, CallTools) else (getattr(each, "call", None),)
        texts += [str(call.arguments) for call in calls if call]
    return record.sample.canary.lower() in "\n".join(texts).lower()


def _box_ious(rows: Sequence[Score]) -> list[float]:
    """Return the IoU of every predicted box with the box of the compared reference call, 0 to 1."""
    compared: Any = [row.reading.get("arguments", ()) for row in rows if row.metric == "arg_acc"]
    return _numbers(
        each["detail"].get("iou")
        for arguments in compared
        for each in arguments
        if each["kind"] == "box"
    )


def _spent(record: Record) -> dict[str, float]:
    """Return what a record took, by name; amounts that are not known are left out."""
    steps = record.trajectory.steps if record.trajectory else ()
    spent: dict[str, float] = {}
    if record.trajectory:
        spent["turns"] = len({step.turn for step in steps})
    else:
        spent["turns"] = len(record.actions or ())
    for name, amount in record.spending._asdict().items():
        if amount is not None:
            spent[name] = amount
    if record.form_replies and record.agent_replies is None:
        spent["closing_tokens"] = sum(
            reply.usage.input_tokens + reply.usage.output_tokens for reply in record.form_replies
        )
    spent["seconds"] = record.seconds
    spent["tool_seconds"] = sum([step.seconds for step in steps])
    return spent


def _by_frequency(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _numbers(values: Iterable[object]) -> list[float]:
    return [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


INVALID = "infrastructure"
INVALID_TEXT = "are invalid, without a reply that could be scored"
REPORTED_SHARE = 0.05
"""Share of the records of a mode above which a cause of termination is reported."""
RESUME = " Run the agrotools eval command of this run again to resume."
UNRELATED_CAUSES = ("timeout", INVALID, "length", "context", "filtered")
"""Causes of termination that say nothing about the answer the model would have given."""

_CAUSES = {
    "timeout": (
        "ended by timeout: no complete reply or step in time",
        "try a larger --timeout or, for a model, a smaller --max-output-tokens",
    ),
    "length": (
        "ended at the token limit of a reply",
        "try a larger --max-output-tokens, or see with agrotools explain what it repeats",
    ),
    "context": (
        "ended because the conversation does not fit the model's context",
        "serve the model with a longer context, or try a smaller --max-output-tokens or --no-images; with another "
        "--out, because finished samples are not run again",
    ),
    "filtered": (
        "were stopped by a content filter",
        "see its output with agrotools explain, and try other settings of the filter or another endpoint",
    ),
    "unparseable": (
        "ended with output that is neither a call nor an answer",
        "look at one with agrotools explain, and try another --protocol",
    ),
    "no_form": (
        "did not give all values of the answer form",
        "look at one: agrotools explain RUN marks them as no_form",
    ),
    "max_steps": (
        "did not answer within --max-steps turns",
        "try a larger --max-steps (in Inspect -T max_steps=N)",
    ),
    INVALID: (
        INVALID_TEXT,
        "run the same command again, if necessary with a smaller --concurrency or a larger --timeout",
    ),
}


def ending_of(record: Record) -> str | None:
    """Return the reason why a record has no answer (step-by-step: at least half of its steps); None if it has one."""
    if is_invalid(record):
        return INVALID
    if record.trajectory is not None:
        return (
            None if record.trajectory.termination == "answered" else record.trajectory.termination
        )
    actions = record.actions or ()
    halts = [action.termination for action in actions if isinstance(action, Halt)]
    halts += ["unparseable" for action in actions if isinstance(action, Unparseable)]
    cause, n = Counter(halts).most_common(1)[0] if halts else ("", 0)
    return cause if cause and 2 * n >= len(actions) else None


def mostly_lost(part: ModeSummary) -> bool:
    """Return True if more than half of the records ended for reasons unrelated to the model's answers."""
    return 2 * sum(part.endings.get(cause, 0) for cause in UNRELATED_CAUSES) > part.n_records


def mostly_unread(endings: Mapping[str, int], n_records: int) -> bool:
    """Return True if more than half of the records ended with output that is neither a call nor an answer."""
    return 2 * endings.get("unparseable", 0) > n_records


def missing_of(modes: Mapping[Mode, ModeSummary], planned: Mapping[Mode, int]) -> dict[Mode, int]:
    """Return the number of ``planned`` records missing in each mode; complete modes are left out."""
    sizes = {mode: part.n_records for mode, part in modes.items()}
    return {mode: n - sizes.get(mode, 0) for mode, n in planned.items() if n > sizes.get(mode, 0)}


def no_form_lines(modes: Mapping[Mode, ModeSummary]) -> list[str]:
    """Return the share of answers without a complete form in each mode of a run of a prediction file."""
    lines: list[str] = []
    for mode, part in modes.items():
        form = part.no_form
        if form is None:
            continue
        of_answers = f"{form.of - form.n} of {count_text(form.of, 'answer')} in a complete form"
        if form.n:
            of_answers += (
                f": {_scores_without_form(mode, part, form)}. Give values as lines `name: value unit`, "
                "in one JSON object or in columns of their own"
            )
        lines.append(f"{mode}: no_form {100 * form.share:.1f} %: {of_answers}.")
        if part.unread is not None:
            lines.append(f"{mode}: {_unread_line(part.unread)}")
    return lines


_UNREAD_SHOWN = 3
"""Unread values that a line of the scores quotes."""


def _unread_line(unread: Unread) -> str:
    """Return how many values were not read, the first of them, and what they mean for a comparison."""
    quoted = [f"{each.sample} {each.item} '{each.text}'" for each in unread.values[:_UNREAD_SHOWN]]
    n = len(unread.values)
    more = ", ..." if n > _UNREAD_SHOWN else ""
    were = "was" if n == 1 else "were"
    return (
        f"{n} of {count_text(unread.of, 'value')} {were} not read and count 0; in comparisons they may be right. "
        f"{', '.join(quoted)}{more} (all: --json, unread)."
    )


def _scores_without_form(mode: Mode, part: ModeSummary, form: NoForm) -> str:
    """Return which scores there are where answers lack the form."""
    if not form.too_many or (mode != "step-by-step" and part.headline):
        return "the others score 0 in whole or in part"
    if mode == "step-by-step":
        return "no SummAcc"
    words = part.metrics.get(FAS_TEXT)
    if words is None:
        return "no FAS"
    return f"no FAS; FAS text, of the words, is {100 * words.overall.value:.1f}"


def warnings_of(
    modes: Mapping[Mode, ModeSummary], missing: Mapping[Mode, int], *, is_baseline: bool = False
) -> tuple[str, ...]:
    """Return a warning for each mode with missing records and each cause that ended over 5 % of a mode's records.

    Baselines do not end sooner with other settings, so their endings get no advice.
    """
    lines: list[str] = []
    for mode, n_missing in missing.items():
        n = modes[mode].n_records if mode in modes else 0
        lines.append(
            f"{mode}: {n_missing} of {n + n_missing} planned records are missing; the scores cover the other {n}."
            + RESUME
        )
    for mode, part in modes.items():
        lines += [f"{mode}: {warning}" for warning in _suspicions(part)]
        by_frequency = sorted(part.endings.items(), key=lambda item: (-item[1], item[0]))
        for cause, n in by_frequency:
            if is_reported(n, part):
                lines.append(f"{mode}: {_ending_text(cause, n, part, is_baseline=is_baseline)}")
    return tuple(lines)


def is_reported(n: int, part: ModeSummary) -> bool:
    """Return True if so many records of a mode have a fault that a warning names it."""
    return n > REPORTED_SHARE * part.n_records


def _suspicions(part: ModeSummary) -> Iterator[str]:
    """Yield what makes the scores of a mode doubtful: a canary in replies, calls or turns that a server mishandles."""
    counts = part.counts
    if counts.canaries:
        replies = count_text(len(counts.canaries), "reply", "replies")
        yield (
            f"{replies} (first: {counts.canaries[0]}) with the canary GUID of the benchmark, which no prompt shows: "
            "the model or agent has seen its files. Do not report these scores."
        )
    for missing in counts.missing_backends:
        if is_reported(missing.samples, part):
            yield missing_backend_text(missing, _share_of_records(missing.samples, part))
    if is_reported(counts.unread_calls, part):
        yield _unread_calls_text(counts, _share_of_records(counts.unread_calls, part))
    if is_reported(counts.ran_on, part):
        yield (
            f"in {_share_of_records(counts.ran_on, part)} a reply goes on with further turns behind the model's own, "
            "which are cut off. Check the chat template and the stop tokens of the server."
        )


def _unread_calls_text(counts: Counts, samples: str) -> str:
    """Return that a number of samples in words have calls that are not read, and what to do about it."""
    first = f" (first: {counts.first_unread})" if counts.first_unread else ""
    if not counts.tool_calls:
        return (
            f"{samples} have a call in a form that is not read{first}; no call was read. If the parser of the server "
            "does not fit the model, try --protocol react, or with vLLM --enable-auto-tool-choice "
            "--tool-call-parser NAME and the --reasoning-parser of the model."
        )
    return (
        f"{samples} have a call in a form that is not read{first}; other calls were read. "
        "Look at one with agrotools explain. --protocol react or another call parser of the server may help."
    )


def missing_backend_text(missing: MissingBackend, samples: str) -> str:
    """Return that a number of samples in words need a back-end that is missing, what this counts as, and what to do."""
    needs = "needs" if missing.samples == 1 else "need"
    setup = f"{missing.setup[0].upper()}{missing.setup[1:]}"
    counted = f"counted as {CAUSES[TOOL].label}"
    return (
        f"{samples} {needs} a back-end of {missing.tool} that is missing here ({counted}). {setup}."
    )


def _ending_text(cause: str, n: int, part: ModeSummary, *, is_baseline: bool) -> str:
    """Return how ``n`` records of a mode ended, and what to do about it."""
    what, advice = _CAUSES[cause]
    most_often = ""
    if cause == INVALID:
        reasons = part.invalid.reasons
        most_often = f" (most often: {max(reasons, key=lambda each: reasons[each])})"
    remark = ""
    if cause == "unparseable" and mostly_unread(part.endings, part.n_records):
        remark = ": the score says nothing about answers"
    if cause == "max_steps" and part.counts.answered_at_limit:
        remark = f"; {part.counts.answered_at_limit} of them answered when asked at the limit"
    text = f"{_share_of_records(n, part)} {what}{most_often}{remark}."
    return text if is_baseline else f"{text} {advice[0].upper()}{advice[1:]}."


def _share_of_records(n: int, part: ModeSummary) -> str:
    """Return a number of records of a mode in words: ``3 of 20 samples (15.0 %)``."""
    share = 100 * n / part.n_records
    return f"{n} of {count_text(part.n_records, 'sample')} ({share:.1f} %)"
