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


def test_the_walk_follows_the_configuration_and_its_parts_and_nothing_made_from_them(house: structure.House):
    rooms, climbs = structure.walk_of_config(house)
    assert rooms == ["agrotools.models.make", "agrotools.runner.evaluate", "agrotools.runner.plan"]
    assert climbs == 1


def test_modules_that_import_each_other_share_a_floor():
    edges = {"a": {"b"}, "b": {"c", "d"}, "c": {"b"}, "d": set()}
    assert structure.floors(edges) == {"a": 3, "b": 2, "c": 2, "d": 1}


def test_a_circle_is_found_inside_functions_and_not_for_types(house: structure.House):
    assert house.circles() == []
    plan = house.source / "runner" / "plan.py"
    closing = "from agrotools.runner.evaluate import evaluate\n"
    plan.write_text(f"from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    {closing}")
    assert structure.House(house.repo).circles() == []
    plan.write_text(f"def plan_of(limit: int):\n    {closing}")
    assert structure.House(house.repo).circles() == [["agrotools.runner.evaluate", "agrotools.runner.plan"]]


def test_the_package_has_no_circle():
    assert structure.House(ROOT).circles() == []


def test_a_figure_above_its_ceiling_is_named_and_ceilings_only_fall(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(structure, "CEILINGS", tmp_path / "ceilings.toml")
    structure.CEILINGS.write_text("lines_src = 1000\n")
    row = structure.Row("lines_src", "Python lines in src", 1001, "900")
    assert structure.check([row, row._replace(name="other")]) == [
        "Python lines in src: 1,001, above the ceiling of 1,000"
    ]
    structure.write_ceilings([row])
    assert structure.ceilings() == {"lines_src": 1000}
    structure.write_ceilings([row._replace(value=990)])
    assert structure.ceilings() == {"lines_src": 990}


def test_what_makes_code_hard_to_read_is_counted(house: structure.House):
    ifs = "".join(f"    if n == {n}:\n        return {n}\n" for n in range(31))
    (house.source / "scoring.py").write_text(f"import re\n\n\ndef chosen(n):\n{ifs}    return re.compile('a')\n")
    found = structure.House(house.repo)
    assert structure.complex_functions(found) == ["agrotools.scoring:4 chosen 32"]
    assert structure.patterns(found) == ["agrotools.scoring:67"]
