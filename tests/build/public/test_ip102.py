"""The IP102 adapter on a small data set in its authors' layout."""

from collections import Counter
from pathlib import Path

import numpy as np
from data_sets import SHELL_PEST
from parts import original_of, things_of
from PIL import Image

from agrotools.build.sources.part import Part
from agrotools.build.sources.public import adapter_of
from agrotools.build.sources.public.ip102 import CLASSES, CROPS, known_as, others_on, pests
from agrotools.build.templates import Thing
from agrotools.knowledge.kb_names import kb_names

ip102 = adapter_of("ip102")
TEMPLATES = ("pest", "pest_group", "pest_advice")


def _things(part: Part, *kinds: str) -> list[tuple[Path, Thing]]:
    return [(original_of(part, thing), thing) for thing in things_of(part, *kinds)]


def _pixels(path: Path):
    with Image.open(path) as picture:
        return np.asarray(picture)


def _listed(folder: Path, split: str) -> dict[str, int]:
    text = (folder / "IP102_v1.1/Classification/ip102_v1.1" / f"{split}.txt").read_text()
    return {line.split()[0]: int(line.split()[1]) for line in text.splitlines()}


def test_classes_keep_their_names_and_each_is_known_but_one() -> None:
    assert len(CLASSES) == len(CROPS) == 102
    assert (CLASSES[0], CLASSES[101]) == ("rice leaf roller", "Cicadellidae")
    assert CLASSES[43] == "sericaorient alismots chulsky"
    assert CROPS.count("citrus") == 19
    assert set(range(102)) - pests().keys() == {SHELL_PEST}
    assert pests()[29].name == "bird cherry-oat aphid"


def test_a_group_is_never_offered_beside_its_members_and_members_names_are_right_for_it() -> None:
    aphids, thrips, grain_aphid = pests()[24], pests()[54], pests()[27]
    assert aphids.covers(grain_aphid)
    assert not grain_aphid.covers(aphids)
    assert "Sitobion avenae" in known_as(aphids)
    assert "chilli thrips" in known_as(thrips)
    assert "aphids" not in known_as(grain_aphid)
    for pest in pests().values():
        others = others_on(pest)
        assert pest not in others
        assert len({one.entry.id for one in others}) == len(others) >= 3
        assert {one.crop for one in others} == {pest.crop}
        assert not any(pest.like(one) for one in others)


def test_names_are_those_of_the_labels_and_all_pictures_those_of_the_test_split(folder, tmp_path, scratch):
    part = ip102(folder, scratch, 60)
    tested = _listed(folder, "test")
    seen = Counter[str]()
    for picture, thing in _things(part, "pest_photo", "pest_group", "pest_damage", "pest_advice"):
        truth = thing.truth if thing.tool == "diagnose_pest_disease" else thing.before[0].truth
        (entry,) = (entry for entry in kb_names().entries if entry.id == truth["best"])
        assert thing.words["name"] == entry.names.en
        if picture.is_relative_to(folder):
            assert CLASSES[tested[picture.name]] in entry.names.datasets["ip102"]
            assert picture.read_bytes()[:2] == b"\xff\xd8"
        seen[picture.name] += 1
    assert len(seen) > 60
    assert max(seen.values()) == 1
    assert len({thing.words["crop"] for _, thing in _things(part, "pest_photo")}) == 8


def test_what_calls_itself_jpg_and_is_none_is_written_anew_and_odd_ones_are_left_out(folder, tmp_path, scratch):
    part = ip102(folder, scratch, 200)
    tested = list(_listed(folder, "test"))
    used = {picture.name for picture, _ in _things(part)}
    made = [picture for picture, _ in _things(part) if picture.is_relative_to(scratch) and picture.suffix == ".png"]
    assert len(made) == 1
    assert _pixels(made[0]).shape[2] == 3
    assert not used & {tested[2], "40410.jpg"}
    assert len(used & {tested[1], tested[3]}) <= 1
