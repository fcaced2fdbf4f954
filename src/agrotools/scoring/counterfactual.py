"""Score of a sample with parts of its trajectory replaced by the reference or the truth.

A coalition is a set of parts (see :mod:`agrotools.scoring.attribution`). The steps of the reference are evaluated in
order; a call of the run belongs to the unused step of the same tool with the fewest disagreeing arguments. Then

* ``planning`` replaced: missing calls are made, with the reference's arguments. What never happened counts as right:
  the arguments of a missing call, arguments whose inputs no earlier call gave, and the reading of results that were
  never there. Calls that an error of an earlier tool prevented are not missing. A sample that ended at a limit
  (``max_steps``, ``context``, ``timeout``) went on calling: planning.
* ``arguments`` replaced: arguments that disagree with the reference, given the results that the run had seen, are
  those of the reference. Arguments that agree stay, and follow the results that they refer to.
* ``fault`` replaced: a call that ``--faults`` hit returns what the tool itself returns.
* ``tool:NAME`` replaced: a call whose arguments and inputs are right, and that no fault hit, returns the truth. With
  wrong inputs the truth is not known, and the tool is run: so a tool that only calculates with wrong inputs is not
  blamed for them.
* ``reading`` replaced: a slot has the value of its ``from`` over the results. Not replaced, a slot that was read right
  follows the results, and one that was misread stays as it was given.
* ``form`` replaced: a value that is not given in the answer form, or that an unparseable or cut reply hides, is
  given in it. A form without the values that no result of the run gave is no fault of the form: what it does give
  waits for the results of the missing ones.

Only a call whose arguments change needs a result that the run did not get. If it is not known, the truth stands for it
where arguments and inputs are right, so that no tool is blamed for what it was not asked; else the result of the run's
own call, or that of the reference. A slot that the run got right lost nothing and has no shares. If every step that a
slot needs is true, the slot is right. The answer to an unanswerable question follows from the results like a slot: it
is a refusal if they show that there is no answer. A figure is the last one drawn. Answers without ``from`` (advice,
keywords) are right if all results are true, else as they were given.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from pydantic import JsonValue

from agrotools.core import (
    AbstainSlot,
    Arguments,
    Observation,
    PlotSlot,
    Record,
    ReferenceStep,
    Sample,
    Score,
    Slot,
    Step,
    ToolCall,
    Trajectory,
)
from agrotools.core.form_item import asked_items
from agrotools.core.record import REF_PATTERN, UnresolvedRef, iter_refs, literal_value, resolve_ref
from agrotools.core.slot import asked_slots
from agrotools.formats.reference_results import derived_values, live_arguments, with_made_files
from agrotools.knowledge.same_thing import same_value
from agrotools.scoring.attribution import (
    ARGUMENTS,
    AT_LIMIT,
    FAULT,
    FORM,
    PLANNING,
    READING,
    TOOL,
    ordered_parts,
    shapley_values,
)
from agrotools.scoring.matching import (
    EXPRESSION,
    OwnCall,
    Values,
    gives_truth,
    landed_faults,
    missing_calls,
    own_calls,
    step_index,
)
from agrotools.scoring.metrics import SLOT_METRIC, counts_in_fas
from agrotools.scoring.slot_weights import weighted_mean
from agrotools.scoring.slots import UNREAD_RULES, outcome_scores, score_slot
from agrotools.scoring.steps import implied_slot
from agrotools.text.agreement_values import same_json
from agrotools.text.answer_form import UNKNOWN, format_answer
from agrotools.text.answer_reader import form_faults, is_complete
from agrotools.text.expressions import shows_no_answer

FindResult = Callable[[ToolCall], Observation | None]
"""Returns the result of a call that the run did not make; None if it is not known."""
Parts = frozenset[str]


def lacks_values(sample: Sample, answer: str) -> bool:
    """True if values are asked for in text, and an answer does not give them all, not even as ``unknown``."""
    items = asked_items(sample.answer)
    return bool(items) and not is_complete(answer, items)


class InseparableError(Exception):
    """Parts that cannot be told apart, because a result between them is not known."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(sorted(parts))
        self.parts = parts


