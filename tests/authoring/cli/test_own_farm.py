"""``agrotools build --images --answers`` as an agronomist runs it."""

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.cli.reading import _ask_on_terminal
from agrotools.core import BenchmarkError, UndecidedError, UsageError
from agrotools.core.files import sha256_of_file
from agrotools.core.readings import Readings
from agrotools.formats.tool_check import stored_checks
from agrotools.knowledge.kb_names import shipped_names
from agrotools.loading import load_folder
from agrotools.loading.validate import validate_folder
from agrotools.report.explain import own_name
from agrotools.scoring.steps import implied_slot, shown_results
from agrotools_build.own_photos.building import build_from_photos
from agrotools_build.own_photos.nearest import nearest_names
from agrotools_build.own_photos.plan import read_plan
from agrotools_build.own_photos.proposal import open_questions, propose_plan
from agrotools_build.own_photos.table import match_rows
from support.command import run_command
from support.report_page import read_report

pytestmark = pytest.mark.tools


def _leaf(seed: int, share: float) -> Image.Image:
    """A green leaf on white with a brown part."""
    pixels = np.full((120, 200, 3), 245, np.uint8)
    rows, columns = np.mgrid[:120, :200]
    leaf = ((columns - 100) / 80) ** 2 + ((rows - 60) / 40) ** 2 < 1
    pixels[leaf] = (60, 130 + seed, 50)
    pixels[leaf & (columns < 20 + 160 * share)] = (120, 80, 40)
    return Image.fromarray(pixels)


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    """Ten photos of leaves and a table with two columns of answers and a few mistakes."""
    (tmp_path / "photos").mkdir()
    lines = ["Photo;Severity (%);Disease"]
    for number in range(1, 11):
        _leaf(number, number / 20).save(tmp_path / "photos" / f"leaf_{number}.jpg")
        lines.append(f"leaf_{number}.jpg;{5 * number},5;{'bean rust' if number % 2 else 'healthy'}")
    (tmp_path / "photos" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no photo")
    lines += ["broken.jpg;12;bean rust", "../secret.jpg;12;bean rust", "gone.jpg;3;bean rust",
              "leaf_1.jpg;77;bean rust", "leaf_2.jpg;10,5;<i>rust</i>"]  # fmt: skip
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")
    return tmp_path


def _build(farm: Path, *more: str, table: str = "answers.csv", out: str = "made"):
    arguments = [
        "build",
        "--images",
        str(farm / "photos"),
        "--answers",
        str(farm / table),
        "--out",
        str(farm / out),
    ]
    done = CliRunner().invoke(app, [*arguments, *more])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def _ask_for(farm: Path, samples: int) -> None:
    """Set the number of samples in the plan, which a new plan does not have."""
    plan = farm / "answers.plan.toml"
    text = plan.read_text()
    assert "\nsamples = " not in text
    plan.write_text(f"samples = {samples}\n{text}")


def test_photos_whose_names_are_corrected_are_asked_about_by_the_same_plan(tmp_path: Path):
    (tmp_path / "photos").mkdir()
    for number in range(1, 7):
        _leaf(number, number / 10).save(tmp_path / "photos" / f"leaf_{number}.jpg")
    rows = [f"leaf_{n}.jpg,{10 * n} %,{'AB'[n % 2]}" for n in range(1, 7)]
    wrong = [row.replace("leaf", "laef") for row in rows[3:]]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["photo,severity,Plot No.", *rows[:3], *wrong]))
    first = _build(tmp_path, "--yes", table="t.csv")
    assert first.exit_code == 0, first.output
    assert "Plot No.: groups of photos, 2 different; scores by its values -> slice" in first.stdout
    assert len(load_folder(tmp_path / "made").samples) == 6
    table.write_text("\n".join(["photo,severity,Plot No.", *rows]))
    second = _build(tmp_path, "--yes", table="t.csv", out="other")
    assert second.exit_code == 0, second.output
    assert (
        "name: the benchmark is named made, as t.plan.toml says; --set name=other" in second.stdout
    )
    assert len(load_folder(tmp_path / "other").samples) == 12


