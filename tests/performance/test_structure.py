"""The figures of the structure, on a made-up package of which every figure is known."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "performance"))

import structure  # noqa: E402

FILES = {
    "__init__.py": "",
    "core/config.py": "class Config:\n    name = ''\n",
    "models/make.py": "from agrotools.core.config import Config\n\n\ndef model_of(name: str):\n    return name\n",
    "runner/plan.py": "def plan_of(limit: int):\n    return range(limit)\n",
    "runner/evaluate.py": (
        "from agrotools.core.config import Config\n"
        "from agrotools.models.make import model_of\n"
        "from agrotools.runner.plan import plan_of\n"
        "from agrotools.runner.write import write\n\n\n"
        "def evaluate(config: Config):\n"
        "    model = model_of(config.name)\n"
        "    limit = config.limit\n"
        "    plan_of(limit)\n"
        "    write(model)\n"
    ),
    "runner/write.py": "PROTOCOLS = {'react': 1, 'agent-x': 2}\n\n\ndef write(model):\n    return model == 'agent-x'\n",
}


@pytest.fixture
def house(tmp_path: Path) -> structure.House:
    for name, text in FILES.items():
        path = tmp_path / "src" / "agrotools" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return structure.House(tmp_path)


def test_the_walk_follows_the_configuration_and_its_parts_and_nothing_made_from_them(
    house: structure.House,
):
    rooms = structure.walk_of_config(house)
    assert rooms == ["agrotools.models.make", "agrotools.runner.evaluate", "agrotools.runner.plan"]


def test_a_circle_is_found_inside_functions_and_not_for_types(house: structure.House):
    assert house.circles() == []
    plan = house.source / "agrotools" / "runner" / "plan.py"
    closing = "from agrotools.runner.evaluate import evaluate\n"
    plan.write_text(f"from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    {closing}")
    assert structure.House(house.repo).circles() == []
    plan.write_text(f"def plan_of(limit: int):\n    {closing}")
    assert structure.House(house.repo).circles() == [
        ["agrotools.runner.evaluate", "agrotools.runner.plan"]
    ]


def test_the_package_has_no_circle():
    assert structure.House(ROOT).circles() == []


def test_what_makes_code_hard_to_read_is_counted(house: structure.House):
    sums = "".join(f"    {name} = a + b + c + d\n" for name in "efghijklmnopqrstuvwxyz" * 2)
    text = f'"""A docstring."""\n\n\n# a comment\nclass Config:\n    """Text."""\n\n\ndef many(a, b, c, d):\n{sums}'
    (house.source / "agrotools" / "scoring.py").write_text(
        text + "    return [n for n in (e if f else g)]\n"
    )
    found = structure.House(house.repo)
    assert [line.split(maxsplit=1)[1] for line in structure.large_functions(found)] == [
        "agrotools.scoring:9 many"
    ]
    assert structure.classes_defined_twice(found) == [
        "Config: agrotools.core.config, agrotools.scoring"
    ]
    one = structure.density([found.modules["agrotools.scoring"]])
    assert (one.files, one.lines, one.code_lines) == (1, 54, 47)
    assert (one.comments, one.comprehensions, one.conditionals) == (1, 1, 1)
    places = [("agrotools/scoring.py", 9), ("agrotools/models/make.py", 4)]
    assert structure.lines_of_functions(found, places) == 46 + 2
