"""Answers to the open questions of a plan: given as ``--set KEY=VALUE``, or asked for, and what was read in the end."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from agrotools.core import BenchmarkError, UsageError
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.core.texts import plain_message
from agrotools.knowledge.countables import countables
from agrotools.text import cells
from agrotools.text.tables import UNNAMED
from agrotools_build.boxes import GROUPS, SIZES
from agrotools_build.own_photos.columns import (
    are_percentages,
    column_as,
    nearly_all_zero,
    read_column,
)
from agrotools_build.own_photos.headers import thing_named
from agrotools_build.own_photos.observers import APART, ONLY, asked_alike, own_quantity, partners_of
from agrotools_build.own_photos.plan import NOTHING, RATING, UNDECIDED, Column, Plan, measures
from agrotools_build.own_photos.proposal import (
    NAMES,
    NUMBERS_OF_OWNER,
    ROWS_BEHIND,
    UNKNOWN_NAMES,
    OpenQuestion,
    is_without_proposal,
    lacking_numbers,
    names_without_result,
    open_questions_of_column,
    placeholder,
    unknown_names,
    which_observers,
    which_rows,
)
from agrotools_build.own_photos.repeats import REPEATED
from agrotools_build.own_photos.table import (
    HEADER,
    PHOTO_NUMBERS,
    SETTINGS,
    UNNAMED_ROWS,
    DetectedTable,
)

_LISTS = ("languages", "yes", "no")
"""Keys whose value is a list, typed with commas."""
_CHOSEN_WHEN_READ = (GROUPS, SIZES, HEADER, UNNAMED_ROWS, PHOTO_NUMBERS)
"""Keys of a plan whose values are chosen while the table is read."""
_COLUMNS_NAMED = 20
_NONE = ("none", "nil", "-", "--", "–")
"""Cells that are taken as empty, and may say that nothing was found."""


class Answer(NamedTuple):
    """A value of a key of a plan, of one of its columns, or of a ``part`` of that key: a name in the table."""

    column: str | None
    key: str
    part: str | None
    value: str
    typed: str
    """It as it was typed."""


def split_settings(given: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return the values of :data:`SETTINGS` among words ``KEY=VALUE``, and the other words.

    Raises:
        UsageError: a word has no ``=``.
    """
    settings: dict[str, str] = {}
    others: list[str] = []
    for word in given:
        key, sign, value = word.partition("=")
        if not sign:
            raise UsageError(f"--set {word} has no value", hint="--set KEY=VALUE")
        if key in SETTINGS:
            settings[key] = value
        else:
            others.append(word)
    return settings, others


def with_answers(plan: Plan, words: Sequence[str], seen: DetectedTable) -> Plan:
    """Return a plan with what words ``KEY=VALUE`` or ``COLUMN.KEY=VALUE`` say.

    Raises:
        UsageError: there is no such column or key, or it cannot have such a value.
    """
    answers = [_of_first_observer(_answer(word, plan), plan) for word in words]
    # What a column holds comes first: its other keys depend on it.
    for answer in sorted(answers, key=lambda each: each.key != "ask"):
        plan = _changed(plan, answer, seen)
    return plan


def _of_first_observer(answer: Answer, plan: Plan) -> Answer:
    """Return an answer on what a second observer's column holds as one on the column of the first.

    Raises:
        UsageError: it says something else of a column that was read as that of a second observer.
    """
    first = next(
        (each for each in plan.columns if each.second and each.second == answer.column), None
    )
    if first is None:
        return answer
    value = answer.value.strip()
    if answer.key == "ask" and value in (first.ask, NOTHING):
        second = f"{ONLY}{first.column}" if value == NOTHING else first.second
        return answer._replace(column=first.column, key="second", value=str(second))
    raise UsageError(
        f"--set {answer.typed}: {answer.column!r} was read as a second observer of {first.column!r}",
        hint=f"--set '{first.column}.second={APART}' reads two things",
    )


def _answer(word: str, plan: Plan) -> Answer:
    known_columns = [each.column for each in plan.columns]
    known_columns += [each.second for each in plan.columns if each.second]
    names = sorted(known_columns, key=lambda name: -len(name))
    for name in names:
        if not word.startswith(f"{name}."):
            continue
        rest = word[len(name) + 1 :]
        if rest.startswith(f"{NAMES}."):
            part, _, value = rest[len(NAMES) + 1 :].rpartition("=")
            return Answer(name, NAMES, part, value, word)
        key, _, value = rest.partition("=")
        if key in Column.model_fields and key not in ("column", NAMES):
            return Answer(name, key, None, value, word)
        known = ", ".join(each for each in Column.model_fields if each != "column")
        raise UsageError(f"--set {word}: a column has no key {key!r}", hint=f"one of {known}")
    key, _, value = word.partition("=")
    if key in Plan.model_fields and key != "columns":
        return Answer(None, key, None, value, word)
    raise UsageError(
        f"--set {word}: {key!r} is no key of the plan",
        hint=f"COLUMN.KEY=VALUE; its columns: {', '.join(sorted(names)[:_COLUMNS_NAMED])}",
    )


