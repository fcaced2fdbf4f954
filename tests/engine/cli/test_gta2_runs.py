"""GTA-2 from its files to a judged table: ``agrotools eval gta-2``, then ``agrotools score --judge``."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner

from agrotools.cli.main import app
from support.made_gta2 import HERE, write_gta2
from support.openai_server import Body, completion, error, serving, text_of

pytestmark = pytest.mark.process

GRADES = {"1.1": 10, "1.2": 4, "2": 6}
"""7.5 by the weights of the tree."""


def agrotools(*words: object, expect: int = 0) -> str:
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == expect, done.output + str(done.exception)
    return done.output


class Everyone:
    """The model that works (it draws a box where there is an image, then answers) and the judges."""

    def __init__(self) -> None:
        self.judged: list[Body] = []
        self.offered: list[str] = []

    def __call__(self, body: Body) -> web.Response:
        if body["model"] == "worker":
            return self._work(body)
        if body["model"] == "blind" and any(_is_image(part) for part in _parts(body)):
            return error(400, "this model takes no images")
        self.judged.append(body)
        text = text_of(body["messages"][1])
        name = next(
            name
            for name in (*GRADES, "a", "b", "only")
            if f"Requirement {name} is met." in text or name == "only"
        )
        if body["model"] == "mute" and name == "2":
            return completion("A matter of taste.")
        return completion(json.dumps({"score": GRADES.get(name, 5), "analysis": "as told"}))

    def _work(self, body: Body) -> web.Response:
        self.offered = [tool["function"]["name"] for tool in body.get("tools", [])]
        asked = "\n".join(
            text_of(message) for message in body["messages"] if message["role"] == "user"
        )
        if "task_" in asked and not any(message["role"] == "tool" for message in body["messages"]):
            image = next(word.strip("-:;") for word in asked.split() if word.startswith("task_"))
            return completion(
                calls=[("DrawBox", json.dumps({"image": image, "bbox": "(1, 2, 30, 40)"}))]
            )
        return completion("The report is in box.png.")


def _parts(body: Body) -> list[dict[str, Any]]:
    content = body["messages"][1]["content"]
    return content if isinstance(content, list) else []


def _is_image(part: dict[str, Any]) -> bool:
    return part["type"] == "image_url"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gta2_run")
    write_gta2(folder / "gta_dataset_v2")
    everyone = Everyone()
    with serving(everyone) as endpoint:
        words = (
            "gta-2",
            "--data-root",
            folder,
            "--protocol",
            "tool-calling",
            "--base-url",
            endpoint.base_url,
        )
        agrotools("eval", *words, "-m", "worker", "--out", folder / "run")
    assert set(everyone.offered) == {*HERE}
    return folder / "run"


@pytest.fixture
def fresh(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that nobody has judged, and a cache of its own."""
    import shutil

    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(run, tmp_path / "run"))


def score(run: Path, address: str, judge: str) -> str:
    return agrotools("score", run, "--judge", judge, "--judge-base-url", address)


def metrics(run: Path) -> dict[str, float]:
    (summary,) = json.loads(agrotools("score", run, "--json"))
    found = summary["modes"]["end-to-end"]["metrics"]
    return {name: each["overall"]["value"] for name, each in found.items()}


def test_without_a_judge_there_is_no_score_and_the_table_says_why(fresh: Path) -> None:
    told = agrotools("score", fresh)
    assert "these answers are scored by a judge only" in " ".join(told.split())
    assert metrics(fresh) == {}
    agrotools("explain", fresh, "gta2-000")
    agrotools("report", fresh, "--out", fresh / "page.html")


def test_a_judge_sees_what_was_made_and_its_grades_stand_on_the_published_scale(
    fresh: Path,
) -> None:
    everyone = Everyone()
    with serving(everyone) as endpoint:
        told = score(fresh, endpoint.base_url, "seeing")
        # 3 + 2 + 1 + 2 + 3 leaves; what both readings share is asked once.
        assert len(everyone.judged) == 11
        assert sum(any(_is_image(part) for part in _parts(body)) for body in everyone.judged) > 3
        assert "gpt_score by seeing" in agrotools("score", fresh)
        assert len(everyone.judged) == 11, "nothing is asked twice"
    roots = [7.5, 5, 5, 5, 7.5]
    assert metrics(fresh) == pytest.approx(
        dict.fromkeys(("gta2.gpt_score", "gta2.score_corrected"), sum(roots) / 50)
    )
    plain = " ".join(told.split())
    assert "GTA-2 (end-to-end), by a judge, in words of ours" in plain
    assert "6.00" in plain
    assert "60.0" in plain
    assert "gpt_score by seeing" in plain
    assert "4 of its 37 tools offered" in plain
    assert "no-tool" not in plain.lower()
    assert "End to end" not in plain
    explained = agrotools("explain", fresh, "gta2-000")
    assert "gpt_score 7.50" in explained
    assert explained.count("seeing: ") == 3, "a reply that both readings share is told once"
    agrotools("report", fresh, "--out", fresh / "page.html")
    assert "gpt_score by seeing" in (fresh / "page.html").read_text(encoding="utf-8")


def test_a_judge_that_takes_no_images_is_asked_without_them_and_that_is_kept(fresh: Path) -> None:
    everyone = Everyone()
    with serving(everyone) as endpoint:
        told = score(fresh, endpoint.base_url, "blind")
    assert "the names of images, not the images" in told
    assert len(everyone.judged) == 11
    kept = [
        json.loads(line)
        for line in (fresh / "judgements.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert len(kept) == 11
    assert sum(bool(each["unseen"]) for each in kept) > 3
    assert metrics(fresh)["gta2.gpt_score"] == pytest.approx(0.6)


def test_a_reply_that_cannot_be_read_is_nothing_as_published_and_missing_in_ours(
    fresh: Path,
) -> None:
    with serving(Everyone()) as endpoint:
        told = score(fresh, endpoint.base_url, "mute")
    # Two tasks have the leaf: (8 * 3 + 0) / 4 = 6 as published, no score in ours.
    found = metrics(fresh)
    assert found["gta2.gpt_score"] == pytest.approx((6 + 5 + 5 + 5 + 6) / 50)
    assert found["gta2.score_corrected"] == pytest.approx(0.5)
    assert "2 of 11 replies without a grade" in " ".join(told.split())


def test_baselines_run_and_the_published_protocol_takes_names_alone(tmp_path: Path) -> None:
    write_gta2(tmp_path / "gta_dataset_v2", toolmeta="names")
    agrotools(
        "eval", "gta-2", "--data-root", tmp_path, "-m", "baseline:echo", "--out", tmp_path / "echo"
    )
    step = ("gta-2", "--data-root", tmp_path, "--option", "mode=step")
    told = agrotools("eval", *step, "-m", "baseline:oracle", "--out", tmp_path / "oracle")
    assert "Step by step" in told
    refused = CliRunner().invoke(
        app,
        [
            "eval",
            "gta-2",
            "--data-root",
            str(tmp_path),
            "-m",
            "baseline:oracle",
            "--out",
            str(tmp_path / "no"),
        ],
    )
    assert "not all samples have any" in str(refused.exception)
    with serving(lambda body: completion("Final Answer: done")) as endpoint:
        words = (
            "gta-2",
            "--data-root",
            tmp_path,
            "-m",
            "m",
            "--base-url",
            endpoint.base_url,
            "--protocol",
            "lagent",
        )
        agrotools("eval", *words, "--out", tmp_path / "lagent")