def test_the_command_says_what_a_table_lacks_and_what_does_not_fit(farm: Path):
    (farm / "empty.csv").write_text("photo,apples,note\nleaf_1.jpg,,\nleaf_2.jpg,,\n")
    with pytest.raises(
        BenchmarkError, match="'apples' is empty in all rows with a photo, column 'note' is empty"
    ):
        _build(farm, table="empty.csv")
    assert not (farm / "empty.plan.toml").exists()
    (farm / "empty.plan.toml").write_text("images_column = 'photo'\n[[columns]]\ncolumn = 'apples'\nask = 'count'\n"
                                          "target = 'apple'\n")  # fmt: skip
    with pytest.raises(BenchmarkError, match="apples: 1 column is empty in all rows with a photo"):
        _build(farm, table="empty.csv")
    (farm / "names.csv").write_text("photo,observer\nleaf_1.jpg,Ann\nleaf_2.jpg,Bob\n")
    with pytest.raises(UndecidedError, match="What does column 'observer' hold"):
        _build(farm, table="names.csv")
    with pytest.raises(UndecidedError, match="only you know what to write for ASK"):
        _build(farm, "--yes", table="names.csv")
    assert not (farm / "names.plan.toml").exists(), "a plan that asks nothing helps nobody"
    (farm / "height.csv").write_text("photo,plant height\nleaf_1.jpg,12\nleaf_2.jpg,13\n")
    (farm / "height.plan.toml").write_text(
        "images_column = 'photo'\n[[columns]]\ncolumn = 'plant height'\nask = 'cuont'\n"
    )
    with pytest.raises(
        BenchmarkError,
        match=r"columns\.0\.ask: 'cuont' is not one of slice, rating, nothing, count",
    ):
        _build(farm, table="height.csv")
    with pytest.raises(UsageError, match="not said what to build from") as refused:
        CliRunner().invoke(app, ["build", "--images", "x", "--out", "y"], catch_exceptions=False)
    assert "a table image,label" in str(refused.value.hint)
    for option, given in {
        "--language": "--source clcd=x --language zh", "--allow-missing": "--scenes 1 --allow-missing",
        "--queries": "--images x --choose 3 --queries 9",
    }.items():  # fmt: skip
        with pytest.raises(UsageError, match=f"{option} does not apply"):
            CliRunner().invoke(app, ["build", *given.split(), "--out", "y"], catch_exceptions=False)
    with pytest.raises(BenchmarkError, match="there is no table"):
        _build(farm, table="none.csv")
    with pytest.raises(BenchmarkError, match="cannot be written"):
        CliRunner().invoke(
            app,
            [
                "build",
                "--images",
                str(farm / "photos"),
                "--answers",
                str(farm / "answers.csv"),
                "--out",
                "/proc/made",
            ],
            catch_exceptions=False,
        )
    assert not (farm / "answers.plan.toml").exists()
    (farm / "other").mkdir()
    (farm / "other" / "thesis.txt").write_text("all my work")
    with pytest.raises(BenchmarkError, match="not a benchmark"):
        _build(farm, "--yes", out="other")
    (farm / "answers.plan.toml").write_text(
        "images_column = 'Photo'\n[[columns]]\ncolumn = 'Yield'\nask = 'count'\n"
    )
    with pytest.raises(BenchmarkError, match="answers\\.csv has no column 'Yield'"):
        _build(farm)


def test_photos_and_a_table_become_a_sound_benchmark(farm: Path):
    done = _build(farm, "--yes")
    assert done.exit_code == 0, done.output
    assert validate_folder(farm / "made") == []
    samples = load_folder(farm / "made").samples
    assert len(samples) == 22
    assert {sample.task_type for sample in samples} == {"lesion_severity", "crop_disease"}
    assert {len(sample.files) for sample in samples} == {1}
    truths = {
        step.truth["severity_pct"]
        for sample in samples
        for step in sample.reference.steps
        if step.tool == "analyze_lesions"
    }
    assert truths
    assert truths <= {5 * number + 0.5 for number in range(2, 11)}
    assert done.stderr.count("pictures opened: 11/11") == 1
    assert "could not be asked" not in done.stdout
    for part in ("row 14", "row 15", "row 16", "HTML", "is outside the picture folder", "not in the folder",
                 "different answers", "cannot be used", "agrotools review"):  # fmt: skip
        assert part in done.stdout, part
    assert all("secret" not in file.path for sample in samples for file in sample.files)
    names = {own_name(file, sample) for sample in samples for file in sample.files}
    assert names <= {each.name for each in farm.rglob("*") if each.is_file()} - {"image_1.jpg", ""}


def test_the_plan_that_is_printed_says_what_is_taken_and_what_is_right(farm: Path):
    rows = "".join(f"leaf_{n}.jpg,{n},{n},{n / 2}\n" for n in range(1, 11))
    (farm / "t.csv").write_text(f"photo,Spots,Number of trees,Severity (%)\n{rows}")
    done = _build(farm, "--set=Severity (%).abs_tol=0.5", table="t.csv")
    assert done.exit_code == 0, done.output
    assert 'column "Spots" is read as the number of spots in the photo, and may mean' in done.stdout
    assert "--set 'Spots.ask=WHAT' (nothing, leaves, severity," in done.stdout
    assert 'column "Number of trees" is read as' not in done.stdout
    plan = done.stdout.partition("asking: Spots")[2].splitlines()
    assert plan[1] == (
        "  right: within 1, or within 10 % of the true value, whichever is more (the table has 1 to 10)"
    )
    assert "  right: within 0.5 percentage points (the table has 0.5 to 5 %)" in plan
    assert "--set 'Spots.abs_tol=NUMBER'" in done.stdout
    said = _build(farm, "--set=Spots.ask=count", table="t.csv", out="again")
    assert 'column "Spots" is read as' not in said.stdout, "its owner has said it"
    (farm / "t.plan.toml").unlink()
    other = _build(farm, "--set=Spots.ask=rating", table="t.csv", out="other")
    assert "  Spots: numbers: 10 without a unit -> rating" in other.stdout