def _changed(plan: Plan, answer: Answer, seen: DetectedTable) -> Plan:
    """Return the plan with an answer; "nothing" leaves the column out, whatever the key.

    Raises:
        UsageError: the key cannot have this value.
    """
    key, value = answer.key, answer.value.strip()
    fields = plan.model_dump()
    try:
        if answer.column is None:
            fields[key] = value.split(",") if key in _LISTS else value
            return Plan.model_validate(fields)
        if key == "second" and (column := plan.column(answer.column)):
            return _with_second(plan, column, value, seen)
        columns = [
            _changed_column(each, answer, value, seen) if each.column == answer.column else each
            for each in plan.columns
        ]
    except ValidationError as error:
        why = f"--set {answer.typed}: {plain_message(error.errors()[0])}"
        raise UsageError(why, hint="see the comments at the head of the plan") from error
    return plan.model_copy(update={"columns": tuple(columns)})


def _with_second(plan: Plan, column: Column, value: str, seen: DetectedTable) -> Plan:
    """Return the plan with what is said of a second observer: a column, :data:`APART`, :data:`ONLY` a column, nothing.

    Raises:
        UsageError: there is no such column.
    """
    if column.second and plan.column(column.second) is None:
        # What was read as of a second observer gets its own column back.
        its_own = read_column(column.second, seen).column
        plan = plan.model_copy(update={"columns": (*plan.columns, its_own)})
    partners = partners_of(column, plan.columns, seen.table)
    if column.second is None:
        partners += asked_alike(column, plan.columns, seen)
    others = {each.column for each in partners}
    changed = {column.column: column.model_copy(update={"second": None})}
    only = value.removeprefix(ONLY)
    if value == APART:
        for name in (column.column, *others):
            each = changed.get(name) or plan.column(name) or column
            quantity = {"quantity": own_quantity(each, seen.table)}
            changed[name] = each.model_copy(update=quantity)
    elif value == NOTHING or (value.startswith(ONLY) and only in {column.column, *others}):
        for name in {column.column, *others} - {only}:
            changed[name] = Column(column=name, ask=NOTHING)
    elif value in seen.table.columns and value not in (column.column, seen.images_column):
        # What the second observer saw has no questions of its own, and neither has what further ones saw.
        changed[column.column] = column.model_copy(update={"second": value})
        changed |= {name: Column(column=name, ask=NOTHING) for name in others}
    else:
        known = [
            *sorted(others),
            APART,
            *(f"{ONLY}{name}" for name in (column.column, *sorted(others))),
        ]
        raise UsageError(
            f"--set {column.column}.second={value}: there is no such column",
            hint=f"one of {', '.join(known)}",
        )
    columns = [changed.get(each.column, each) for each in plan.columns if each.column != value]
    return plan.model_copy(update={"columns": tuple(columns)})


def _changed_column(column: Column, answer: Answer, value: str, seen: DetectedTable) -> Column:
    if value and value == placeholder(answer.key) and value not in seen.table.columns:
        raise UsageError(
            f"--set {answer.typed}: {value} stands for a value that only you know", hint="write it"
        )
    if answer.key in NUMBERS_OF_OWNER and column.ask == NOTHING and value != NOTHING:
        # It was left out because its tool needs this number.
        column = read_column(column.column, seen, column.second).column
    fields: dict[str, Any] = column.model_dump()
    if answer.part is not None:
        fields[NAMES] = {**column.names, answer.part: value}
    elif answer.key == "ask" or value == NOTHING:
        fields["ask"] = value
        if Column.model_validate(fields).ask == column.ask:
            return column
        return column_as(column.column, value, seen, column.second)
    else:
        fields[answer.key] = value.split(",") if answer.key in _LISTS else value
    if answer.key == "target" and (name := thing_named(value)):
        thing = countables()[name]
        # What the header counts may be more special than its tool knows: ripe apples.
        fields |= {"target": name, "objects": thing.objects, "objects_zh": thing.objects_zh}
    return Column.model_validate(fields)


