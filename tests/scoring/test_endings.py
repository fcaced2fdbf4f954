"""What stands above the tables when many samples ended alike, or have no record."""

import pytest

from agrotools.core import Answer, Halt, Mode, Record, Trajectory, Unparseable
from agrotools.scoring import ModeSummary, summarise
from agrotools.scoring.event_counts import ending_of, missing_of, mostly_lost, warnings_of
from support.plain_sample import plain_sample


def ended(number: int, termination: str | None) -> Record:
    """A record that ended so; None: an invalid one."""
    sample = plain_sample(f"s{number}")
    if termination is None:
        return Record(sample=sample, mode="no-tool", invalid="503 Bad gateway")
    return Record(sample=sample, mode="no-tool", trajectory=Trajectory.model_validate({"termination": termination}))


def mode_of(*counts: tuple[str | None, int]) -> ModeSummary:
    endings = [termination for termination, n in counts for _ in range(n)]
    return summarise([ended(number, termination) for number, termination in enumerate(endings)]).modes["no-tool"]


def lines(*counts: tuple[str | None, int]) -> tuple[str, ...]:
    modes: dict[Mode, ModeSummary] = {"no-tool": mode_of(*counts)}
    return warnings_of(modes, {})


@pytest.mark.parametrize(
    ("cause", "option"),
    [
        ("timeout", "--timeout"),
        ("length", "--max-output-tokens"),
        ("context", "context"),
        ("filtered", "filter"),
        ("unparseable", "--protocol"),
        ("max_steps", "--max-steps"),
        (None, "503 Bad gateway"),
    ],
)
def test_a_cause_that_ended_more_than_a_twentieth_is_named_with_its_number_and_what_to_try(
    cause: str | None, option: str
) -> None:
    assert lines(("answered", 95), (cause, 5)) == ()
    (line,) = lines(("answered", 94), (cause, 6))
    assert line.startswith("no-tool: 6 of 100 samples (6.0 %) ")
    assert option in line


def test_each_cause_has_its_line_the_most_frequent_first() -> None:
    assert [line.split(" samples")[0] for line in lines(("answered", 5), ("length", 2), ("timeout", 3))] == [
        "no-tool: 3 of 10",
        "no-tool: 2 of 10",
    ]


def test_more_than_half_without_a_word_of_the_model_is_most() -> None:
    assert not mostly_lost(mode_of(("answered", 5), ("timeout", 3), (None, 2)))
    assert mostly_lost(mode_of(("answered", 5), ("timeout", 4), (None, 2)))
    # These two are what the model did.
    assert not mostly_lost(mode_of(("unparseable", 5), ("max_steps", 5)))


def test_in_step_by_step_half_of_the_steps_must_have_ended_so() -> None:
    halt, answer = Halt(termination="context"), Answer(text="yes")
    record = Record(sample=plain_sample(), mode="step-by-step", actions=(answer, answer, halt))
    assert ending_of(record) is None
    assert ending_of(record.model_copy(update={"actions": (answer, halt)})) == "context"
    unread = Unparseable(text="?", reason="no call")
    assert ending_of(record.model_copy(update={"actions": (unread, unread, answer)})) == "unparseable"


def test_records_that_are_missing_are_counted_even_where_a_mode_has_none() -> None:
    modes: dict[Mode, ModeSummary] = {"no-tool": mode_of(("answered", 30))}
    missing = missing_of(modes, {"no-tool": 60, "end-to-end": 8, "step-by-step": 0})
    assert missing == {"no-tool": 30, "end-to-end": 8}
    short, gone = warnings_of(modes, missing)
    assert short.startswith("no-tool: 30 of 60 planned records are missing; the figures are of the other 30.")
    assert gone.startswith("end-to-end: 8 of 8 planned records are missing")
    assert missing_of(modes, {"no-tool": 30}) == {}