def test_a_photo_that_no_question_can_have_has_a_reason_that_would_help(farm: Path):
    """More questions do not help where all answers are one, or where a yes stands alone in its group."""
    for number in range(1, 11):
        _leaf(number, number / 20).save(farm / "photos" / f"leaf_{number}.jpg")
    rows = "".join(
        f"leaf_{n}.jpg,plot {n},{n % 2},{'yes' if n % 2 else 'no'},bean rust,{n}\n"
        for n in range(1, 11)
    )
    (farm / "t.csv").write_text(f"photo,block,device,diseased,Disease,Number of apples\n{rows}")
    done = _build(farm, "--set=block.ask=slice", table="t.csv")
    assert done.exit_code == 0, done.output
    assert "no other photo has the same block and device: --set 'block.ask=nothing'" in done.stdout
    assert "all its photos have the same answer: add photos with other answers" in done.stdout


def test_the_plan_decides_on_the_second_run(farm: Path):
    done = _build(farm, "--set", "Severity (%).repeated=refuse")
    assert done.exit_code == 0, "nothing else in the table is unclear"
    plan = farm / "answers.plan.toml"
    text = plan.read_text().replace('ask = "disease"', 'ask = "nothing"')
    plan.write_text(text.replace('languages = [\n    "en",\n]', 'languages = ["zh"]'))
    _ask_for(farm, 12)
    done = _build(farm)
    assert done.exit_code == 0, done.output
    samples = load_folder(farm / "made").samples
    assert len(samples) <= 12
    assert {sample.task_type for sample in samples} <= {"lesion_severity", "plotting"}
    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in sample.query) for sample in samples)


def test_only_what_is_unclear_is_asked_on_a_terminal(farm: Path, monkeypatch: pytest.MonkeyPatch):
    rows = "".join(f"leaf_{number}.jpg,{10 + number},{number}\n" for number in range(1, 5))
    (farm / "t.csv").write_text(f"photo,height,apples\n{rows}")
    monkeypatch.setattr(
        "agrotools_build.cli.own_farm.new_readings", lambda *, yes: Readings(_ask_on_terminal)
    )
    arguments = ["build", "--images", str(farm / "photos"), "--answers", str(farm / "t.csv"), "--out",
                 str(farm / "o"), "--set", "height.px_per_cm=12.5"]  # fmt: skip
    done = CliRunner().invoke(app, arguments, input="cm\ncounted\n")
    assert done.exit_code == 0, done.output
    height, apples = read_plan(farm / "t.plan.toml").columns
    assert (height.ask, height.unit, height.px_per_cm) == ("plant_height", "cm", 12.5)
    assert (apples.ask, apples.rows_behind) == ("count", "counted")
    sample = next(
        sample
        for sample in load_folder(farm / "o").samples
        if sample.metadata["column"] == "height"
    )
    assert sample.files[0].note == "12.5 pixels are one centimetre in the plane of the plants."
    assert sample.reference.steps[0].arguments["scale_cm_px"] == 0.08


