"""Samples that ask to recognise schematic drawings are in no headline metric, and are all there beside it."""

import pytest

from agrotools.core import Fact, OpenTextSlot, Record, Sample, Score, Step, Trajectory
from agrotools.scoring import compare, summarise
from support.plain_sample import plain_sample


def sample(number: int, *, drawn: object, **changes) -> Sample:
    name = f"{'drawn' if drawn else 'photo'}{number}"
    return plain_sample(name, metadata={"schematic": drawn}, cluster=name, **changes)


def record(of: Sample, mode="end-to-end", *, text="weeds: yes", invalid=None) -> Record:
    if invalid is not None:
        return Record(sample=of, mode=mode, invalid=invalid)
    steps = (Step(turn=0, kind="answer", text=text),)
    return Record(sample=of, mode=mode, trajectory=Trajectory(steps=steps, termination="answered"))


def photos(n=12, mode="end-to-end", **changes) -> list[Record]:
    return [record(sample(number, drawn=False), mode, **changes) for number in range(n)]


def drawings(n=5, mode="end-to-end", task_type="pest_diagnosis", **changes) -> list[Record]:
    return [record(sample(number, drawn=True, task_type=task_type), mode, **changes) for number in range(n)]


def test_the_headline_is_what_it_would_be_without_the_drawings():
    wrong = drawings(text="weeds: no")
    mode, alone = (summarise(records).modes["end-to-end"] for records in (photos() + wrong, photos()))
    assert mode.metrics == alone.metrics
    assert mode.metrics["agrotools.fas"].overall.value == 1.0
    assert set(mode.metrics["agrotools.fas"].by_task_type) == {"weed_crop_area"}
    assert (mode.n_samples, mode.n_records, mode.headline) == (17, 17, True)
    assert mode.schematic is not None
    assert (mode.schematic.n_samples, mode.schematic.n_clusters) == (5, 5)
    assert mode.schematic.metrics == summarise(wrong).modes["end-to-end"].schematic.metrics
    fas = mode.schematic.metrics["agrotools.fas"]
    assert (fas.overall.value, fas.overall.n, set(fas.by_task_type)) == (0.0, 5, {"pest_diagnosis"})
    assert alone.schematic is None


@pytest.mark.parametrize("said", [False, None, "true", 1])
def test_only_true_keeps_a_sample_out(said):
    marked = plain_sample("s", metadata={"schematic": said})
    mode = summarise([record(marked)]).modes["end-to-end"]
    assert (mode.schematic, mode.metrics["agrotools.fas"].overall.n) == (None, 1)


def test_steps_on_drawings_are_in_no_process_metric():
    records = [
        Record(sample=sample(0, drawn=schematic), mode="step-by-step", actions=()) for schematic in (True, False)
    ]
    rows = [
        [Score(metric="agrotools.tool_acc", version="1", sample_id=each.sample.id, step=step, value=value)]
        for each, step, value in zip(records, (0, 0), (1.0, 0.0), strict=True)
    ]
    mode = summarise(records, rows).modes["step-by-step"]
    assert mode.metrics["agrotools.tool_acc"].overall.value == 0.0
    assert mode.schematic.metrics["agrotools.tool_acc"].overall.value == 1.0


def test_a_benchmark_of_drawings_alone_has_no_headline():
    mode = summarise(drawings(12)).modes["end-to-end"]
    assert (mode.headline, mode.metrics, mode.ots_chance) == (False, {}, None)
    assert mode.schematic.headline
    assert mode.schematic.metrics["agrotools.fas"].overall.value == 1.0


def test_the_share_of_invalid_records_is_taken_of_what_is_shown():
    invalid = [record(sample(99, drawn=False), invalid="refused")]
    many = summarise(drawings(200) + photos(50) + invalid).modes["end-to-end"]
    assert many.invalid.share < 0.01
    assert not many.headline
    assert many.schematic.headline
    other = summarise(photos(12) + drawings(5, invalid="refused")).modes["end-to-end"]
    assert (other.headline, other.schematic.headline, other.schematic.n_invalid, other.invalid.n) == (True, False, 5, 5)
    assert other.metrics["agrotools.fas"].bounds is None


def test_the_gain_by_tools_counts_no_drawing():
    records = photos() + photos(mode="no-tool", text="weeds: no") + drawings() + drawings(mode="no-tool")
    part = summarise(records).no_tool_part
    gain = part.gain["agrotools.fas"].overall
    assert (gain.value, gain.n, part.n_schematic, part.n_excluded) == (1.0, 12, 5, 0)
    assert part.metrics["agrotools.fas"].overall.n == 12


def test_the_chance_level_beside_the_headline_is_that_of_its_answers():
    def told(number, fact, text, *, drawn):
        slot = OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=(fact,)),))
        return record(sample(number, drawn=drawn, answer=(slot,)), text=f"advice: {text}")

    records = [
        told(0, "spray", "spray", drawn=False),
        told(1, "irrigate", "irrigate", drawn=False),
        told(2, "hoe", "hoe, spray and irrigate", drawn=True),
    ]
    mode = summarise(records).modes["end-to-end"]
    assert mode.ots_chance is not None
    assert (mode.ots_chance.value, mode.ots_chance.n) == (0.0, 2)
    assert (mode.schematic.ots_chance.value, mode.schematic.ots_chance.n) == (1.0, 1)


def test_runs_are_compared_without_drawings_and_on_drawings_alone():
    first = photos(20) + drawings(6, text="weeds: no")
    second = photos(20, text="weeds: no") + drawings(4)
    compared = compare(first, second)
    assert compared.modes["end-to-end"]["agrotools.fas"].overall.value == 1.0
    assert compared.modes["end-to-end"]["agrotools.fas"].overall.n == 20
    assert compared.schematic["end-to-end"]["agrotools.fas"].overall.value == -1.0
    assert (compared.n_schematic, compared.unpaired) == ({"end-to-end": 4}, {"end-to-end": 2})
    assert compare(photos(), photos()).schematic == {}


def test_a_summary_with_drawings_survives_json():
    summary = summarise(photos() + drawings())
    assert type(summary).model_validate_json(summary.model_dump_json()) == summary
