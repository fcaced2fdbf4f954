"""``agrotools review``: what it reads, what it prints, what it writes with --apply, and what it refuses."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agrotools.loading import load_benchmark
from agrotools_build.review.agreement import Decision, ReviewJournal
from agrotools_build.review.material import drawn_sample, open_material
from support.command import run_command
from support.made_runs import keep, made_sample, picture, right, write_files, write_run
from support.review_server import review_benchmark, reviewing
from support.small_pack import small_pack, use_pack

pytest.importorskip("starlette", reason="needs the extra review")
pytest.importorskip("uvicorn", reason="needs the extra review")

pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return review_benchmark(tmp_path / "benchmark", 5)


def decide(folder: Path, *made: tuple[int, str, str, dict[str, Any]]) -> None:
    """Store decisions (sample number, reviewer, verdict, other fields) as the page does."""
    material = open_material(str(folder))
    journal = ReviewJournal(folder / "review.jsonl")
    for at, (number, reviewer, verdict, more) in enumerate(made):
        sample = f"rows-{number:04d}"
        fields = {
            "id": f"{at:08x}",
            "sample": sample,
            "content": material.facts[sample].content,
            "reviewer": reviewer,
        }
        journal.append(Decision.model_validate(fields | {"verdict": verdict} | more))


BLURRED = {"reason": "Blurred."}
POLITE = {
    "reason": "politer",
    "edits": {
        "query": "Please, how much is green, twice over?",
        "slots": {"green": {"abs_tol": 4.0}},
    },
}


def samples(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        each["id"]: each
        for each in map(json.loads, (folder / "samples.jsonl").read_text().splitlines())
    }


def test_apply_writes_a_new_benchmark_without_rejected_samples_and_with_agreed_edits(
    folder: Path, tmp_path: Path
):
    flags = [
        {"id": f"rows-000{n}", "check": "leak", "severity": "warning", "message": "m"}
        for n in (1, 3)
    ]
    (folder / "quality.jsonl").write_text("".join(json.dumps(flag) + "\n" for flag in flags))
    decide(
        folder,
        (1, "Ada", "reject", BLURRED),
        (1, "Bo", "reject", {"reason": "no"}),
        (2, "Ada", "reject", {"reason": "blurred"}),
        (3, "Ada", "edit", POLITE),
        (3, "Bo", "edit", POLITE | {"reason": "as Ada says"}),
        (4, "Ada", "accept", {}),
    )
    before = (folder / "samples.jsonl").read_bytes()
    done = run_command("review", folder, "--apply", "--out", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    assert "3 samples, 2 dropped, 1 edited" in done.stdout
    old, new = samples(folder), samples(tmp_path / "new")
    assert list(new) == ["rows-0003", "rows-0004", "rows-0005"]
    assert (new["rows-0003"]["query"], new["rows-0003"]["answer"][0]["abs_tol"]) == (
        POLITE["edits"]["query"],
        4.0,
    )
    assert new["rows-0003"]["answer"][0]["label"] == old["rows-0003"]["answer"][0]["label"]
    assert new["rows-0004"]["query"] == old["rows-0004"]["query"]
    assert sorted(path.name for path in (tmp_path / "new" / "files").iterdir()) == [
        "3.png",
        "4.png",
        "5.png",
    ]
    assert "rows-0001" not in (tmp_path / "new" / "quality.jsonl").read_text()
    assert 'version = "1+reviewed"' in (tmp_path / "new" / "benchmark.toml").read_text()
    assert (folder / "samples.jsonl").read_bytes() == before
    assert "without a decision, kept as they are: 1 sample" in done.stdout
    accepted = run_command(
        "review", folder, "--apply", "--accepted", "--out", tmp_path / "accepted"
    )
    assert list(samples(tmp_path / "accepted")) == ["rows-0003", "rows-0004"]
    assert "dropped 1: without a decision (rows-0005)" in accepted.stdout
    # What was decided on samples that stayed as they were holds for them in the new folder, too.
    kept = open_material(str(tmp_path / "new")).facts["rows-0004"].content
    assert kept == open_material(str(folder)).facts["rows-0004"].content


def test_disputed_samples_are_settled_before_anything_is_applied(folder: Path, tmp_path: Path):
    decide(folder, (1, "Ada", "reject", BLURRED), (1, "Bo", "accept", {}))
    refused = run_command("review", folder, "--apply", "--out", tmp_path / "new")
    assert refused.returncode == 2
    assert "differ on 1 samples: rows-0001" in refused.stderr
    assert "--disputed" in refused.stderr
    assert not (tmp_path / "new").exists()
    for choice, count in (("keep", 5), ("drop", 4)):
        done = run_command(
            "review", folder, "--apply", "--out", tmp_path / choice, "--disputed", choice, "--json"
        )
        assert done.returncode == 0, done.stderr
        applied = json.loads(done.stdout)
        assert applied["kept"] == count == len(samples(tmp_path / choice))
        assert applied["disputed"] == ["rows-0001"]


@pytest.mark.parametrize("out", ["{folder}", "{folder}/files/new", "{folder}/.."])
def test_the_folder_under_review_is_never_written_over(folder: Path, out: str):
    refused = run_command("review", folder, "--apply", "--out", out.format(folder=folder))
    assert refused.returncode == 2
    assert "under review" in refused.stderr


def test_summary_counts_and_says_why_kappa_is_undefined(folder: Path):
    decide(folder, (1, "Ada", "accept", {}), (1, "Bo", "accept", {}), (2, "Ada", "reject", BLURRED))
    assert "Ada and Bo: kappa is undefined" in run_command("review", folder, "--summary").stdout
    before = sorted(path.name for path in folder.iterdir())
    data = json.loads(run_command("review", folder, "--summary", "--json").stdout)
    assert sorted(path.name for path in folder.iterdir()) == before, "a summary writes nothing"
    assert data["agreements"][0] | {"why": ""} == {
        "reviewers": ["Ada", "Bo"], "n": 1, "agreed": 1, "kappa": None, "why": "",
    }  # fmt: skip
    text = (folder / "samples.jsonl").read_text()
    (folder / "samples.jsonl").write_text(text.replace("block 1 is green", "block 1 was green"))
    data = json.loads(run_command("review", folder, "--summary", "--json").stdout)
    assert (data["outdated"], data["standings"]["undecided"]) == (2, 4)


def test_the_samples_of_a_run_are_reviewed_with_their_artifacts(tmp_path: Path):
    from agrotools.core import Observation, ReferenceTrajectory

    overlay = keep(tmp_path / "run", picture((200, 30, 30), form="PNG"))
    plain = made_sample("s0")
    first, second = plain.reference.steps
    seen = Observation(result={"value": 6.0}, artifacts=(overlay,))
    steps = (first.model_copy(update={"observation": seen}), second)
    sample = plain.model_copy(update={"reference": ReferenceTrajectory(steps=steps)})
    write_files(tmp_path, [sample])
    write_run(tmp_path / "run", [right(sample)], model="some-model")
    with reviewing(tmp_path / "run", "--by", "Ada") as server:
        (row,) = server.index()["samples"]
        assert row["id"] == "s0"
        assert b"How many rows are there" in server.ask("/sample/s0").body
        drawn = server.ask(f"/artifact/s0/1/{overlay.name}")
        assert (drawn.status, drawn.headers["content-type"]) == (200, "image/jpeg")
        made = {
            "id": "0" * 8,
            "sample": "s0",
            "content": row["content"],
            "reviewer": "Ada",
            "verdict": "accept",
        }
        assert server.post(made).status == 200
    assert '"s0"' in (tmp_path / "run" / "review.jsonl").read_text()
    refused = run_command("review", tmp_path / "run", "--apply", "--out", tmp_path / "new")
    assert refused.returncode == 2
    assert "to a benchmark folder, not to a run" in refused.stderr


@pytest.mark.slow
def test_a_benchmark_known_by_name_keeps_its_decisions_where_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # Its own folder is drawn again as soon as anything in it changes.
    drawn = use_pack(monkeypatch, small_pack(tmp_path / "small.jsonl.xz", samples=1))
    work = tmp_path / "work"
    work.mkdir()
    said = run_command("review", "embedded", "--summary", "--json", cwd=work)
    assert said.returncode == 0, said.stderr
    assert not drawn.exists()  # scenes are drawn when their samples are opened
    load_benchmark("embedded")
    refused = run_command("review", drawn, "--summary")
    assert refused.returncode == 2
    assert "by its name" in refused.stderr
    log = tmp_path / "mine.jsonl"
    assert run_command("review", drawn, "--summary", "--log", log).returncode == 0


def test_what_is_no_benchmark_is_said_without_a_trace(folder: Path, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    with (broken / "samples.jsonl").open("a") as file:
        file.write('{"id": "half\n')
    for what, code, message in (
        (tmp_path / "empty", 2, "not a benchmark folder"),
        (tmp_path / "none", 2, "there is no folder"),
        (broken, 2, "samples.jsonl, line 6"),
    ):
        for more in ((), ("--summary",)):
            refused = run_command("review", what, *more)
            assert refused.returncode == code, refused.stderr
            assert message in refused.stderr
            assert "hint:" in refused.stderr
            assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--apply",), ("--out", "x"), ("--json",), ("--apply", "--out", "x", "--summary"), ("--disputed", "burn"),
        ("--by", "x" * 61), ("--port", "70000"), ("--sample", "0"),
        ("--apply", "--out", "x", "--sample", "2"), ("--accepted",),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_together_are_a_usage_error(
    folder: Path, arguments: tuple[str, ...]
):
    refused = run_command("review", folder, *arguments)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def test_a_drawn_sample_is_the_same_for_every_reviewer_and_grows_from_a_smaller_one(folder: Path):
    with reviewing(folder, "--sample", "3") as server:
        three = {row["id"] for row in server.index("Ada")["samples"]}
        assert {row["id"] for row in server.index("Bo")["samples"]} == three
    assert len(three) == 3
    material = open_material(str(folder))
    assert {*drawn_sample(material, 3).facts} == three, "in another process"
    assert {*drawn_sample(material, 2).facts} < three
    of_sample = run_command("review", folder, "--sample", "3", "--summary", "--json")
    assert json.loads(of_sample.stdout)["samples"] == 3


def test_other_decisions_are_hidden_until_one_has_decided(folder: Path):
    decide(folder, (1, "Ada", "reject", BLURRED))
    with reviewing(folder) as server:
        row = server.index("Bo")["samples"][0]
        assert (row["standing"], row["reviewers"]) == ("undecided", 1)
        before = server.ask("/decisions/rows-0001?reviewer=Bo").data
        assert (before["mine"], before["others"], before["hidden"]) == (None, [], 1)
        made = {
            "id": "b" * 8,
            "sample": row["id"],
            "content": row["content"],
            "reviewer": "Bo",
            "verdict": "accept",
        }
        assert server.post(made).data["row"]["standing"] == "disputed"
        after = server.ask("/decisions/rows-0001?reviewer=Bo").data
        assert [each["reason"] for each in after["others"]] == ["Blurred."]


def test_a_port_in_use_is_said_and_none_asked_for_is_always_found(folder: Path):
    with reviewing(folder) as first:
        refused = run_command("review", folder, "--port", str(first.port))
        assert refused.returncode == 2
        assert f"port {first.port} cannot be used: Address already in use\n" in refused.stderr
        with reviewing(folder) as second:
            assert second.port != first.port
    with reviewing(folder, "--port", str(second.port)) as asked:
        assert asked.port == second.port