def test_chosen_photos_that_were_labelled_have_scores_by_slice(
    farm: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(farm)
    for number in range(1, 11):
        photo = farm / "photos" / f"leaf_{number}.jpg"
        (photo.parent / f"plot_{number % 2}").mkdir(exist_ok=True)
        photo.rename(photo.parent / f"plot_{number % 2}" / photo.name)
    runner = CliRunner()
    chosen = runner.invoke(
        app, ["build", "--images", "photos", "--choose", "8", "--out", "labels.csv"]
    )
    assert "8 of 10 photos (8 wanted, 1 cannot be read: broken.jpg)" in chosen.stdout
    assert "block: 2 of 2 groups: plot_0 4 of 5, plot_1 4 of 5" in chosen.stdout
    header, *rows = (farm / "labels.csv").read_text("utf-8-sig").splitlines()
    filled = [f"{row}{10 * (at + 1)}" for at, row in enumerate(rows)]
    (farm / "labels.csv").write_text(
        "\n".join([header.replace("answer", "severity %"), *filled]), "utf-8-sig"
    )
    done = _build(farm, "--yes", table="labels.csv")
    assert "block: groups of photos, 2 different; scores by its values -> slice" in done.stdout
    block_of = dict(row.split(",")[:2] for row in rows)
    blocks = {sha256_of_file(farm / "photos" / photo): block for photo, block in block_of.items()}
    samples = load_folder(farm / "made").samples
    assert {sample.groups["block"] for sample in samples} == {"plot_0", "plot_1"}
    assert all(
        {blocks[str(file.sha256)] for file in each.files} == {each.groups["block"]}
        for each in samples
    )
    shown = runner.invoke(
        app,
        [
            "eval",
            "made",
            "--model",
            "baseline:guess",
            "--mode",
            "end-to-end",
            "--details",
            "--out",
            "run",
        ],
    )
    assert "By block" in shown.stdout
    scores = json.loads((farm / "run" / "scores.json").read_text())["summary"]["modes"][
        "end-to-end"
    ]["metrics"]["fas"]
    counts = Counter(sample.groups["block"] for sample in samples)
    assert {
        block: estimate["n"] for block, estimate in scores["by_group"]["block"].items()
    } == counts


def test_a_column_with_an_open_question_is_left_out_only_if_that_is_said(farm: Path):
    rows = "".join(f"leaf_{n}.jpg;{n}.000;{n};{n}\n" for n in range(1, 11))
    (farm / "t.csv").write_text("photo;trees;apples;pears\n" + rows)
    with pytest.raises(UndecidedError) as asked:
        _build(farm, table="t.csv")
    assert asked.value.answers == ("--set=trees.decimal=DECIMAL",)
    assert "Is 1.000 in 'trees' 1 (decimal mark" in asked.value.message
    assert not (farm / "t.plan.toml").exists(), "nothing is written before all is decided"
    assert not (farm / "made").exists()
    with pytest.raises(UndecidedError):
        _build(farm, "--yes", table="t.csv")
    done = _build(farm, "--set=trees.decimal=nothing", table="t.csv")
    assert done.exit_code == 0, done.output
    assert _columns_asked(farm) == {"apples", "pears"}
    assert "column trees" in done.stderr.partition("not read: ")[2]
    plan = farm / "t.plan.toml"
    plan.write_text(plan.read_text().partition('[[columns]]\ncolumn = "pears"')[0])
    done = _build(farm, table="t.csv")
    assert (done.exit_code, _columns_asked(farm)) == (0, {"apples"})
    assert "column pears" in done.stderr


def _columns_asked(farm: Path) -> set[str]:
    return {str(sample.metadata["column"]) for sample in load_folder(farm / "made").samples}


def test_a_plan_is_not_replaced_by_that_of_another_reading(farm: Path):
    rows = "leaf_1.jpg,leaf_2.jpg,1\nleaf_2.jpg,leaf_1.jpg,2\n"
    (farm / "t.csv").write_text(f"photo,other,apples\n{rows}")
    plan = farm / "t.plan.toml"
    plan.write_text('images_column = "photo"\n[[columns]]\ncolumn = "apples"\nask = "nothing"\n')
    before = plan.read_text()
    with pytest.raises(UsageError, match="is the plan for images_column photo") as refused:
        _build(farm, "--set=images_column=other", table="t.csv")
    assert "--plan" in str(refused.value.hint)
    assert plan.read_text() == before
    assert not (farm / "made").exists()


def test_a_failed_build_leaves_no_plan_and_another_benchmark_keeps_its_own(farm: Path):
    rows = "".join(f"leaf_{n}.jpg,{n}\n" for n in range(1, 10))
    (farm / "t.csv").write_text("photo,apples\n" + rows)
    plan = farm / "t.plan.toml"
    with pytest.raises(BenchmarkError):
        _build(farm, "--set=apples.ask=severity", "--set=apples.unit=kg", table="t.csv")
    assert not plan.exists()
    _build(farm, table="t.csv")
    before = plan.read_text()
    other = farm / "other"
    done = _build(farm, "--set=apples.abs_tol=3", table="t.csv", out="other")
    assert (done.exit_code, other.is_dir()) == (0, True)
    assert plan.read_text() == before
    assert "is the plan of made and was not changed" in " ".join(done.stdout.split())
    _build(farm, "--set=apples.abs_tol=3", table="t.csv")
    assert read_plan(plan).columns[0].abs_tol == 3


def test_one_command_answers_all_questions_and_the_plan_keeps_the_answers(farm: Path):
    rows = "".join(f"leaf_{n}.jpg;{n};{n};{n + 10}\n" for n in range(1, 10))
    (farm / "t.csv").write_text("photo;Severity (0-9);apples;plant height\n" + rows)
    with pytest.raises(UndecidedError) as asked:
        _build(farm, table="t.csv")
    assert asked.value.answers == ("--set=Severity (0-9).ask=rating",)
    done = _build(farm, *asked.value.answers, table="t.csv")
    assert (done.exit_code, _columns_asked(farm)) == (0, {"apples"})
    assert [column.ask for column in read_plan(farm / "t.plan.toml").columns] == [
        "rating", "count", "nothing"
    ]  # fmt: skip
    answers = ("--set=plant height.ask=plant_height", "--set", "plant height.unit=cm",
               "--set=plant height.px_per_cm=10", "--set", "samples=8", "--set=languages=en,zh")  # fmt: skip
    done = _build(farm, *answers, table="t.csv")
    assert done.exit_code == 0, done.output
    plan = read_plan(farm / "t.plan.toml")
    assert (plan.samples, plan.languages) == (8, ("en", "zh"))
    height = plan.column("plant height")
    assert height is not None
    assert (height.ask, height.unit, height.px_per_cm) == ("plant_height", "cm", 10)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("apples", "has no value"),
        ("colour=red", "'colour' is no key of the plan"),
        ("apples.colour=red", "a column has no key 'colour'"),
        ("apples.ask=cuont", "'cuont' is not one of"),
        ("samples=many", "samples=many"),
    ],
)
def test_answers_that_cannot_be_are_refused(farm: Path, word: str, says: str):
    (farm / "t.csv").write_text("photo,apples\nleaf_1.jpg,3\nleaf_2.jpg,4\n")
    with pytest.raises(UsageError, match=re.escape(says)) as refused:
        _build(farm, "--set", word, table="t.csv")
    assert refused.value.hint
    assert not (farm / "t.plan.toml").exists()


