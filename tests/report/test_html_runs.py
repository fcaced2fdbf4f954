"""Which records a page shows: the same ones that a plain definition of the choice picks, in little memory."""

import hashlib
import tracemalloc
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import Record, Sample
from agrotools.report.html.runs import Outcomes, opened_runs, value_of
from agrotools.runner.records import record_index
from agrotools.runner.rescore import rescore
from agrotools.scoring import outcome_scores
from support.made_runs import call, end_to_end, made_sample, predicted, right, write_run

SAMPLES = [made_sample(f"s{at}", task_type=f"task-{at % 3}") for at in range(9)]
KINDS = ("right", "half", "wrong", "invalid")


def record_of(sample: Sample, mode: str, epoch: int, kind: str) -> Record:
    """A record that scores 1, something between, 0 or nothing."""
    if kind == "invalid":
        return Record.model_validate({"sample": sample, "mode": mode, "epoch": epoch, "invalid": "timeout"})
    if mode == "step-by-step":
        second = "6 + 1" if kind == "right" else "1"
        made = predicted(sample, "2*3", second) if kind != "wrong" else predicted(sample, "1", "1", answer="rows: 1")
        return made.model_copy(update={"epoch": epoch})
    made = right(sample) if kind == "right" else end_to_end(sample, call("1"), answer="rows: 9")
    return made.model_copy(update={"mode": mode, "epoch": epoch})


def test_the_kinds_of_records_score_as_they_are_named():
    from agrotools.scoring import score_record

    def value(mode: str, kind: str) -> float | None:
        record = record_of(SAMPLES[0], mode, 0, kind)
        return value_of(record, score_record(record))

    assert [value("step-by-step", kind) for kind in KINDS] == [1, pytest.approx(2 / 3), 0, None]
    assert [value("end-to-end", kind) for kind in KINDS] == [1, 0, 0, None]


@st.composite
def runs_of_values(draw: st.DrawFn) -> list[dict[tuple[str, int, int], float | None]]:
    """For each run the value of some keys (mode, number of the sample, epoch)."""
    keys = st.tuples(st.sampled_from(["end-to-end", "no-tool"]), st.integers(0, 8), st.integers(0, 2))
    values = st.sampled_from([0.0, 0.25, 0.5, 1.0, None])
    return draw(st.lists(st.dictionaries(keys, values, min_size=1, max_size=30), min_size=1, max_size=3))


def expected(
    runs: Sequence[dict[tuple[str, int, int], float | None]], n: int, privileged: frozenset[int]
) -> set[tuple[str, int]]:
    """The pairs to show, by the words of the definition alone."""

    def mean(run: int, pair: tuple[str, int]) -> float | None:
        own = [value for key, value in runs[run].items() if key[:2] == pair and value is not None]
        return sum(own) / len(own) if own else None

    def worst(pair: tuple[str, int]) -> float:
        means = {run: value for run in range(len(runs)) if (value := mean(run, pair)) is not None}
        return min([value for run, value in means.items() if run not in privileged] or means.values(), default=1.0)

    def by_badness(pair: tuple[str, int]) -> tuple[float, str]:
        return worst(pair), hashlib.sha256(SAMPLES[pair[1]].id.encode()).hexdigest()

    groups: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for pair in {key[:2] for run in runs for key in run}:
        groups.setdefault((pair[0], SAMPLES[pair[1]].task_type), []).append(pair)
    chosen: set[tuple[str, int]] = set()
    room = n
    for turn in count():
        of_turn = [sorted(groups[name], key=by_badness)[turn] for name in sorted(groups) if turn < len(groups[name])]
        for pair in of_turn:
            room -= 1 + max(key[2] for run in runs for key in run if key[:2] == pair)
            if n == 0 or (room < 0 and chosen):
                return chosen
            chosen.add(pair)
        if not of_turn:
            return chosen
    raise AssertionError


@given(runs_of_values(), st.integers(0, 40), st.frozensets(st.integers(0, 2)))
def test_the_chosen_records_are_those_of_the_definition(runs, n, privileged):
    outcomes = Outcomes()
    keys = [sorted(run, key=lambda key: (key[0], SAMPLES[key[1]].id, key[2])) for run in runs]
    for run, ordered in zip(runs, keys, strict=True):
        outcomes.begin_run()
        for mode, at, epoch in ordered:
            value = run[mode, at, epoch]
            record = record_of(SAMPLES[at], mode, epoch, "invalid" if value is None else "right")
            rows = [] if value is None else outcome_scores(record)
            fas = [row.model_copy(update={"value": value}) for row in rows if row.metric == "agrotools.fas"]
            outcomes.add(record, fas)
    pairs = expected(runs, n, privileged)
    shown = outcomes.chosen(n, privileged=privileged)
    assert shown == [[at for at, key in enumerate(ordered) if key[:2] in pairs] for ordered in keys]