@dataclass(frozen=True)
class Outcome:
    """Result of one reference step in a coalition.

    ``values`` is None if the call is missing or failed. ``known``: fields whose truth is known, of a result that was
    replaced by the truth; None for a result of a tool.
    """

    values: Values | None = None
    true: bool = False
    known: Parts | None = None
    observation: Observation | None = None


class SampleGame:
    """Game of one end-to-end record.

    Args:
        record: a valid record in mode ``end-to-end`` with a reference.
        scores: its score rows.
        find_result: see :data:`FindResult`.
    """

    def __init__(
        self,
        record: Record,
        scores: Sequence[Score],
        find_result: FindResult,
    ) -> None:
        assert record.trajectory is not None
        assert record.sample.reference is not None
        self.record, self.trajectory = record, record.trajectory
        self.steps = record.sample.reference.steps
        self.own = own_calls(record)
        self._own_values = [each.values if each else None for each in self.own]
        self.missing = missing_calls(self.steps, self.own)
        self._faults = landed_faults(record, self.own)
        self._find_result = find_result
        self._truths = [self._truth(at) for at in range(len(self.steps))]
        self.slots = [*filter(counts_in_fas, record.sample.answer)]
        rows = {row.slot: Fraction(row.value) for row in scores if row.metric == SLOT_METRIC}
        self._actual = [rows[slot.name] for slot in self.slots]
        self._chains: dict[Parts, list[Outcome]] = {}
        self._runs: dict[str, Observation | None] = {}
        self._recorded_arguments = [
            {name: literal_value(value) for name, value in step.arguments.items()}
            for step in self.steps
        ]
        """Arguments of the reference calls with the values that the reference got: their results are recorded."""
        self._text_scores: dict[tuple[str, str], Fraction] = {}
        self._awaited = self._awaited_slots()
        self._reading = [self._reading_of(slot) for slot in self.slots]

    def shares(self) -> dict[str, Fraction]:
        """Return the Shapley value of each part, as fractions of 1; parts that lost nothing have 0."""
        lost = [at for at, actual in enumerate(self._actual) if actual < 1]
        if not lost:
            return {}
        players = self._players(lost)
        merged: list[Parts] = []
        while True:
            groups = {_name(group): group for group in _groups(players, merged)}
            try:
                values = self._coalition_values(groups, lost)
            except InseparableError as error:
                merged.append(error.parts)
            else:
                return shapley_values([*groups], values)

    def _coalition_values(
        self, groups: Mapping[str, Parts], lost: Sequence[int]
    ) -> dict[frozenset[str], Fraction]:
        """Return the score of every coalition of named groups of parts over the slots that lost points."""
        values: dict[frozenset[str], Fraction] = {}
        for size in range(len(groups) + 1):
            for members in combinations(groups, size):
                parts = Parts().union(*(groups[name] for name in members))
                values[frozenset(members)] = self._value(parts, lost)
        return values

    def _players(self, lost: Sequence[int]) -> list[str]:
        """Return the parts that may have lost something, in their order.

        A part whose replacement changes nothing has a share of 0. Those that are easily seen are left out: each of
        them would double the number of coalitions.
        """
        players = [READING, *{TOOL + step.tool for step in self.steps}]
        at_limit = self.trajectory.answer is None and self.trajectory.termination in AT_LIMIT
        has_figure = any(isinstance(self.slots[at], PlotSlot) for at in lost)  # a later one counts
        if self.missing or at_limit or has_figure:
            players.append(PLANNING)
        if any(own is not None and own.wrong for own in self.own):
            players.append(ARGUMENTS)
        if self._faults:
            players.append(FAULT)
        if any(self._reading[at] == "form" for at in lost):
            players.append(FORM)
        return ordered_parts(players)

    def _value(self, parts: Parts, lost: Sequence[int]) -> Fraction:
        """Return the score of a coalition over the slots that lost points."""
        values = [Fraction(0)] * len(self.slots)
        for at in lost:
            values[at] = self._slot_value(at, parts)
        return weighted_mean(self.slots, values, Fraction)

    # --- results ------------------------------------------------------------------------------------------------------

    def _truth(self, at: int) -> Observation | None:
        """Return the true observation of a reference step; None if it is not known."""
        step, sample = self.steps[at], self.record.sample
        if step.truth is not None:
            return Observation(result=with_made_files(at, step.truth, self.steps))
        if not sample.answerable or all(slot.from_ is None for slot in sample.answer):
            return step.observation
        return None

    def _gives_truth(self, at: int, observation: Observation | None) -> bool:
        return gives_truth(self.record.sample, at, observation, self._truths[at])

    def chain(self, parts: Parts) -> list[Outcome]:
        """Return the result of each reference step; ``parts`` are planning, arguments, faults and tools."""
        if parts not in self._chains:
            outcomes: list[Outcome] = []
            for at in range(len(self.steps)):
                outcomes.append(self._outcome(at, parts, outcomes))
            self._chains[parts] = outcomes
        return self._chains[parts]

    def _outcome(self, at: int, parts: Parts, before: Sequence[Outcome]) -> Outcome:
        """Return the outcome of a reference step in a coalition; ``before``: those of the steps before it.

        One rule after the other, the first that holds decides: a step that was not planned, a fault that stays, a tool
        that is replaced, an input that nobody knows, and at last the call itself.
        """
        step, own = self.steps[at], self.own[at]
        if at in self.missing and PLANNING not in parts:
            return Outcome()
        corrected = own is None or not own.wrong or ARGUMENTS in parts
        refs = [ref for _, ref, _ in iter_refs(step.arguments)]
        right = corrected and all(self._is_true(ref, before) for ref in refs)

        fault = self._faults.get(at)
        if fault and own and FAULT not in parts:
            seen = own.step.observation
            is_true = right and self._gives_truth(at, seen)
            return Outcome(own.values, is_true, observation=seen)

        tool = TOOL + step.tool
        if right and tool in parts:
            with suppress(InseparableError):  # a tool that gives the truth is not replaced
                unreplaced = self.chain(parts - {tool})[at]
                if unreplaced.true:
                    return unreplaced
            return self._true_outcome(at)

        unknown = [ref for ref in refs if _is_unknown(ref, before)]
        if right and unknown:
            tools_of_inputs = {TOOL + self.steps[step_index(ref)].tool for ref in unknown}
            raise InseparableError(Parts({tool, *tools_of_inputs}))

        call = self._call(at, own, corrected, [each.values for each in before])
        is_own = own is not None and call is own.step.call
        if call is None:  # an input has no value
            observation = None
        elif is_own and fault is None:
            observation = self._recorded(at, own)
        else:
            behind_fault = fault.original if is_own and fault is not None else None
            observation = behind_fault or self._run(at, call)
            if observation is None and right:
                return self._true_outcome(at)  # a tool that nobody has asked is not blamed
            if observation is None:
                observation = self._recorded(at, own)
        values = observation.result if observation else None
        is_true = right and self._gives_truth(at, observation)
        return Outcome(values, is_true, observation=observation)

    def _true_outcome(self, at: int) -> Outcome:
        """Return the outcome of a step whose tool gives the truth; what the truth does not hold is as recorded."""
        own, truth = self.own[at], self._truths[at]
        recorded = own.step.observation if own else self.steps[at].observation
        base = (recorded.result if recorded else None) or {}
        if truth is None:
            return Outcome(base, true=True, known=Parts(), observation=recorded)
        known = Parts(truth.result or ()) - self._made_files(at)
        values = None if truth.result is None else {**base, **truth.result}
        return Outcome(values, true=True, known=known, observation=truth)

    def _call(
        self, at: int, own: OwnCall | None, corrected: bool, values: Sequence[Values | None]
    ) -> ToolCall | None:
        """Return a call with its inputs: that of the run if they are the same; None if an input has no value."""
        step = self.steps[at]
        keeps_written = own is not None and not (own.wrong and corrected)
        if own is not None and keeps_written:
            seen = _resolved_refs(step, self._own_values[:at])
            now = _resolved_refs(step, values)
            if same_json(seen, now, rounded=True):
                return own.step.call
        arguments = live_arguments(step, values)
        if own is not None and own.step.call is not None and keeps_written:
            arguments = _with_written(step, own, own.step.call.arguments, arguments)
        return None if arguments is None else ToolCall(tool=step.tool, arguments=arguments)

    def _run(self, at: int, call: ToolCall) -> Observation | None:
        """Return the result of a call that the run did not make; None if it is not known."""
        recorded = self.steps[at].observation
        if recorded and same_json(call.arguments, self._recorded_arguments[at], rounded=True):
            return recorded  # the reference made this very call
        key = f"{call.tool} {call.arguments!r}"
        if key not in self._runs:
            self._runs[key] = self._find_result(call)
        return self._runs[key]

    def _recorded(self, at: int, own: OwnCall | None) -> Observation | None:
        """Return the result of the run's own call for a step, else that of the reference."""
        return own.step.observation if own else self.steps[at].observation

    def _made_files(self, at: int) -> Parts:
        """Return the fields of a step's truth that only name files, whose true content is not known."""
        return Parts(with_made_files(at, {}, self.steps) or ()) - Parts(self.steps[at].truth or ())

    def _is_true(self, ref: str, before: Sequence[Outcome]) -> bool:
        """True if a reference has the value that it has over the truth."""
        at = step_index(ref)
        if before[at].true:
            return True
        truth = self._truths[at]
        if truth is None or truth.result is None or f"observation.{_field(ref)}" not in ref:
            return False
        if _field(ref) in self._made_files(at):
            return False
        try:
            now = resolve_ref(ref, [each.values for each in before])
            return same_value(now, resolve_ref(ref, [None] * at + [truth.result]))
        except UnresolvedRef:
            return False

    # --- answers ------------------------------------------------------------------------------------------------------

    def _needed(self, slot: Slot) -> list[int]:
        """Return the reference steps that the value of a slot comes from."""
        if slot.from_ is None:
            return [*range(len(self.steps))]
        return sorted({int(match["step"]) for match in REF_PATTERN.finditer(slot.from_)})

    def _awaited_slots(self) -> list[Slot]:
        """Return the slots whose values the answer lacks, if no result of the run gave one of them; else none."""
        answer = self.trajectory.answer
        if answer is None:
            return []
        sample = self.record.sample
        lacking = form_faults(answer, asked_items(sample.answer))
        slots = [slot for slot in asked_slots(sample.answer) if slot.name in lacking]
        given = [self._gives_value(slot, self._own_values) for slot in slots]
        return [] if any(given) else slots

    def _gives_value(self, slot: Slot, values: Sequence[Values | None]) -> bool:
        """True if a slot has a value over results; what says not how it follows from them could always be given."""
        return slot.from_ is None or derived_values([slot], values).get(slot.name) is not None

    def _reading_of(self, slot: Slot) -> str:
        """Return how a slot was read over the results of the run.

        ``right`` (or never), ``misread``, ``form``, or ``waiting``: right, in a form that lacks awaited slots.
        """
        answer = self.trajectory.answer
        if answer is None:
            return "form" if self.trajectory.termination not in AT_LIMIT else "right"
        if slot.made_by_tools or any(self.own[at] is None for at in self._needed(slot)):
            return "right"
        if isinstance(slot, AbstainSlot):
            is_shown = shows_no_answer(slot, self._own_values)
            if lacks_values(self.record.sample, answer) and (is_shown or not self._awaited):
                return "form"
            return "misread" if is_shown else "right"
        if slot.from_ is None:
            made = [(at, own.step.observation) for at, own in enumerate(self.own) if own]
            return "misread" if all(self._gives_truth(*each) for each in made) else "right"
        implied = implied_slot(slot, self._own_values).slot
        if implied is None:
            return "right"
        slots = [implied if each.name == slot.name else each for each in self.record.sample.answer]
        score = score_slot(implied, slots, answer)
        if score.value >= 1:
            return "right"
        if self._awaited:
            # Its line alone: the others have no value yet.
            score = score_slot(implied, [implied], answer)
            if score.value >= 1:
                return "waiting"
        return "form" if score.reading.get("rule") in UNREAD_RULES else "misread"

    def _slot_value(self, at: int, parts: Parts) -> Fraction:
        """Return the score of a slot in a coalition."""
        slot, actual, reading = self.slots[at], self._actual[at], self._reading[at]
        ended = self.trajectory.answer is None and self.trajectory.termination in AT_LIMIT
        if ended and PLANNING not in parts:
            return actual
        if reading == "form" and FORM not in parts:
            return actual
        outcomes = self.chain(parts - {READING, FORM})
        if isinstance(slot, PlotSlot):
            return self._figure_score(slot, actual, parts, outcomes)
        if reading == "waiting" and not self._ends_waiting(outcomes):
            return actual

        needed = self._needed(slot)
        are_true = all(outcomes[i].true for i in needed)
        if READING not in parts:
            if reading == "misread":
                return actual
            is_new = ended or reading in ("form", "waiting")
            # A truth that is not known has the values of the run's own result: no change is seen, and yet it is true.
            if not (is_new or are_true or self._has_changed(needed, parts, outcomes)):
                return actual
        if are_true:
            return Fraction(1)
        return self._score_over(slot, actual, needed, parts, outcomes)

    def _ends_waiting(self, outcomes: Sequence[Outcome]) -> bool:
        """True if every awaited slot has a value over the results, or all that it needs is true."""
        values = [each.values for each in outcomes]
        for slot in self._awaited:
            are_true = all(outcomes[i].true for i in self._needed(slot))
            if not (are_true or self._gives_value(slot, values)):
                return False
        return True

    def _has_changed(
        self, needed: Sequence[int], parts: Parts, outcomes: Sequence[Outcome]
    ) -> bool:
        """True if a needed result differs from that of the run, or its call was missing and is made."""
        if PLANNING in parts and not self.missing.isdisjoint(needed):
            return True  # also a call that fails is a result
        return not all(
            same_json(outcomes[i].values, self._own_values[i], rounded=True) for i in needed
        )

    def _score_over(
        self,
        slot: Slot,
        actual: Fraction,
        needed: Sequence[int],
        parts: Parts,
        outcomes: Sequence[Outcome],
    ) -> Fraction:
        """Return the score of a slot that is read right over results of which not all are true."""
        if slot.made_by_tools or (slot.from_ is None and not isinstance(slot, AbstainSlot)):
            return actual
        self._check_known(needed, outcomes, slot, parts)
        values = [each.values for each in outcomes]
        if isinstance(slot, AbstainSlot):
            if PLANNING not in parts and not self.missing.isdisjoint(needed):
                return actual
            return self._text_score(slot, UNKNOWN) if shows_no_answer(slot, values) else Fraction(0)
        derived = derived_values([slot], values)
        if derived.get(slot.name) is None:
            return actual
        form_of_slot = format_answer([slot], derived)
        return Fraction(score_slot(slot, [slot], form_of_slot).value)

    def _check_known(
        self, needed: Sequence[int], outcomes: Sequence[Outcome], slot: Slot, parts: Parts
    ) -> None:
        """Raise an error if the slot needs a true value that is not known beside errors of other tools."""
        refs = [match[0] for match in REF_PATTERN.finditer(slot.from_ or "")]
        unknown = {
            TOOL + self.steps[step_index(ref)].tool for ref in refs if _is_unknown(ref, outcomes)
        }
        others = {TOOL + self.steps[i].tool for i in needed if not outcomes[i].true} - parts
        if unknown and others:
            raise InseparableError(Parts(unknown | others))

    def _figure_score(
        self, slot: Slot, actual: Fraction, parts: Parts, outcomes: Sequence[Outcome]
    ) -> Fraction:
        """Return the score of the last figure: of the reference's calls, or one that the run drew beside them."""
        charts = [
            i
            for i, step in enumerate(self.steps)
            if step.tool == "plot" and outcomes[i].observation is not None
        ]
        if not charts:
            return actual
        own = [each.step for each in self.own if each]
        beside = [step for step in self.trajectory.calls if step not in own]
        has_drawn_beside = any(step.call and step.call.tool == "plot" for step in beside)
        counts_beside = has_drawn_beside and PLANNING not in parts
        if counts_beside and self.trajectory.calls[-1] not in own:
            return actual
        last = charts[-1]
        if outcomes[last].true:
            return Fraction(1)
        mine, drawn = self.own[last], outcomes[last].observation
        if mine is not None and drawn is mine.step.observation and not counts_beside:
            return actual
        return self._score_of_figure(slot, drawn)

    def _score_of_figure(self, slot: Slot, drawn: Observation | None) -> Fraction:
        """Return the score of a slot in a record with a single call, which draws this figure."""
        call = ToolCall(tool="plot", arguments={})
        steps = (
            Step(turn=0, kind="call", call=call, observation=drawn),
            Step(turn=1, kind="answer"),
        )
        trajectory = Trajectory(steps=steps, termination="answered")
        record = self.record.model_copy(update={"trajectory": trajectory})
        rows = [row for row in outcome_scores(record) if row.metric == SLOT_METRIC]
        return next(Fraction(row.value) for row in rows if row.slot == slot.name)

    def _text_score(self, slot: Slot, text: str) -> Fraction:
        key = (slot.name, text)
        if key not in self._text_scores:
            self._text_scores[key] = Fraction(
                score_slot(slot, self.record.sample.answer, text).value
            )
        return self._text_scores[key]


