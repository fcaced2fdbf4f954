"""Every command in the documentation is known with all its options, and runs unless ``NOT_RUN`` says why not."""

import json
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
import pytest
from PIL import Image
from rasterio.transform import from_origin
from typer.main import get_command

from agrotools.cli.main import app
from support.command import run_command
from support.made_predictions import made_files
from support.picture_files import field, planted_rows, write_raster

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN = {
    r"doctor --env": "draws two groups of questions, for minutes: tests/authoring/test_certificate.py",
    r"eval my_orchard$": "tests/engine/plugins/test_new_benchmark.py runs what agrotools init writes",
    r"(-m|--model|--judge|--vlm-model) (M|MODEL|NAME|\S+:(gpt|gemini|[qQ]wen)\S*|qwen\S+|my-model)\b": "asks a model",
    r"eval$": "runs the whole benchmark",
    r"--serve |local:": "needs the server of a model: tests/engine/runner/test_local_server.py",
    r"check agrotools DIR|--benchmark agrotools --data DIR": "needs data sets: tests/benchmarks/released",
    r"(=|train crop-weed --data |--all-sources )DIR|answers\.csv|map\.toml|--labels|pack:mine": "needs data sets",
    r"scouting\.xlsx": "needs photos with labels: tests/authoring/own_photos/test_own_table.py",
    r"baseline:planted": "120 samples of the tutorial: tests/pictures.py runs them for its pictures",
    r"eval my-farm ": "needs photos with labels: tests/authoring/own_photos/test_own_table.py",
    r"tools zones ": "needs rasters of a trial: tests/tools/zones/test_zones.py",
    r"held\.csv|pack:pests|train pests|--kind pest": "needs data sets: tests/tools/cli/test_packs.py",
    r"--other neighbours": "needs data sets: tests/tools/recognition/test_strangers.py",
    r"--backbone": "needs an encoder: tests/tools/recognition/test_backbone.py",
    r"--config ray.toml": "needs Ray: tests/engine/calling/test_ray.py",
    r"--config judges.toml": "asks a model",
    r"python:(my_agent|examples)|mcp:": "needs an agent: tests/engine/agents, tests/docs/test_examples.py",
    r"zhwiki": "needs a download of Wikipedia",
    r"--shard \d|agrotools merge part": "draws the quick part: tests/engine/runner/test_merge.py",
    r"study examples/first_table": "asks three vendors: tests/examples/test_first_table.py",
    r"export runs/train ": "needs a run of a model: tests/authoring/export/test_messages.py",
    r"study examples/thirteen_models": "runs thirteen models: tests/engine/analysis/test_study_files.py",
    r"build --scenes|cmmlu": "takes many minutes",
    r"benchmarks get|eval field": "downloads",
    r"review photos-drafts|describe photos-drafts": "needs drafts of a model: tests/authoring/drafting",
    r"review my-benchmark( --apply.*| --by Ada)?$": "waits in the browser, or for decisions made there",
    r"review field ": "waits in the browser, and needs the photographs of field",
    r"agrotools view": "serves until it is stopped: tests/engine/cli/test_view_command.py",
    r"agrotools serve": "serves until it is stopped: tests/tools/serve",
    r"--predictions (DIR/)?X\.(json|eval)": "needs a log of Inspect: tests/engine/foreign/test_inspect_logs.py",
    r"--image menu\.jpg": "needs a reader of text (extra ocr)",
}
"""Commands of the documentation that no test runs, and why. Their options are checked all the same."""
REFUSED = {
    r"^agrotools gate |RUN --until-decided": 2,
    r" check ": 1,
    r"identify_weed|diagnose_pest_disease|run count_objects": 3,
}
"""Exit codes of commands that run and say no: files or the benchmark are missing, a drawing is no photo of a plant."""
FIRST = {
    "agrotools report results": ["agrotools export RUN --format result --out results"],
    "agrotools report results --format md": ["agrotools export RUN --format result --out results"],
    "agrotools build --source hf=hf --out again": [
        "agrotools export my-benchmark --format hf --out hf"
    ],
    "agrotools score --benchmark my-benchmark --predictions answers.jsonl --replies messages.jsonl": [
        "agrotools score --benchmark my-benchmark --predictions answers.jsonl --unread messages.jsonl"
    ],
}
"""Commands that need what others write."""