@pytest.mark.slow
def test_a_build_that_is_killed_goes_on_with_the_same_command(
    farm: Path, monkeypatch: pytest.MonkeyPatch
):
    _build(farm, "--yes")
    _ask_for(farm, 12)
    shutil.rmtree(farm / "made")
    command = [sys.executable, "-m", "agrotools", "build", "--images",
               str(farm / "photos"), "--answers", str(farm / "answers.csv"), "--out", str(farm / "made")]  # fmt: skip
    monkeypatch.setenv("AGROTOOLS_CACHE", str(farm / "cache"))
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert killed.stderr is not None
    for line in killed.stderr:
        if line.startswith("reference calls: ") and not line.startswith("reference calls: 1/"):
            killed.send_signal(signal.SIGKILL)
            break
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert not (farm / "made").exists()
    assert list(farm.glob(".made-*"))
    done = _build(farm)
    assert done.exit_code == 0, done.output
    assert validate_folder(farm / "made") == []
    lines = (farm / "made" / "quality.jsonl").read_text().splitlines()
    assert all({"id", "check", "severity", "message"} == set(json.loads(line)) for line in lines)


def test_rasters_of_heights_are_asked_about_too(tmp_path: Path):
    import rasterio
    from rasterio.transform import from_origin

    (tmp_path / "photos").mkdir()
    lines = ["tile;mean height (m)"]
    for number in range(1, 9):
        heights = np.random.default_rng(number).uniform(0, 4 * number, (40, 50)).astype(np.float32)
        profile = {"driver": "GTiff", "count": 1, "height": 40, "width": 50, "dtype": "float32", "crs": "EPSG:32632",
                   "transform": from_origin(5e5, 58e5, 0.5, 0.5)}  # fmt: skip
        with rasterio.open(tmp_path / "photos" / f"t{number}.tif", "w", **profile) as raster:
            raster.write(heights, 1)
        lines.append(f"t{number};{heights.mean():.3f}")
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    _build(tmp_path)
    _ask_for(tmp_path, 12)
    done = _build(tmp_path)
    assert done.exit_code == 0, done.output
    assert validate_folder(tmp_path / "made") == []
    values = [
        (step.truth["mean_m"], step.observation.result["mean_m"])
        for sample in load_folder(tmp_path / "made").samples
        for step in sample.reference.steps
        if step.tool == "estimate_canopy_height"
    ]
    assert values
    assert all(true == pytest.approx(seen, abs=0.001) for true, seen in values)


_ALL = """images_column = "photo"
languages = ["en"]
samples = 77
note = "From my farm"
[[columns]]
column = "trees"
ask = "count"
target = "tree"
objects = "trees"
objects_zh = "树"
gsd_m = 0.1
[[columns]]
column = "leaves"
ask = "leaves"
[[columns]]
column = "cover"
ask = "cover"
unit = "fraction"
[[columns]]
column = "weeds"
ask = "weed_cover"
unit = "%"
[[columns]]
column = "size"
ask = "diameter"
unit = "cm"
distance_mm = 800
fx_px = 1200
target = "apple"
objects = "apples"
[[columns]]
column = "height"
ask = "plant_height"
unit = "mm"
marker_cm = 2.4
[[columns]]
column = "pest"
ask = "pest"
[[columns]]
column = "weed"
ask = "weed"
[[columns]]
column = "ill"
ask = "diseased"
yes_means = "the leaf is diseased"
[[columns]]
column = "a weed"
ask = "is_weed"
yes_means = "the plant is a weed"
"""


@pytest.mark.slow
def test_everything_that_can_be_asked_gives_sound_samples(farm: Path):
    weeds, pests = ("Lantana", "Parthenium", "rubber vine"), ("soybean aphid", "fall armyworm")
    lines = ["photo,trees,leaves,cover,weeds,size,height,pest,weed,ill,a weed"]
    for n in range(1, 7):
        ill, weed = ("yes", "no")[n % 2], ("no", "yes")[n % 3 == 0]
        lines.append(
            f"leaf_{n}.jpg,{3 * n},{n + 2},0.{n:02d},{6 * n},{5 + n / 4:.2f},{90 * n},"
            f"{pests[n % 2]},{weeds[n % 3]},{ill},{weed}"
        )
    (farm / "all.csv").write_text("\n".join(lines) + "\n")
    (farm / "all.plan.toml").write_text(_ALL)
    done = _build(farm, table="all.csv")
    assert done.exit_code == 0, done.output
    assert validate_folder(farm / "made") == []
    samples = load_folder(farm / "made").samples
    assert {str(sample.metadata["column"]) for sample in samples} == {*lines[0].split(",")[1:]}
    assert {sample.answer_type for sample in samples} == {"tolerance", "exact", "plot"}
    assert len({sample.query for sample in samples}) == len(samples)
    density = next(sample for sample in samples if sample.template.startswith("own_density"))
    assert density.answer[0].unit == "1/ha"
    size = next(sample for sample in samples if sample.metadata["column"] == "size")
    assert "800 mm from the camera" in str(size.files[0].note)
    heights = [sample for sample in samples if sample.metadata["column"] == "height"]
    seen = [sample.reference.steps[0].observation.error for sample in heights]
    assert {error.argument for error in seen if error} == {"scale_marker"}, (
        "no photo has a disc; they stay in"
    )
    found = [
        json.loads(line) for line in (farm / "made" / "quality.jsonl").read_text().splitlines()
    ]
    assert not [
        each for each in found if each["severity"] == "error" or each["check"] == "order_not_unique"
    ]
    kept = sorted((farm / "made" / "artifacts").iterdir())
    assert kept
    assert all(path.stem == sha256_of_file(path) for path in kept)
    files = {file.sha256 for sample in samples for file in sample.files}
    assert not files & {path.stem for path in kept}, (
        "what tools made of a photo is shown to nobody who is tested"
    )
    before = load_folder(farm / "made").content_hash
    shutil.rmtree(farm / "made" / "artifacts")
    assert load_folder(farm / "made").content_hash == before


