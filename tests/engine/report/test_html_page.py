"""The report as a file: whole, safe, bounded, and with the numbers of the tables."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from agrotools.calling.result import CERTIFICATES
from agrotools.core import (
    AbstainSlot,
    Observation,
    Record,
    Reply,
    RunStoreError,
    SampleFile,
    Usage,
    UsageError,
)
from agrotools.models import Message
from agrotools.report.html.overview import accuracy_sentence
from agrotools.report.html.page import build_report
from agrotools.report.html.pictures import Absent, PictureEncoder, Places, benchmark_roots
from agrotools.runner.prompts import PromptLog
from agrotools.runner.rescore import compare_runs, rescore, score_runs
from agrotools.runner.store import read_manifest
from agrotools.runner.yardsticks import Yardsticks
from support.made_runs import (
    ATTACK,
    ATTACKS,
    call,
    end_to_end,
    hostile_run,
    keep,
    made_sample,
    picture,
    predicted,
    right,
    write_files,
    write_run,
)
from support.report_page import ReportPage, read_report, unpacked
from support.shown import tables_text


def page_of(*runs: Path, **options) -> ReportPage:
    return read_report(build_report(list(runs), runs[0].parent / "report.html", **options).path)


def write_two_runs(tmp_path: Path) -> tuple[Path, Path]:
    """Write runs on twelve samples: a model that is wrong on every third, and the oracle, wrong on the first."""
    samples = [made_sample(f"s{number:02}") for number in range(12)]
    write_files(tmp_path, samples)
    model = tmp_path / "model"
    overlay = keep(tmp_path / "oracle", picture((200, 30, 30), form="PNG"))
    wrong = [
        end_to_end(each, call("2*4"), call("plot()", 1), answer="rows: 8") for each in samples[::3]
    ]
    rest = [right(each) for at, each in enumerate(samples) if at % 3]
    steps = [predicted(each, "2*3", "6 + 2") for each in samples]
    tools = {"analyze_lesions": "1:abc", "theirs": "1:abc"}
    write_run(model, [*wrong, *rest, *steps], model="some-model", toolset=tools)
    drawn = Observation(result={"value": 6.0, "overlay": "overlay.png"}, artifacts=(overlay,))
    best = [
        end_to_end(each, call("2*3", observation=drawn), call("6 + 1", 1)) for each in samples[1:]
    ]
    lost = end_to_end(samples[0], call("2*3"), call("6 + 1", 1), answer="rows: 9")
    write_run(
        tmp_path / "oracle", [lost, *best], model="baseline:oracle", privileged=True, toolset=tools
    )
    return model, tmp_path / "oracle"


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path]:
    return write_two_runs(tmp_path)


@pytest.fixture(scope="module")
def shared_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same runs, not to be changed."""
    return write_two_runs(tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def page_of_both(shared_runs: tuple[Path, Path]) -> ReportPage:
    return page_of(*shared_runs)


def test_the_overview_and_tables_hold_the_numbers_of_the_terminal(page_of_both, shared_runs):
    shown = " ".join(page_of_both.shown.split())
    text = tables_text([rescore(run).summary for run in shared_runs])
    numbers = set(re.findall(r"\d+\.\d", text))
    assert len(numbers) > 8
    assert {number for number in numbers if number not in shown} == set()
    assert "privileged" in shown
    assert "Detectable difference" in shown
    model, oracle = page_of_both.head["runs"]
    value, lower, upper, n = model["score"]
    assert value == pytest.approx(8 / 12)
    assert 0.3 < lower < value < upper < 0.95
    assert (n, model["role"], oracle["role"]) == (12, "model", "ceiling")
    assert oracle["score"][0] == pytest.approx(11 / 12)
    assert model["tasks"]["organ_counting"][0] == pytest.approx(8 / 12)
    assert page_of_both.head["measure"]["label"] == "FAS"
    assert "(this is version 1)" in model["certificates"]["analyze_lesions"]
    assert model["certificates"]["theirs"] == "No accuracy study."
    statistics = rescore(shared_runs[0]).summary.modes["end-to-end"].counts.spent["seconds"]
    assert model["seconds"] == statistics.per_record, "the time in the table of the terminal"


def test_a_tool_says_in_one_sentence_on_what_it_was_tested():
    found = json.loads(CERTIFICATES.read_text(encoding="utf-8"))
    sentences = {
        tool: accuracy_sentence(tool, each.get("version", "")) for tool, each in found.items()
    }
    assert sentences["extract_marked_region"] == (
        f"Tested on {found['extract_marked_region']['made']:,} drawn pictures, no photographs."
    )
    assert sentences["identify_weed"] == (
        f"Tested on photographs of {found['identify_weed']['subjects']} subjects."
    )
    assert sentences["calculate"] == "Exact arithmetic, no accuracy study."
    assert max(map(len, sentences.values())) < 80


def test_the_table_of_samples_has_question_expected_and_given_answer(tmp_path: Path):
    first, second, third = (made_sample(f"s{number}") for number in range(3))
    prose = end_to_end(second, answer="I see about seven rows.\nPerhaps eight.")
    records = [end_to_end(first, answer="I count 3 twice.\nrows: 8"), prose]
    page = page_of(write_run(tmp_path / "run", [*records, end_to_end(third, answer=None)]))
    shown = [(row["query"], row["expected"], row["given"]) for row in page.records]
    assert shown == [
        (first.query, "7.0 ± 0", "8"),
        (second.query, "7.0 ± 0", "I see about seven rows. · Perhaps eight."),
        (third.query, "7.0 ± 0", ""),
    ]


def test_lost_points_of_records_add_up_to_those_of_the_run(tmp_path: Path):
    records = [
        end_to_end(made_sample("s1"), call("2*4"), answer="rows: 8"),
        end_to_end(made_sample("s2"), call("2*3"), call("6 + 1", 1), answer="rows: 9"),
        end_to_end(made_sample("s3"), call("2*3"), call("6 + 1", 1), answer="rows: 7"),
    ]
    page = page_of(write_run(tmp_path / "run", records))
    split = page.head["runs"][0]["lost"]["end-to-end"]["run"]
    assert split["gap"] == sum(split["parts"].values()) == pytest.approx(200 / 3, abs=1e-5)
    for part, points in split["parts"].items():
        of_records = sum(each["lost"].get(part, 0.0) for each in page.records)
        assert of_records / 3 == pytest.approx(points, abs=1e-3)
    assert [bool(each["lost"]) for each in page.records] == [True, True, False]


def test_the_policy_allows_the_two_blocks_of_the_page_and_nothing_else(page_of_both):
    text, page = page_of_both.text, page_of_both.elements
    (policy,) = [
        each["content"]
        for each in page.of("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert (rules["default-src"], rules["img-src"]) == ("'none'", "data:")
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (block,) = [
            raw for name, attributes, raw in page.raw if name == tag and "type" not in attributes
        ]
        digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert "unsafe" not in policy
    for tag, attributes in page.elements:
        assert not [
            name
            for name in attributes
            if name.startswith("on") or name in ("style", "srcset", "action")
        ], tag
        address = attributes.get("src") or attributes.get("href") or ""
        assert address.startswith(("data:", "#")) or not address, (tag, address)
    assert not re.search(r"url\(|@import|https?://(?!127|www.w3.org/2000/svg)", text)


def test_what_others_wrote_stands_there_as_text(tmp_path: Path):
    run = hostile_run(tmp_path / "run")
    harmless = page_of(write_run(tmp_path / "plain", [right(made_sample())])).elements
    report = page_of(run)
    page = report.elements
    known = {tag for tag, _ in harmless.elements} | {
        "div",
        "h2",
        "h3",
        "p",
        "a",
        "section",
        "table",
        "abbr",
    }
    assert {tag for tag, _ in page.elements} <= known
    assert len(page.of("meta")) == len(harmless.of("meta"))
    scripts = [attributes.get("type") for tag, attributes, _ in page.raw if tag == "script"]
    assert scripts.count(None) == 1
    assert not [
        name for _, attributes in page.elements for name in attributes if name.startswith("on")
    ]
    everything = json.dumps([report.head, *report.details], ensure_ascii=False) + report.shown
    for attack in ATTACKS[:2]:
        assert everything.count(attack) > 10, attack
    assert "{{ 7 * 7 }}" in report.shown
    assert "\u202e" not in report.text
    assert "\u2028" not in report.text
    assert report.records[0]["query"].startswith(ATTACK[:40])


def test_calls_stand_beside_reference_calls_and_what_disagrees_is_marked(shared_runs):
    page = page_of(shared_runs[0])
    detail = page.detail(
        next(row for row in page.records if row["sample"] == "s00" and row["mode"] == "end-to-end")
    )
    step = detail["steps"][0]
    assert step["args"][0][:4] == ["expression", "2*4", "2*3", "✗"]
    assert (step["state"], step["match"], step["call"]) == ("wrong", 0, {"expression": "2*4"})
    assert ["reason", "off by 1, outside the tolerance of 0", "yellow"] in detail["slots"][0][
        "lines"
    ]
    assert detail["slots"][0]["matched"] in detail["answer"]


def test_tables_of_tools_and_questions_are_shown_as_tables(tmp_path: Path):
    rows = "tree,height_m\n" + "".join(f"{number},{number / 10}\n" for number in range(700))
    table = keep(tmp_path / "run", rows.encode(), "trees.csv", "table")
    file = SampleFile(name="field.csv", path="files/field.csv", kind="table")
    sample = made_sample(files=(file,))
    (tmp_path / "benchmark" / "files").mkdir(parents=True)
    (tmp_path / "benchmark" / "benchmark.toml").write_text('name = "b"\n')
    (tmp_path / "benchmark" / file.path).write_text("plot,yield\n1,2\n")
    drawn = Observation(result={"count": 700, "table": "trees.csv"}, artifacts=(table,))
    run = write_run(tmp_path / "run", [end_to_end(sample, call("2*3", observation=drawn))])
    written = build_report([run], tmp_path / "report.html")
    (detail,) = read_report(written.path).details
    assert detail["files"][0]["rows"] == [["plot", "yield"], ["1", "2"]]
    shown = detail["steps"][0]["files"][0]
    assert shown["rows"][:2] == [["tree", "height_m"], ["0", "0.0"]]
    assert (len(shown["rows"]), shown["n_rows"]) == (501, 700)
    assert written.missing_pictures == 0


def test_what_the_model_was_sent_and_replied_is_kept_once(tmp_path: Path):
    samples = [made_sample(f"s{number}") for number in range(3)]
    records = [
        end_to_end(
            sample, call("2*3", reply=Reply(text="Action: calculate", usage=Usage(input_tokens=9)))
        )
        for sample in samples
    ]
    run = write_run(tmp_path / "run", records)
    system = "You are given tools. " * 40
    log = PromptLog(run)
    for sample in samples:
        messages = [Message.of("system", system), Message.of("user", sample.query)]
        log.write(log.lines(("end-to-end", sample.id, 0), [(messages, [])]))
    log.close()
    page = page_of(run)
    sent = [detail["sent"][0]["messages"] for detail in page.details]
    assert [each[1]["texts"] for each in sent] == [[sample.query] for sample in samples]
    assert {unpacked(page.stored[f"t{each[0]['texts'][0]}"]) for each in sent} == {system}
    assert sum(name.startswith("t") for name in page.stored) == 1
    assert page.details[0]["steps"][0]["reply"] == {
        "text": "Action: calculate",
        "seconds": 0.0,
        "tokens": [9, 0],
    }


def test_pictures_are_held_once_whichever_samples_show_them(page_of_both):
    held = {name: raw for name, raw in page_of_both.stored.items() if re.fullmatch(r"p\d+", name)}
    files = [file for detail in page_of_both.details for file in detail["files"]]
    files += [
        file
        for detail in page_of_both.details
        for step in detail["steps"]
        for file in step.get("files", [])
    ]
    used = [file["picture"] for file in files]
    assert len(held) == 13  # twelve photos and one overlay
    assert set(used) == set(held)
    assert len(used) > 3 * len(held) - 3
    assert all(
        re.fullmatch(r"data:image/(jpeg|png);base64,[A-Za-z0-9+/=]+", raw) for raw in held.values()
    )


def test_a_page_without_the_benchmark_says_so_and_one_that_moved_is_found(
    two_runs, tmp_path: Path, monkeypatch
):
    manifest = read_manifest(two_runs[0]).model_copy(update={"benchmark_path": "benchmark"})
    monkeypatch.chdir("/")
    assert benchmark_roots(manifest, two_runs[0], None) == [(tmp_path / "benchmark").resolve()]
    (tmp_path / "benchmark").rename(tmp_path / "elsewhere")
    written = build_report(two_runs, tmp_path / "moved.html")
    assert written.missing_pictures == 12
    page = read_report(written.path)
    assert page.head["missing_pictures"] == 12
    assert page.everything.count("not found on this machine") == 36
    assert len(page.details) == written.shown == 36
    found = build_report(two_runs, tmp_path / "moved.html", data_root=tmp_path / "elsewhere")
    assert found.missing_pictures == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\xff\xd8\xff\xe0 cut", "damaged"),
        (picture((1, 2, 3))[:400], "damaged"),
        (
            b"<VRTDataset><SourceFilename>/etc/passwd</SourceFilename></VRTDataset>",
            "virtual raster",
        ),
        (b"GIF89a" + b"\0" * 90, "GIF"),
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\0\0\1\0\0\x08\0\0\0\0I\xefo?\0\0\0\1IDAT\0",
            "million pixels",
        ),
    ],
)
def test_broken_and_hostile_picture_files_are_said_to_be(
    tmp_path: Path, content: bytes, reason: str
):
    sample = made_sample()
    root = write_files(tmp_path, [sample])
    (root / "files" / "s1.jpg").write_bytes(content)
    run = write_run(tmp_path / "run", [right(sample)])
    assert reason in page_of(run).details[0]["files"][0]["absent"]