def test_a_long_run_shows_the_worst_spread_over_modes_and_tasks(tmp_path: Path):
    """Of two runs the oracle's scores do not count, where the other has some."""
    samples = [made_sample(f"{task}{at:02}", task_type=task) for task in ("a", "b") for at in range(30)]
    model, oracle = (
        write_run(
            tmp_path / name,
            [
                record_of(sample, mode, 0, "wrong" if (int(sample.id[1:]) >= 25) == first else "right")
                for sample in samples
                for mode in ("step-by-step", "end-to-end")
            ],
            privileged=not first,
        )
        for name, first in (("model", True), ("oracle", False))
    )
    for folders in ([model, oracle], [oracle, model]):
        opened = opened_runs(folders, 20, data_root=None, summaries=None, allow_invalid=False)
        for run in opened:
            shown = [(record.mode, record.sample.id[0], int(record.sample.id[1:])) for record in run.shown()]
            wanted = [
                (mode, task, at) for mode in ("end-to-end", "step-by-step") for task in "ab" for at in range(25, 30)
            ]
            assert shown == wanted


@pytest.mark.parametrize("n", [1, 5, 12, 100])
def test_given_summaries_change_nothing_of_what_is_shown(tmp_path: Path, n: int):
    records = [
        record_of(sample, mode, epoch, KINDS[(at + epoch) % 4])
        for at, sample in enumerate(SAMPLES)
        for mode in ("step-by-step", "end-to-end")
        for epoch in range(2)
    ]
    folder = write_run(tmp_path / "run", records, epochs=2)
    summary = rescore(folder, allow_invalid=True).summary
    (computed,) = opened_runs([folder], n, data_root=None, summaries=None, allow_invalid=True)
    (spared,) = opened_runs([folder], n, data_root=None, summaries=[summary], allow_invalid=True)
    assert list(computed.places) == list(spared.places)
    assert computed.summary == spared.summary
    assert 0 < len(spared.places) <= max(n, 2)


def test_no_second_tally_is_made_where_summaries_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = write_run(tmp_path / "run", [right(sample) for sample in SAMPLES])
    summary = rescore(folder).summary
    monkeypatch.setattr("agrotools.report.html.runs.RunAggregator", None)
    (run,) = opened_runs([folder], 4, data_root=None, summaries=[summary], allow_invalid=False)
    assert len(run.places) == 4
    with pytest.raises(TypeError):
        opened_runs([folder], 4, data_root=None, summaries=None, allow_invalid=False)


def test_records_at_places_are_the_last_finished_record_of_each_key_in_order(tmp_path: Path):
    lost = Record(sample=SAMPLES[1], mode="end-to-end", invalid="timeout")
    again = end_to_end(SAMPLES[2], call("1"), answer="rows: 9")
    folder = write_run(tmp_path / "run", [right(SAMPLES[2]), lost, right(SAMPLES[0]), again, right(SAMPLES[1]), lost])
    with (folder / "records.jsonl").open("a") as file:
        file.write("no record\n")
    shelf = record_index(folder)
    assert [record.sample.id for record in shelf] == ["s0", "s1", "s2"]
    assert list(shelf) == [right(SAMPLES[0]), right(SAMPLES[1]), again]
    assert list(shelf.at([0, 2])) == [right(SAMPLES[0]), again]
    assert len(shelf) == 3
    assert "1 line cannot be read" in shelf.notes[0]


def test_epochs_that_no_run_has_are_no_reason_to_fail(tmp_path: Path):
    odd = [right(SAMPLES[0]).model_copy(update={"epoch": epoch}) for epoch in (-1, 2**63)]
    folder = write_run(tmp_path / "run", [*odd, right(SAMPLES[1])])
    (run,) = opened_runs([folder], 1, data_root=None, summaries=[rescore(folder).summary], allow_invalid=False)
    assert 1 <= len(run.places) <= 2


def test_what_is_held_of_a_record_does_not_depend_on_its_length():
    outcomes = Outcomes()
    outcomes.begin_run()
    record = Record(sample=made_sample(query="x" * 5000), mode="no-tool", invalid="timeout")
    tracemalloc.start()
    try:
        for number in range(20_000):
            outcomes.add(record.model_copy(update={"epoch": number}), [])
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 40 * 20_000
    assert len(outcomes.chosen(10, privileged=frozenset())[0]) == 20_000  # one pair: as many epochs, shown as a whole