def commands() -> list[tuple[str, str]]:
    """Page and command of every line of the shell examples, without comments; ``A && B`` is two commands."""
    found: list[tuple[str, str]] = []
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                plain = re.split(r"\s#\s", f" {line} ")[0].strip()
                found += [(page.name, part.strip()) for part in plain.split("&&") if part.strip()]
    return found


OURS = [(page, line) for page, line in commands() if line.startswith("agrotools ")]


def test_there_are_commands():
    assert len(OURS) > 60
    assert all(any(re.search(pattern, line) for _, line in OURS) for pattern in NOT_RUN)


@pytest.mark.parametrize(("page", "line"), sorted(set(OURS)))
def test_a_command_is_known_with_its_options(page: str, line: str):
    words = [word for word in shlex.split(line)[1:] if word not in ("...", "…")]
    command: click.Command = get_command(app)  # pyright: ignore[reportAssignmentType]
    context = click.Context(command, info_name="agrotools")
    while isinstance(command, click.Group):
        assert words, f"{page}: {line}"
        name = words.pop(0)
        child = command.get_command(context, name)
        assert child is not None, f"{page}: no command {name} in {line}"
        command, context = child, click.Context(child, parent=context, info_name=name)
    if context.info_name == "run":  # the options of a tool are those of its schema
        return
    try:
        command.make_parser(context).parse_args([word.strip("[]") for word in words])
    except click.UsageError as error:
        pytest.fail(f"{page}: {line}: {error.format_message()}")


