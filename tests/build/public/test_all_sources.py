"""A benchmark of all twelve public data sets: the published shares, and what falls short, told with its reason."""

from collections import Counter
from pathlib import Path

import pytest
from fake_agromind import write_agromind
from fake_clcd import write_clcd
from fake_deepnir import write_deepnir
from fake_deepweeds import write_deepweeds
from fake_fpcd import write_fpcd
from fake_hi_cna import write_hi_cna
from fake_ip102 import write_ip102
from fake_open_canopy import write_open_canopy
from fake_papple import write_papple
from fake_plantseg import DISEASES, write_plantseg
from fake_weedmap import write_weedmap
from fake_weedsense import write_weedsense
from typer.testing import CliRunner

from agrotools.benchmarks import load_folder
from agrotools.benchmarks.validate import validate_folder
from agrotools.build.allocation import SOURCE_PCTS, apportioned
from agrotools.build.sources.part import listing_of
from agrotools.build.sources.public import DATASETS, build_all, folders_in
from agrotools.cli.main import app

QUERIES = 60
PONDS = [
    [(0, 20, 20, 30)],
    [(1, 30, 40, 40), (0, 120, 90, 30)],
    [(2, 90, 40, 44)],
    [(3, 60, 90, 36), (0, 180, 20, 30)],
    [(4, 140, 60, 50)],
    [(1, 20, 30, 40), (3, 150, 90, 40)],
    [],
]
CHANGES = [0.0, 6.0, 12.0, 2.0, 30.0, 18.0]
WRITERS = {
    "agromind": write_agromind,
    "clcd": lambda folder: write_clcd(folder, CHANGES),
    "deepnir": write_deepnir,
    "deepweeds": write_deepweeds,
    "fpcd": lambda folder: write_fpcd(folder, PONDS),
    "hi_cna": lambda folder: write_hi_cna(folder, CHANGES),
    "ip102": write_ip102,
    "open_canopy": write_open_canopy,
    "papple": write_papple,
    "plantseg": write_plantseg,
    "weedmap": write_weedmap,
    "weedsense": write_weedsense,
}
SHARES = apportioned(SOURCE_PCTS, QUERIES)


def write_all(folder: Path, names: tuple[str, ...] = tuple(WRITERS)) -> Path:
    for name in names:
        WRITERS[name](folder / name)
    return folder


def _by_source(benchmark) -> Counter[str]:
    names = {data_set: name for name, data_set in _source_names().items()}
    return Counter(names[sample.source] for sample in benchmark.samples)


def _source_names() -> dict[str, str]:
    return {name: listing_of(name).source.name for name in DATASETS}


def test_there_is_an_adapter_for_every_published_source() -> None:
    assert set(WRITERS) == set(DATASETS) == set(SOURCE_PCTS)
    assert sum(SHARES.values()) == QUERIES
    assert SHARES["ip102"] == 13
    assert apportioned(SOURCE_PCTS, 539)["ip102"] == 115
    assert len(set(_source_names().values())) == 12


@pytest.mark.slow
def test_all_twelve_give_their_published_shares(tmp_path: Path) -> None:
    folder = write_all(tmp_path / "sets")
    build_all(folders_in(folder), tmp_path / "out", queries=QUERIES)
    assert validate_folder(tmp_path / "out") == []
    benchmark = load_folder(tmp_path / "out")
    told = benchmark.header.metadata["shares"]
    assert isinstance(told, dict)
    assert told.keys() == DATASETS.keys()
    made = _by_source(benchmark)
    for name, share in told.items():
        assert isinstance(share, dict)
        assert share["wanted"] == SHARES[name]
        assert share["made"] == made[name]
        assert (share["made"] == share["wanted"]) is ("why" not in share)
    assert made == SHARES
    queries = [sample.query for sample in benchmark.samples]
    assert len(set(queries)) == len(queries)
    assert benchmark.header.metadata["needs_backend"]


def test_what_falls_short_is_told_with_its_reason_on_the_command_line(tmp_path: Path) -> None:
    diseases = {"potato": ("potato early blight",), "tomato": DISEASES["tomato"]}
    write_plantseg(tmp_path / "sets" / "plantseg", 1, all_diseases=diseases)
    arguments = ["build", "--all-sources", str(tmp_path / "sets"), "--out", str(tmp_path / "out"), "--queries", "539"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    wanted = apportioned(SOURCE_PCTS, 539)
    made = _by_source(load_folder(tmp_path / "out"))
    assert made.keys() == {"plantseg"}
    assert 0 < made["plantseg"] < wanted["plantseg"]
    missing = wanted["plantseg"] - made["plantseg"]
    told = " ".join(result.output.split())
    assert f"plantseg: {made['plantseg']} of {wanted['plantseg']} samples ({missing} could not be asked" in told
    assert f"ip102: 0 of {wanted['ip102']} samples (its data set is not there)" in told
    assert "a back-end of diagnose_pest_disease that this machine lacks: train a pack" in told
    assert "plantseg, left out: 1 with a disease that the knowledge base has not" in told