def decide(plan: Plan, seen: DetectedTable, readings: Readings) -> Plan:
    """Return a plan without open questions: each one is put to the user, who may leave the column out.

    Where nobody answers, the proposed values are taken, and ``readings`` has the questions.
    """
    chosen = {key: readings.chosen.get(f"--set={key}") for key in _CHOSEN_WHEN_READ}
    plan = plan.model_copy(update={key: value for key, value in chosen.items() if value})
    # Beside columns that can be used, a number that only the owner knows is no question.
    columns = [
        each.model_copy(update={"ask": NOTHING}) if lacking_numbers(each) else each
        for each in plan.columns
    ]
    plan = plan.model_copy(update={"columns": tuple(columns)})
    for column in plan.columns:
        plan = _decided(plan, column.column, seen, readings)
    if readings.can_ask:
        # In a script the questions do not say it, and the lines on the plan say how they do.
        for question in filter(None, map(which_rows, plan.columns)):
            plan, _ = _asked(plan, question, seen, readings)
    for column in plan.columns:
        # An earlier answer may have changed it, or made it that of a second observer.
        now = plan.column(column.column)
        if now is None:
            continue
        if need := which_observers(plan, now, seen):
            plan, _ = _asked(plan, need, seen, readings)
        elif now.second == UNDECIDED:
            alone = now.model_copy(update={"second": None})
            columns = [alone if each == now else each for each in plan.columns]
            plan = plan.model_copy(update={"columns": tuple(columns)})
    if not readings.questions and not any(column.is_asked for column in plan.columns):
        _refuse_lacking_numbers(plan, seen)
    return plan


def _refuse_lacking_numbers(plan: Plan, seen: DetectedTable) -> None:
    """Raise an error if nothing is asked because numbers are missing that only the owner of the photos knows.

    Raises:
        BenchmarkError: there are columns that could be asked with such numbers.
    """
    lacking = {each.column: _numbers_lacking(each, seen) for each in plan.columns}
    needed = {column: options for column, options in lacking.items() if options}
    if needed:
        listed = "; ".join(f"{column}: {options}" for column, options in needed.items())
        raise BenchmarkError(
            f"nothing can be asked without numbers that only you know: {listed}",
            hint="NUMBER is the distance of the fruits or the focal length in pixels (diameters), "
            "or the pixels per centimetre (heights of plants)",
        )


def _decided(plan: Plan, name: str, seen: DetectedTable, readings: Readings) -> Plan:
    while needs := _open(plan, name, seen):
        for need in needs:
            if need.depends_on and readings.can_ask:
                continue  # The answer that it depends on comes first.
            plan, value = _asked(plan, need, seen, readings)
            if need.part is None and value == NOTHING:
                reason = f"column is left out. {need.question}"
                seen.skipped.add(name, reason, f"answer it by --set '{name}.{need.key}=...'")
            column = plan.column(name)
            nobody_answered = any(of.option == _option(need) for of in readings.questions)
            # In a script all questions on the column are collected, for one command that answers them.
            if column is not None and column.ask == NOTHING and not nobody_answered:
                return plan
    return plan


def _open(plan: Plan, name: str, seen: DetectedTable) -> list[OpenQuestion]:
    column = plan.column(name)
    if column is None:
        return []
    needs = open_questions_of_column(column, seen)
    return [
        need._replace(suggested=placeholder(need.key)) if is_without_proposal(need, plan) else need
        for need in needs
    ]


def _option(need: OpenQuestion) -> str:
    part = f".{need.part}" if need.part is not None else ""
    return f"--set={need.column}.{need.key}{part}"


def _asked(
    plan: Plan, need: OpenQuestion, seen: DetectedTable, readings: Readings
) -> tuple[Plan, str]:
    """Return the plan with the answer to a question, and the answer. Values that cannot be are asked for again."""
    question = _question(need)
    while True:
        value = readings.choose(question)
        answer = Answer(need.column, need.key, need.part, value, question.answered(value))
        try:
            return _changed(plan, answer, seen), value
        except UsageError as error:
            if not readings.can_ask:
                raise
            question = question._replace(text=f"{error.message}. {need.question}")


def _question(need: OpenQuestion) -> ReadingQuestion:
    """Return a question whose first choice is the proposed one.

    Where only the owner knows the answer, it is to leave out what nobody knows, and a placeholder stands for it.
    """
    is_pair = need.key == "second"
    leaves = "leaves it out"
    if is_pair:
        leaves = "leaves them out"
    elif need.part is not None:
        leaves = "leaves its rows out"
    values = [NOTHING, *(value for value in need.choices if value != NOTHING)]
    if need.suggested and not need.is_owners:
        values = [need.suggested, *(value for value in values if value != need.suggested)]
    choices: list[Choice] = []
    for value in values:
        if value == NOTHING:
            gives = leaves
        elif value == need.part:
            gives = "as it is"
        else:
            gives = _gives(value, is_pair=is_pair)
        choices.append(Choice(value, gives))
    text = need.question
    if need.or_key:
        text += f" (or {need.or_key})"
    if need.depends_on:
        text += f" (It depends on the answer for {need.depends_on}.)"
    return ReadingQuestion(
        text,
        _option(need),
        tuple(choices),
        is_open=need.key not in _CLOSED,
        placeholder=need.suggested if need.is_owners else "",
    )