@pytest.mark.parametrize(
    ("data", "header", "renamed", "most_lost"),
    [
        (
            "coffee_leaf_class",
            "Disease",
            {"brown_spot_phoma": "brown spot", "leaf_miner": "leaf miner"},
            10.0,
        ),
        ("bean_leaf_class", "Disease", {}, 20.0),
        ("deepweeds", "Weed", {}, 60.0),
        ("apple_leaf_class", "Disease", {}, 100.0),
        ("jute_pests", "Pest", {}, 100.0),
    ],
)
def test_class_folders_lose_what_the_tool_names_wrongly_alone(
    field_data: Path,
    tmp_path: Path,
    data: str,
    header: str,
    renamed: dict[str, str],
    most_lost: float,
):
    """Two photos of each class, no crop given. Of apples and jute the shipped net knows nothing."""
    seen: Counter[str] = Counter()
    lines = [f"Photo,{header}"]
    for item in json.loads((field_data / data / "truth.json").read_text()):
        label = renamed.get(item["label"], item["label"])
        seen[label] += 1
        if seen[label] <= 2:
            path = tmp_path / "photos" / label / Path(item["image"]).name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(field_data / data / item["image"], path)
            lines.append(f"{label}/{path.name},{label}")
    (tmp_path / "sheet.csv").write_text("\n".join(lines) + "\n")
    done = _build(tmp_path, "--yes", table="sheet.csv")
    assert done.exit_code == 0, done.output
    samples = load_folder(tmp_path / "made").samples
    lost = n = 0
    for sample in samples:
        shown = shown_results(sample.reference)
        right = all(
            result
            and result["best"]
            and shipped_names().mean_same(str(result["best"]), str(step.truth["best"]))
            for result, step in zip(shown, sample.reference.steps, strict=True)
        )
        implied = [implied_slot(slot, shown) for slot in sample.answer]
        wrong = [each for each in implied if each.slot is None or each.differs]
        assert not (right and wrong), sample.id
        lost, n = lost + len(wrong), n + len(implied)
    assert 100 * lost / n <= most_lost


def _strangers(folder: Path, number: int) -> Path:
    """Write pictures of one colour each: a tool names a disease in none of them."""
    folder.mkdir()
    for at in range(number):
        Image.new("RGB", (90, 60), (200, 40 + at, 160)).save(folder / f"car_{at}.png")
    return folder