def test_files_and_artifacts_are_found_by_content_alone(tmp_path: Path):
    root = write_files(tmp_path, [made_sample()])
    (tmp_path / "secret.jpg").write_bytes(picture((1, 2, 3)))
    (root / "files" / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    places = Places([])

    def found(path: str, sha256: str | None = None):
        return places.of_file(
            SampleFile(name="a.jpg", path=path, kind="image", sha256=sha256), [root.resolve()]
        )

    assert isinstance(found("files/s1.jpg"), Path)
    assert found(str(tmp_path / "secret.jpg")) == Absent("not found on this machine")
    assert found("../secret.jpg") == Absent("not found on this machine")
    assert found("files/link.jpg") == Absent("not found on this machine")
    assert found("files/s1.jpg", "0" * 64) == Absent("altered since the run")
    kept = keep(tmp_path / "b", picture((9, 9, 9), form="PNG"))
    kept_places = Places([tmp_path / "a", tmp_path / "b"])
    assert isinstance(kept_places.of_artifact(kept), Path)
    assert isinstance(
        kept_places.of_artifact(kept.model_copy(update={"sha256": "../" * 20})), Absent
    )
    next((tmp_path / "b" / "artifacts").iterdir()).write_bytes(b"altered")
    assert isinstance(Places([tmp_path / "b"]).of_artifact(kept), Absent)


def test_pictures_keep_to_their_budget(tmp_path: Path):
    for number in range(8):
        noise = Image.effect_noise((900, 700), 90 + number).convert("RGB")
        noise.save(tmp_path / f"{number}.jpg", quality=95)
    pictures = PictureEncoder(16, budget_bytes=120_000)
    shown = [
        pictures.of_file(
            SampleFile(name=f"{n}.jpg", path=f"{n}.jpg", kind="image"), tmp_path / f"{n}.jpg"
        )
        for n in range(8)
    ]
    assert not [each for each in shown if isinstance(each, Absent)]
    assert pictures.bytes <= 120_000
    sides = [max(each.width_px, each.height_px) for each in shown]
    assert set(sides) <= {480, 320, 200, 120}
    assert pictures.shrunk == sum(side < 480 for side in sides) >= 6
    roomy = PictureEncoder(1, longest_px=480)
    one = roomy.of_file(SampleFile(name="0.jpg", path="0.jpg", kind="image"), tmp_path / "0.jpg")
    assert (one.width_px, roomy.shrunk) == (480, 0)
    plain, bomb = tmp_path / "a.svg", tmp_path / "b.svg"
    plain.write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    bomb.write_text('<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg>&a;</svg>')
    first = keep(tmp_path / "run", plain.read_bytes(), "a.svg", "plot")
    assert not isinstance(roomy.of_artifact(first, plain), Absent)
    assert isinstance(
        roomy.of_artifact(first.model_copy(update={"sha256": "1" * 64}), bomb), Absent
    )


def test_what_is_left_out_is_said_with_how_to_get_it(shared_runs, monkeypatch: pytest.MonkeyPatch):
    page = page_of(shared_runs[0])
    assert len(page.records) == page.head["n_records"] == 24
    assert page.head["command"] == f"agrotools report {shared_runs[0]}"
    assert str(shared_runs[0].parent / "benchmark") in page.head["originals"]
    monkeypatch.setattr("agrotools.report.html.page._BLOCK_BYTES", 1)
    monkeypatch.setattr("agrotools.report.html.page.DETAIL_BYTES", 1)
    page = page_of(shared_runs[0])
    assert page.head["without_detail"] == 24 - len(page.details) > 0
    assert len(page.records) == 24
    whole = page_of(shared_runs[0])
    monkeypatch.setattr("agrotools.report.html.page.MOST_LISTED", 8)
    page = page_of(shared_runs[0])
    names = sorted({row["sample"] for row in whole.records})
    assert [row["sample"] for row in page.records] == [*names[:4], *names[:4]]
    assert page.head["notes"][0].startswith(
        "8 of 24 records are listed: those of the first samples"
    )
    ours = page.head["runs"][0]["lost"]["end-to-end"]["run"]
    assert ours["n"] == 12, "the split is of all records, listed or not"
    assert ours["gap"] == pytest.approx(100 * (1 - page.head["runs"][0]["score"][0]), abs=1e-5)
    assert [page.head["runs"], page.head["measure"]] == [whole.head["runs"], whole.head["measure"]]


def test_differences_of_quick_parts_and_of_runs_that_saw_the_reference_are_shown(tmp_path: Path):
    samples = [made_sample(f"s{at:02}") for at in range(12)]
    good = write_run(
        tmp_path / "good", map(right, samples), quick=True, model="baseline:oracle", privileged=True
    )
    poor = [
        end_to_end(each, call("2*4"), answer="rows: 8") if at % 2 else right(each)
        for at, each in enumerate(samples)
    ]
    (pair,) = page_of(good, write_run(tmp_path / "poor", poor, quick=True)).head["pairs"]
    (compared,) = compare_runs([good, tmp_path / "poor"])
    expected = compared.modes["end-to-end"]["fas"].overall
    assert pair["difference"][:3] == [
        expected.value,
        expected.interval.lower,
        expected.interval.upper,
    ]
    assert (pair["p"], pair["difference"][0]) == (expected.p_adjusted, -0.5)


def test_a_record_without_a_score_is_neither_right_nor_wrong(tmp_path: Path):
    slot = {
        "type": "open_text",
        "name": "answer",
        "label": "the answer",
        "facts": [{"phrases": ["eight rows"]}],
    }
    sample = made_sample(answer=(slot,), answer_type="open_text")
    (row,) = page_of(
        write_run(tmp_path / "run", [end_to_end(sample, call("2*4"), answer="rows: 8")])
    ).records
    assert row["value"] is None
    assert row["invalid"] == 0


def test_runs_that_differ_or_have_one_name_are_told_apart(tmp_path: Path):
    one = write_run(tmp_path / "one", [right(made_sample())])
    other = write_run(
        tmp_path / "other", [right(made_sample())], benchmark_hash="other", prompt_hash="q"
    )
    assert page_of(one, other).head["differences"] == [
        "different benchmark: h / other",
        "different prompts: p / q",
    ]
    assert page_of(one).head["differences"] == []
    runs = [write_run(tmp_path / place / "run 1", [right(made_sample())]) for place in ("a", "b")]
    assert [run["name"] for run in page_of(*runs).head["runs"]] == ["run-1", "run-1-2"]


def test_a_report_replaces_the_old_one_as_a_whole_or_not_at_all(tmp_path: Path):
    run = write_run(tmp_path / "run", [right(made_sample())])
    folder = tmp_path / "taken.html"
    folder.mkdir()
    with pytest.raises(RunStoreError, match="cannot write the report"):
        build_report([run], folder)
    with pytest.raises(RunStoreError, match="not a run folder"):
        build_report([tmp_path], tmp_path / "out.html")
    with pytest.raises(UsageError, match="there is no folder"):
        build_report([run], tmp_path / "new" / "out.html")
    with pytest.raises(RunStoreError, match="no finished sample"):
        build_report([write_run(tmp_path / "empty", [])], tmp_path / "out.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "run", "taken.html"]
    out = build_report([run], tmp_path / "out.html").path
    assert build_report([run], out).path.read_bytes() == out.read_bytes()


def test_text_is_whole_if_it_is_not_endless(tmp_path: Path):
    sample = made_sample()
    steps = [call("9" * 200_000, thought="x" * 200_000) for _ in range(300)]
    run = write_run(tmp_path / "run", [end_to_end(sample, *steps, answer="y" * 500_000)])
    page = page_of(run)
    (detail,) = page.details
    assert len(page.text) < 1_500_000
    assert len(json.dumps(detail)) < 10_000_000
    assert "more characters" in detail["answer"]
    assert detail["left"] == 101
    sample, answer = made_sample(), f"rows: 7 {'y' * 50_000}"
    long = {"value": 6.0, "list": [*range(3000)], "text": "z" * 9000}
    run = write_run(
        tmp_path / "run",
        [end_to_end(sample, call("2*3", observation={"result": long}), answer=answer)],
    )
    (detail,) = page_of(run).details
    assert (detail["answer"], detail["steps"][0]["result"]) == (answer, long)


def test_a_page_is_the_same_whether_its_runs_are_scored_for_it_or_were_scored_before(
    tmp_path: Path,
):
    records: list[Record] = []
    for at, (text, twin_text) in enumerate((("rows: 7", "rows: unknown"), ("rows: 7", "rows: 7"))):
        yes = made_sample(f"yes-{at}", twin=f"no-{at}", may_abstain=True)
        refusal = AbstainSlot(name="refusal", label="none", reason="no_scale", asks=yes.answer)
        no = made_sample(f"no-{at}", twin=f"yes-{at}", may_abstain=True, answer=(refusal,))
        records += [end_to_end(no, call("2*3"), call("6 + 1", 1), answer=text)]
        records += [end_to_end(yes, call("2*3"), call("6 + 1", 1), answer=twin_text)]
    records.append(end_to_end(made_sample("s1"), call("2*4"), answer="rows: 8"))
    run = write_run(tmp_path / "run", records)
    (scored,) = score_runs([run])
    assert scored.tally is not None
    before = page_of(
        run, summaries=[scored.summary], tallies=[scored.tally], yardsticks=Yardsticks()
    )
    again = page_of(run, yardsticks=Yardsticks())
    assert before.text == again.text
    lost = {each["sample"]: each["lost"] for each in before.records}
    assert lost["no-0"] == {"tool:calculate": 100.0, "twin": 100.0}, (
        "its own point and that of its twin"
    )
    assert (run / "scores.json").is_file()