_CLOSED = ("ask", "decimal", "second", REPEATED, ROWS_BEHIND, UNKNOWN_NAMES)
"""Keys whose values are all among the choices."""
_GIVES = {
    "refuse": "no number: photos with several rows are left out",
    "sum": "the sum of its rows, which are parts of it",
    "mean": "the mean of its rows, each of the whole photo",
    RATING: "no questions",
    "kept": "as they are, so that no tool can return them",
    "left-out": "their rows are left out",
}


def _gives(value: str, *, is_pair: bool) -> str:
    """Return what an answer gives, for its choice; empty if its value says it."""
    if value in _GIVES:
        return _GIVES[value]
    if not is_pair or value.startswith(ONLY):
        return ""
    return "two things, each with its questions" if value == APART else "two observers"


def say_what_is_read(plan: Plan, seen: DetectedTable, readings: Readings) -> None:
    """Tell ``readings`` which columns, names and cells of the table are read, and which are not."""
    in_plan = {seen.images_column}
    for column in plan.columns:
        in_plan |= {column.column, column.second or column.column}
        if column.ask == "slice":
            readings.take(f"groups from column {column.column}")
        elif column.is_asked:
            second = f" and {column.second} (two observers)" if column.second else ""
            readings.take(f"{_what(column)} from column {column.column}{second}")
            _say_what_is_left(column, seen, readings)
        else:
            readings.leave(f"{_column_named(column.column)}{_why_left(column, seen)}")
    for name in seen.table.columns:
        if name not in in_plan:
            readings.leave(_column_named(name))


def _column_named(header: str) -> str:
    """Return how a line names a column: by its letter or number where it has no name of its own."""
    return f"{header} (no header)" if UNNAMED.fullmatch(header) else f"column {header}"


def _why_left(column: Column, seen: DetectedTable) -> str:
    """Return why a column is left, in brackets; empty where nothing speaks for its use."""
    if column.ask == RATING:
        return " (ratings, which no tool measures)"
    if column.column in seen.beside:
        return f" (behind {seen.beside[column.column]!r}, which names other photos)"
    lacking = _numbers_lacking(column, seen)
    if lacking:
        return f" (its tool needs what only you know: {lacking})"
    if column.ask != NOTHING:
        return ""
    reading = read_column(column.column, seen, column.second)
    why = nearly_all_zero(reading.column, seen)
    if not why and reading.is_unknown and are_percentages(column.column, seen):
        shares = [name for name, measure in measures().items() if measure.unit == "%"]
        why = f"percentages of what? --set '{column.column}.ask={shares[0]}' takes it, or {', '.join(shares[1:])}"
    return f" ({why})" if why else ""


def _numbers_lacking(column: Column, seen: DetectedTable) -> str:
    """Return the ``--set`` that a column needs which was left out for want of numbers; empty for others."""
    if column.ask != NOTHING:
        return ""
    return lacking_numbers(read_column(column.column, seen, column.second).column)


def _what(column: Column) -> str:
    """Return what a column holds, as ``apples`` or ``severity in %``."""
    if column.ask == "count":
        return column.objects or column.target or "numbers"
    words = column.ask.replace("_", " ")
    is_number = measures()[column.ask].kind == "number"
    return f"{words} in {column.unit}" if is_number and column.unit else words


def _say_what_is_left(column: Column, seen: DetectedTable, readings: Readings) -> None:
    texts = [text for _, _, text in seen.cells_of(column.column, column.second)]
    # "none" and "n/a" are answers to some, so it is said that they count as none.
    placeholders = Counter(text.strip() for text in texts if cells.is_empty(text) and text.strip())
    for written, n_cells in placeholders.items():
        is_none = column.ask in ("disease", "pest") and written.casefold() in _NONE
        meant = '; write "healthy" if nothing was found' if is_none else ""
        readings.leave(f"{n_cells} x {written} of column {column.column} (taken as empty{meant})")
    if measures()[column.ask].kind == "name" and column.ask != "class":
        left: Mapping[str, int] = unknown_names(seen, column) | _left_names(column, texts)
        for name, n_cells in left.items():
            readings.leave(f"{n_cells} x {name!r} of column {column.column}")
        for name, n_cells in names_without_result(seen, column).items():
            if column.keeps(name):
                readings.take(
                    f"{n_cells} x {name!r} of column {column.column} as it is (no tool can return it)"
                )


def _left_names(column: Column, texts: Sequence[str]) -> dict[str, int]:
    """Return the names whose rows the plan leaves out, with the number of their cells."""
    counted = Counter(" ".join(text.split()) for text in texts)
    return {
        name: counted[name]
        for name, meant in column.names.items()
        if meant == NOTHING and counted[name]
    }