def _name(group: Parts) -> str:
    """Return the name of a group of parts: ``tool:a+b`` for tools that cannot be told apart."""
    first, *others = ordered_parts(group)
    return "+".join([first, *(other.removeprefix(TOOL) for other in others)])


def _groups(players: Sequence[str], merged: Sequence[Parts]) -> list[Parts]:
    """Return the players, with those united that occur in one of ``merged``."""
    groups = [Parts({player}) for player in players]
    for parts in merged:
        together = [group for group in groups if group & parts]
        groups = [group for group in groups if not group & parts] + [Parts().union(*together)]
    return groups


def _field(ref: str) -> str:
    return ref.strip().partition("observation.")[2].partition(".")[0].partition("[")[0]


def _is_unknown(ref: str, outcomes: Sequence[Outcome]) -> bool:
    """True if a reference is to a result that was replaced by the truth, of which this field is not known."""
    known = outcomes[step_index(ref)].known
    return known is not None and _field(ref) not in known


def _resolved_refs(step: ReferenceStep, values: Sequence[Values | None]) -> list[JsonValue]:
    resolved: list[JsonValue] = []
    for _, ref, _ in iter_refs(step.arguments):
        try:
            resolved.append(resolve_ref(ref, values))
        except UnresolvedRef:
            resolved.append(None)
    return resolved


def _with_written(
    step: ReferenceStep, own: OwnCall, written: Arguments, live: Arguments | None
) -> Arguments | None:
    """Return the arguments of a step, with those that the run wrote and that do not follow results.

    Args:
        step: the step of the reference.
        own: the call of the run for the step.
        written: arguments of that call.
        live: arguments of the reference over the results; None if an input has no value.
    """
    follows = {name for name, value in step.arguments.items() if [*iter_refs(value)]}
    if own.wrong:
        # A wrong call stays as it is, but its right arguments follow the results that they refer to.
        right = follows - own.wrong
        return {**written, **{name: value for name, value in (live or {}).items() if name in right}}
    if live is None:
        return None
    # An expression may hold what it was calculated from.
    fixed = written.keys() - follows - own.excused - {EXPRESSION}
    return {**live, **{name: written[name] for name in fixed}}