def test_strangers_get_questions_of_the_photos_that_have_no_answer(farm: Path):
    strangers = _strangers(farm / "cars", 3)
    shutil.copyfile(farm / "photos" / "leaf_3.jpg", strangers / "leaf.jpg")
    (strangers / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no photo")
    done = _build(farm, "--yes", "--strangers", str(strangers))
    assert done.exit_code == 0, done.output
    assert validate_folder(farm / "made") == []
    assert "stranger: 1 x 'leaf.jpg' is one of the photos" in done.output
    assert "stranger: 1 x 'broken.jpg' cannot be used" in done.output
    samples = {sample.id: sample for sample in load_folder(farm / "made").samples}
    asked = [sample for sample in samples.values() if not sample.answerable]
    names = {own_name(file, sample) for sample in asked for file in sample.files}
    assert names == {"car_0.png", "car_1.png", "car_2.png"}
    for sample in asked:
        own = samples[sample.twin]
        assert own.query == sample.query
        assert own.metadata["column"] == "Disease"
        assert sample.groups["strangers"] == "cars"
        assert sample.answer[0].reason == "wrong_subject"
        assert [step.truth["abstained"] for step in sample.reference.steps] == [True]


def test_a_stranger_that_the_tool_names_stays_and_is_an_error_of_the_tool(
    field_data: Path, tmp_path: Path
):
    """Mirrored leaves of the same diseases, told to be something else: the tool names most of them."""
    mirrored = tmp_path / "mirrored"
    mirrored.mkdir()
    (tmp_path / "photos").mkdir()
    lines = ["photo,disease"]
    for at, item in enumerate(
        json.loads((field_data / "coffee_leaf_class/truth.json").read_text())
    ):
        with Image.open(field_data / "coffee_leaf_class" / item["image"]) as leaf:
            leaf.save(tmp_path / "photos" / f"p{at}.jpg")
            if at % 2:
                ImageOps.mirror(leaf).save(mirrored / f"m{at}.jpg")
        lines.append(f"p{at}.jpg,{item['label']}")
    (tmp_path / "sheet.csv").write_text("\n".join(lines) + "\n")
    _build(tmp_path, "--yes", "--strangers", str(mirrored), table="sheet.csv")
    assert validate_folder(tmp_path / "made") == []
    samples = load_folder(tmp_path / "made").samples
    assert len({sample.cluster for sample in samples}) == 25
    asked = [sample for sample in samples if not sample.answerable]
    assert len(asked) == len([*mirrored.iterdir()]), "whatever the tool says"
    named = [each for each in asked if (shown_results(each.reference)[0] or {}).get("best")]
    assert named
    run = tmp_path / "run"
    made = str(tmp_path / "made")
    arguments = ["eval", made, "--model", "baseline:oracle", "--mode", "end-to-end", "--out"]
    shown = CliRunner().invoke(app, [*arguments, str(run)], catch_exceptions=False)
    said = " ".join(shown.output.split())  # lines are broken where the terminal ends
    assert re.search(r"Named something on \d+ of 12 strangers \(mirrored; \d+ to \d+ %\)", said)
    summary = json.loads((run / "scores.json").read_text())["summary"]
    metric = summary["modes"]["end-to-end"]["metrics"]["false_confidence"]
    assert 0 < metric["by_group"]["strangers"]["mirrored"]["value"] <= len(named) / len(asked)
    CliRunner().invoke(app, ["attribute", str(run)], catch_exceptions=False)
    summary = json.loads((run / "scores.json").read_text())["summary"]
    parts = summary["modes"]["end-to-end"]["lost"]["run"]["parts"]
    assert {*parts} == {"tool:diagnose_pest_disease"}


def test_strangers_need_names_and_pictures(farm: Path):
    rows = "".join(f"leaf_{number}.jpg,{number}\n" for number in range(1, 7))
    (farm / "t.csv").write_text(f"photo,apples\n{rows}")
    with pytest.raises(BenchmarkError, match="no column holds names"):
        _build(farm, "--strangers", str(_strangers(farm / "cars", 1)), table="t.csv")
    assert not (farm / "made").exists()
    with pytest.raises(BenchmarkError, match="is not a folder") as refused:
        _build(farm, "--strangers", str(farm / "none"), table="t.csv")
    assert "--strangers" in str(refused.value.hint)


def test_the_build_says_on_how_many_photos_the_tool_agrees(farm: Path):
    done = _build(farm, "--yes")
    header = load_folder(farm / "made").header
    severity, disease = stored_checks(header.metadata)
    assert severity.sentence() in done.output
    assert disease.sentence() in done.output
    assert (disease.kind, severity.kind) == ("name", "number")
    counted = [each.right + each.otherwise + each.not_named for each in disease.labels]
    assert sum(counted) == disease.n
    assert sum(each.right for each in disease.labels) == disease.agreed
    assert sum(each.not_named for each in disease.labels) == len(disease.silent)
    assert {each.label for each in disease.labels} == {"bean rust", "healthy"}
    assert severity.mean_difference is not None
    assert disease.lower <= disease.agreed / disease.n <= disease.upper
    with (farm / "made" / "agreement.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert Counter(row["column"] for row in rows) == {
        severity.column: severity.n,
        disease.column: disease.n,
    }
    for check in (severity, disease):
        found = [row["agreement"] for row in rows if row["column"] == check.column]
        assert found.count("agrees") == check.agreed
        assert found.count("no answer") == len(check.silent)
    reasons = {row["reason"] for row in rows if row["agreement"] == "no answer"}
    assert reasons
    assert not any("image_1" in reason for reason in reasons)


def test_a_run_says_on_its_page_and_in_json_what_the_build_found(farm: Path):
    _build(farm, "--yes", "--strangers", str(_strangers(farm / "cars", 3)))
    made, run = farm / "made", farm / "run"
    found = [
        check.model_dump(mode="json") for check in stored_checks(load_folder(made).header.metadata)
    ]
    evaluated = run_command("eval", made, "--model", "baseline:guess", "--out", run, "--json")
    assert evaluated.returncode == 0, evaluated.stderr
    assert json.loads(evaluated.stdout)[0]["tool_checks"] == found
    scored = run_command(
        "score", run, "--json"
    )  # as the folder of the benchmark may be gone by then
    assert json.loads(scored.stdout)[0]["tool_checks"] == found
    head = read_report(run / "report.html").head
    disease = next(each for each in found if each["kind"] == "name")
    sentences = [check.sentence() for check in stored_checks(load_folder(made).header.metadata)]
    assert [each["text"] for each in head["checks"]] == sentences
    rows = [
        [each[name] for name in ("label", "right", "otherwise", "not_named")]
        for each in disease["labels"]
    ]
    assert rows in [each["labels"] for each in head["checks"]]
    assert any("strangers (cars" in line for line in head["strangers"])


def test_questions_compare_photos_only_if_the_plan_says_so(farm: Path):
    # Its leaves are drawn alike, but are not of one photo.
    _build(farm, "--yes", "--set", "copies=apart")
    alone = load_folder(farm / "made").samples
    assert {len(sample.files) for sample in alone} == {1}
    _build(farm, "--yes", "--set", "copies=apart", "--set", "pairs=true", out="paired")
    paired = load_folder(farm / "paired").samples
    assert 2 in {len(sample.files) for sample in paired}
    assert len({each.cluster for each in paired}) < len({each.cluster for each in alone})


def _labelled_photos(folder: Path, names: Sequence[str], header: str = "bean disease") -> None:
    """Write a photo and a row of ``sheet.csv`` for each name."""
    (folder / "photos").mkdir()
    lines = [f"photo,{header}"]
    for number, name in enumerate(names):
        Image.new("RGB", (60, 40), (40, 90 + number, 30)).save(folder / "photos" / f"p{number}.jpg")
        lines.append(f"p{number}.jpg,{name}")
    (folder / "sheet.csv").write_text("\n".join(lines) + "\n")


def test_names_that_no_result_can_match_are_asked_about(tmp_path: Path):
    """The tool is not blamed for a table in which nothing has a name that it could return."""
    _labelled_photos(tmp_path, ("ALS type A", "BR", "healthy"), "disease")
    left_out = [f"--set=disease.names.{name}=nothing" for name in ("ALS type A", "BR")]
    with pytest.raises(BenchmarkError, match=r"'ALS type A'.*'BR'"):
        _build(tmp_path, *left_out, table="sheet.csv")


@pytest.mark.parametrize(
    ("names", "unknown"),
    [
        (["ALS", "rust", "ok"], ["ALS", "ok"]),
        (["angular leaf spot", "bean rost", "healthy"], ["bean rost"]),
        (["angular leaf spot", "Bean Rust", "bean_rust", " rust ", "beanrust"], ["beanrust"]),
        (["angular leaf spot", "rust", "not rust"], ["not rust"]),
        (["angular leaf spot", "Uromyces phaseoli", "healthy"], []),
    ],
)
def test_some_unknown_names_are_asked_about_and_left_out_where_that_is_said(
    tmp_path: Path, names: list[str], unknown: list[str]
):
    """As for a table without any known name: a script stops, and no question offers a name that nothing can match."""
    _labelled_photos(tmp_path, [*names, "angular leaf spot", "bean rust"] * 2)
    options = [f"--set=bean disease.names.{name}=nothing" for name in unknown]
    if unknown:
        with pytest.raises(UndecidedError) as asked:
            _build(tmp_path, table="sheet.csv")
        # The printed answer may be a near name.
        asked_about = [answer.rpartition("=")[0] for answer in asked.value.answers]
        assert asked_about == [option.rpartition("=")[0] for option in options]
        assert not (tmp_path / "made").exists()
    done = _build(tmp_path, *options, table="sheet.csv")
    assert all(f"2 x {name!r} of column bean disease" in done.stderr for name in unknown)
    (tmp_path / "sheet.plan.toml").unlink()
    seen = match_rows(tmp_path / "photos", tmp_path / "sheet.csv")
    plan = propose_plan(seen, "made").plan
    needs = open_questions(plan, seen)
    assert [(need.key, need.part) for need in needs] == [("names", name) for name in unknown]
    built = build_from_photos(seen, plan, tmp_path / "made")
    left_out = [line for line in built.skipped.lines() if "not in the knowledge base" in line]
    assert sorted(left_out) == [
        line for name in sorted(unknown) for line in left_out if f": 2 x {name!r} (row" in line
    ]
    asked = " ".join(sample.query for sample in load_folder(tmp_path / "made").samples)
    assert not [name for name in unknown if name in asked.replace("not rust ", "")]


def test_answers_say_what_unknown_names_mean(tmp_path: Path):
    _labelled_photos(tmp_path, ["ALS", "BR", "ok", "blurred"] * 3)
    meant = {"ALS": "angular leaf spot", "BR": "rust", "ok": "healthy", "blurred": "nothing"}
    options = [f"--set=bean disease.names.{name}={known}" for name, known in meant.items()]
    done = _build(tmp_path, *options, table="sheet.csv")
    assert done.exit_code == 0, done.output
    assert read_plan(tmp_path / "sheet.plan.toml").columns[0].names == meant
    samples = load_folder(tmp_path / "made").samples
    truths = {str(step.truth["best"]) for sample in samples for step in sample.reference.steps}
    assert truths == {"disease.bean_angular_leaf_spot", "disease.bean_rust", "bean_healthy"}


@pytest.mark.parametrize(
    ("name", "ask", "crop", "nearest"),
    [
        ("ALS", "disease", "bean", "angular leaf spot of bean"),
        ("bean rost", "disease", None, "bean rust"),  # its own crop
        ("late blihgt", "disease", "tomato", "late blight of potato and tomato"),
        ("helthy", "disease", None, "healthy"),
        ("lantanna", "weed", None, "lantana"),
    ],
)
def test_the_nearest_known_name_is_offered(name, ask, crop, nearest):
    assert nearest_names(name, ask, crop)[0] == nearest
