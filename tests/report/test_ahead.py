"""Scoring of a run while it goes on: the same scores and page as afterwards, whatever the order, or none at all."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agrotools.core import Record, RunStoreError
from agrotools.plugin import NO_COMPARISONS
from agrotools.report.ahead import ScoringAhead
from agrotools.report.html import build_report, report_draft
from agrotools.report.html.building import ReportDraft
from agrotools.runner.growing_index import GrowingIndex
from agrotools.runner.rescore import rescore, score_runs
from agrotools.runner.store import RunStore
from support.made_runs import end_to_end, made_sample
from support.runs import manifest

IDS = tuple(f"s{number:03}" for number in range(40))


def made_records() -> list[Record]:
    """Answers without tools to samples without files, every second one right."""
    samples = [made_sample(name).model_copy(update={"files": ()}) for name in IDS]
    return [end_to_end(sample, answer=f"rows: {6 + at % 2}", mode="no-tool") for at, sample in enumerate(samples)]


@contextmanager
def open_run(folder: Path) -> Iterator[RunStore]:
    about = {"benchmark_path": str(folder), "modes": ("no-tool",), "sample_ids": IDS, "planned": {"no-tool": len(IDS)}}
    with RunStore(folder, manifest(**about)) as store:
        yield store


@pytest.mark.unit
def test_index_of_a_run_that_goes_on_yields_its_records_in_order_as_they_come(tmp_path: Path):
    records, ended, seen = made_records(), threading.Event(), []
    with open_run(tmp_path / "run") as store:
        index = GrowingIndex(tmp_path / "run", [record.key for record in records], ended)
        reading = threading.Thread(target=lambda: seen.extend(record.key for record in index))
        reading.start()
        for record in records[20:] + records[:20]:
            store.append(record)
    ended.set()
    reading.join()
    assert seen == sorted(record.key for record in records)
    assert [record.key for record in index] == seen


@pytest.mark.unit
def test_index_refuses_a_record_that_changed_after_it_was_yielded(tmp_path: Path):
    records, ended = made_records(), threading.Event()
    with open_run(tmp_path / "run") as store:
        store.append(records[0])
        reading = iter(GrowingIndex(tmp_path / "run", [record.key for record in records], ended))
        next(reading)
        store.append(records[0])
    ended.set()
    with pytest.raises(RunStoreError, match="changed"):
        list(reading)


@pytest.mark.process
def test_scores_and_page_of_a_run_scored_while_it_went_on_are_those_of_scoring_it_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("agrotools.report.ahead.FEWEST", 1)
    run, records = tmp_path / "run", made_records()
    with ScoringAhead(allow_invalid=False) as ahead:
        with open_run(run) as store:
            ahead.begin(run)
            for record in records[30:] + records[:30]:
                store.append(record)
        ahead.end()
        with report_draft([run], NO_COMPARISONS) as draft:
            collected = ahead.collected()
            assert draft is not None
            assert collected is not None
            draft.restore(collected)
        result = ahead.scored()
    assert result is not None
    (scored,) = score_runs([run], known={run: result})
    known = {"summaries": [scored.summary], "tallies": [scored.tally], "references": {}, "scored": True}
    page = build_report([run], run / "report.html", draft=draft, **known).path.read_bytes()
    scores = (run / "scores.json").read_bytes()
    rescored = rescore(run)
    assert (rescored.summary, rescored.telling_sample) == (scored.summary, scored.telling_sample)
    assert (run / "scores.json").read_bytes() == scores
    known |= {"summaries": [rescored.summary], "tallies": [rescored.tally]}
    assert build_report([run], run / "report.html", **known).path.read_bytes() == page


@pytest.mark.unit
def test_draft_that_takes_over_some_records_adds_the_others(tmp_path):
    run = tmp_path / "run"
    with open_run(run) as store:
        for record in made_records():
            store.append(record)
    begun = ReportDraft([run], NO_COMPARISONS)
    begun.begin_run()
    for record in begun.runs[0].records.at(range(15)):
        begun.add(record, begun.runs[0].scores_of(record))
    with report_draft([run], NO_COMPARISONS) as draft:
        assert draft is not None
        draft.restore(begun.collected())
    (scored,) = score_runs([run])
    known = {"summaries": [scored.summary], "references": {}, "scored": True}
    page = build_report([run], run / "report.html", draft=draft, **known).path.read_bytes()
    assert build_report([run], run / "report.html", **known).path.read_bytes() == page


@pytest.mark.process
def test_run_is_scored_as_usual_if_its_process_fails_or_has_nothing_to_score(tmp_path, monkeypatch):
    monkeypatch.setattr("agrotools.report.ahead.FEWEST", 1)
    run = tmp_path / "run"
    with ScoringAhead(allow_invalid=False) as ahead, open_run(run):
        ahead.begin(run)
        ahead.end()
        assert ahead.collected() is None  # the run has no records
    with open_run(run) as store:
        for record in made_records():
            store.append(record)
    (run / "prompts.jsonl").write_bytes(b"{}\n")  # damaged: the page cannot show it
    with ScoringAhead(allow_invalid=False) as ahead:
        ahead.begin(run)
        ahead.end()
        assert ahead.collected() is None or ahead.scored() is None or rescore(run).summary.modes


@pytest.mark.unit
def test_short_runs_have_no_process_of_their_own(tmp_path: Path):
    with open_run(tmp_path / "run"), ScoringAhead(allow_invalid=False) as ahead:
        ahead.begin(tmp_path / "run")
        ahead.end()
        assert ahead.collected() is None
