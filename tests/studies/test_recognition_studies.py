"""Studies of recognising tools, on pictures and nets made here: what counts as right, refused and named."""

import json
from pathlib import Path

import pytest
from PIL import Image

from accuracy import studies_of
from accuracy.study import Bench, Figure, estimate
from support.labelled_pictures import plant_picture
from support.tiny_nets import Colour, write_tiny_net

LEAVES: dict[str, Colour] = {
    "bean_healthy": (40, 160, 40),
    "bean_bean_rust": (170, 90, 40),
    "bean_angular_leaf_spot": (120, 60, 140),
}


@pytest.fixture(autouse=True)
def _nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agrotools_tools.vision.nets.nets_folder", lambda: tmp_path / "nets")
    crops = {"bean": list(LEAVES)}
    write_tiny_net(tmp_path / "nets", "leaves", LEAVES, threshold=0.6, crops=crops)


def bench_of(tmp_path: Path, shown: list[tuple[str, Colour]]) -> Bench:
    folder = tmp_path / "folder"
    folder.mkdir()
    items = []
    for number, (label, colour) in enumerate(shown):
        Image.fromarray(plant_picture(colour, number, 64)).save(folder / f"{number}.png")
        items.append({"id": str(number), "image": f"{number}.png", "label": label})
    (folder / "truth.json").write_text(json.dumps(items))
    return Bench("diagnose_pest_disease", folder, tmp_path / "made")


def values(figures: list[Figure]) -> dict[str, float]:
    return {figure.metric: estimate(figure).value for figure in figures}


def test_right_wrong_and_by_class(tmp_path: Path) -> None:
    study = studies_of("diagnose_pest_disease")[0]
    shown = [
        *[("bean_rust", LEAVES["bean_bean_rust"])] * 3,
        ("bean_rust", LEAVES["bean_healthy"]),
        *[("healthy", LEAVES["bean_healthy"])] * 4,
    ]
    found = values(study.measure(bench_of(tmp_path, shown)))
    assert (found["top-1 of all"], found["top-1, bean bean rust"]) == (
        pytest.approx(7 / 8),
        pytest.approx(3 / 4),
    )
    assert (found["top-1, bean healthy"], found["top-1 of all, crop given"]) == (
        1,
        pytest.approx(7 / 8),
    )
    assert found["refused as unknown"] == 0


def test_pictures_that_are_refused_are_counted(tmp_path: Path) -> None:
    write_tiny_net(
        tmp_path / "nets", "leaves", LEAVES, threshold=1.01, crops={"bean": list(LEAVES)}
    )
    study = studies_of("diagnose_pest_disease")[0]
    found = values(study.measure(bench_of(tmp_path, [("bean_rust", LEAVES["bean_bean_rust"])] * 2)))
    assert (found["top-1 of all"], found["refused as unknown"]) == (1, 1)
    assert "right where one is named" not in found


def test_images_of_others_are_named(tmp_path: Path) -> None:
    from accuracy.studies import sources_of

    folder = bench_of(tmp_path, [("bean_rust", LEAVES["bean_bean_rust"])] * 2).folder
    items = json.loads((folder / "truth.json").read_text())
    for repo, is_ours in (
        ("somebody/beans", False),
        ("ai-agriculture-circuits-and-systems/bean_disease_uganda", True),
    ):
        (folder / "truth.json").write_text(
            json.dumps(
                [{**item, "source": {"repo": repo, "commit": "0123456789"}} for item in items]
            )
        )
        sources = sources_of("bean_leaf_class", folder, "identify_weed")
        assert sources[0].startswith(f"{repo} @ 01234567 (2 items")
        assert sources[1] is is_ours
        assert ("learnt from" in sources[0]) is is_ours