def _is_run(line: str) -> bool:
    return not any(re.search(pattern, line) for pattern in NOT_RUN)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files that the commands name."""
    place = tmp_path_factory.mktemp("commands")
    crop, weeds = planted_rows()
    rows, columns = np.mgrid[:120, :200]
    leaf = np.hypot((columns - 100) / 80, (rows - 60) / 40)[..., None] < 1
    Image.fromarray(np.where(leaf, (60, 130, 50), 245).astype(np.uint8)).save(place / "leaf.jpg")
    apple = np.hypot(columns - 100, rows - 60)[..., None] < 30
    tree = np.where(apple, (190, 30, 40), (60, 110, 40)).astype(np.uint8)
    Image.fromarray(tree).save(place / "tree.jpg")
    for name in ("paddock.jpg", "field.jpg"):
        Image.fromarray(field(crop | weeds)).save(place / name)
    heights = np.random.default_rng(1).uniform(0, 4, (1, 60, 80)).astype(np.float32)
    for name in ("heights.tif", "2019.tif", "2024.tif"):
        bands = (
            heights
            if name == "heights.tif"
            else np.repeat(heights * 60, 3, axis=0).astype(np.uint8)
        )
        write_raster(
            place / name, bands, crs="EPSG:32632", transform=from_origin(5e5, 58e5, 0.5, 0.5)
        )
    (place / "corpus").mkdir()
    (place / "corpus" / "rice.txt").write_text("水稻纹枯病由立枯丝核菌引起。", encoding="utf-8")
    _copy_part(GOLDEN / "benchmarks" / "drawn", place / "my-benchmark", _AS_RECORDED)
    ids = [
        json.loads(line)["id"]
        for line in (place / "my-benchmark" / "samples.jsonl").read_text().splitlines()
    ]
    (place / "answers.jsonl").write_text(
        "".join(json.dumps({"id": name, "prediction": "unknown"}) + "\n" for name in ids)
    )
    (place / "examples").mkdir()
    study = (ROOT / "examples" / "thirteen_models.toml").read_text(encoding="utf-8")
    (place / "examples" / "thirteen_models.toml").write_text(
        study.replace('"embedded"', '"my-benchmark"')
    )
    for run in (place / "runs" / "a", place / "runs" / "b"):
        shutil.copytree(GOLDEN / "runs" / "gta-lagent", run)
    for name in ("RUN", "OTHER_RUN"):
        for run in (place / name, place / "runs" / name):
            shutil.copytree(GOLDEN / "runs" / "gta-lagent", run)
        shutil.copytree(GOLDEN / "runs" / "agrieval", place / f"{name}_of_agrieval")
    for files in made_files(place / "predictions", 3).values():
        for kind, path in files.items():
            shutil.copy(
                path, place / f"{kind}_{path.name.split('_')[0].removesuffix('.json')}.json"
            )
    result = {"id": 0, "question_type": "单选", "answer": "A", "model_output": "A"}
    asked = {"question": "Which?", "options": ["Rust", "Rot"], "answer": "Rot", "letter": "B."}
    row = {
        "faq-id": 1,
        "agmmu_question": asked,
        "llm_answers": {"m-mcq": {"answer": "B", "score": {"accuracy": 1}}},
    }
    for path in (place / "output_file.json", place / "agmmu" / "data" / "rows.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([row]), encoding="utf-8")
    scores = "".join(f"{model},{number},1\n" for model in "AB" for number in range(10))
    (place / "scores.csv").write_text(f"model,sample,score\n{scores}")
    of_images = "".join(f"{model},{at},1,{at // 2}.jpg\n" for model in "AB" for at in range(20))
    (place / "scores_of_images.csv").write_text(f"model,sample,score,image\n{of_images}")
    (place / "errors.csv").write_text("sample,error\ngta-004,reasoning error\n")
    (place / "RESULTS.json").write_text(json.dumps([result]), encoding="utf-8")
    return place


_AS_RECORDED = ("blocks-004", "pots-005", "rows-010")
"""Samples whose recorded results, of version 0.1, are still those of the tools."""


def _copy_part(benchmark: Path, folder: Path, ids: tuple[str, ...]) -> None:
    """Copy some samples of a benchmark, with their files."""
    lines = (benchmark / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if json.loads(line)["id"] in ids]
    shutil.copytree(benchmark, folder)
    (folder / "samples.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for path in (folder / "files").iterdir():
        if not any(path.name in line for line in lines):
            path.unlink()


def _in_place(line: str) -> list[str]:
    """The words of a command, with the names of files and folders that ``place`` has."""
    words = shlex.split(line)[1:]
    family = words[words.index("--format") + 1] if "--format" in words else ""
    suffix = "_of_agrieval" if "--paper" in words else ""
    named = {
        "DIR": "corpus" if "kb" in words else _data_root(words),
        "RUN": f"RUN{suffix}",
        "OTHER_RUN": f"OTHER_RUN{suffix}",
        "SAMPLE": "blocks-004" if "BENCHMARK" in words else "gta-004",
        "BENCHMARK": str(GOLDEN / "benchmarks" / "drawn"),
        "PREDICTIONS.json": f"predictions_{family}.json",
        **dict.fromkeys(("dataset.json", "ThinkGeoBench.json", "data.json"), f"data_{family}.json"),
        **dict.fromkeys(("llm_score_log.json", "JUDGED.json"), f"judgements_{family}.json"),
    }
    if "runs/b" in words:
        named["leaf_lesions-088"] = (
            "gta-004"  # a sample of the run that stands in for the tutorial's
        )
    return [named.get(word, word) for word in words]


def _data_root(words: Sequence[str]) -> str:
    if "agmmu" in words:
        return "agmmu"
    name = next((word for word in words if (GOLDEN / "benchmarks" / word).is_dir()), "gta")
    return str(GOLDEN / "benchmarks" / name)


@pytest.mark.process
@pytest.mark.parametrize("line", sorted({line for _, line in OURS if _is_run(line)}))
def test_a_command_runs(line: str, place: Path):
    for each in (*FIRST.get(line, ()), line):
        done = run_command(*_in_place(each), cwd=place)
        allowed = {0, *(code for pattern, code in REFUSED.items() if re.search(pattern, each))}
        assert done.returncode in allowed, done.stdout + done.stderr
        assert (done.stdout + done.stderr).strip()


@pytest.mark.parametrize(
    "path",
    sorted(
        {
            path
            for page in PAGES
            for path in re.findall(
                r"python ((?:performance|studies|training)/\w+\.py)", page.read_text()
            )
        }
    ),
)
def test_a_script_that_is_named_exists(path: str):
    assert (ROOT / path).is_file()


def test_the_checks_of_a_change_begin_with_the_commands_of_the_readme():
    ci = ROOT / ".ci" / "run"
    if not ci.is_file():
        pytest.skip("no .ci/run: this is not a checkout")
    parts = (ROOT / "README.md").read_text(encoding="utf-8").split("```sh\n")
    use, test = (part.split("```")[0].splitlines() for part in parts[1:3])
    commands = [*use, *test]
    lines = ci.read_text(encoding="utf-8").splitlines()
    start = lines.index(commands[0])
    assert lines[start : start + len(commands)] == commands
    assert commands[-1].startswith("pytest -m unit")
