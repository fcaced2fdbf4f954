"""Schematic pests and weeds, traps, potted weeds and crop rows as subjects of questions."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from agrotools.build.scenes.insects import SPECIES
from agrotools.build.scenes.pest_plates import make_marked_plate, make_pest_plate, make_trap
from agrotools.build.scenes.pot_plants import FORMS, make_pot
from agrotools.build.scenes.weed_plates import make_marked_weeds, make_weed_plate
from agrotools.build.scenes.weed_shapes import WEED_SHAPES
from agrotools.build.sources.drawn import rows
from agrotools.build.sources.drawn.pests import BORERS, THRESHOLDS
from agrotools.build.sources.drawn.weeds import HARMLESS, POISONOUS
from agrotools.tools import count_objects, lookup_agronomy, measure_weed_phenotype
from agrotools.tools.lookup.kb_names import kb_names


@pytest.mark.parametrize(
    "make",
    [
        make_pest_plate,
        make_marked_plate,
        make_trap,
        make_weed_plate,
        make_marked_weeds,
        lambda seed, difficulty: make_pot(seed, difficulty, "velvetleaf", 20.0),
    ],
)
def test_the_same_seed_draws_the_same_scene(make) -> None:
    one, same, other = make(7, 2), make(7, 2), make(8, 2)
    np.testing.assert_array_equal(one.images["rgb"], same.images["rgb"])
    assert one.truth == same.truth
    assert not np.array_equal(one.images["rgb"], other.images["rgb"])


def test_every_species_that_is_drawn_is_known_by_the_base() -> None:
    names = kb_names()
    assert len(SPECIES) >= 16
    for insect in SPECIES:
        assert names.of_name(insect.slug, ("pest",)) is not None, insect.slug
    for slug in WEED_SHAPES:
        assert names.of_name(slug, ("weed",)) is not None, slug


def test_what_questions_take_of_the_base_is_what_it_says() -> None:
    """Borers, poisonous weeds and levels are told by the entries as the questions read them."""
    for insect in SPECIES:
        kb_id = f"pest.{insect.slug}"
        text = lookup_agronomy(query="damage to stems", kb_id=kb_id, topic="symptoms").hits[0].text
        assert ("dead heart" in text or "Bored stalks" in text) == (insect.slug in BORERS), insect.slug
        names = lookup_agronomy(query="order and family", kb_id=kb_id, topic="identification").hits[1]
        assert names.section == "names"
        assert "order " in names.text
    for slug in (*POISONOUS, *HARMLESS):
        text = lookup_agronomy(query="poisonous to cattle", kb_id=f"weed.{slug}", topic="causes").hits[0].text
        told = ("poison" in text or "toxic" in text) and "no toxicity" not in text
        assert told == (slug in POISONOUS), slug
    for slug in THRESHOLDS:
        level = lookup_agronomy(query="level", kb_id=f"pest.{slug}", topic="thresholds").hits[0].values[0]
        assert level.value is not None
        assert " per " in f"{level.unit}", slug


def test_a_trap_holds_as_many_as_it_says_and_as_many_can_be_counted(tmp_path: Path) -> None:
    from agrotools.build.sources.drawn.pictures import save_photo

    for difficulty in (0, 3):
        scene = make_trap(3, difficulty, "flea_beetle", 18)
        save_photo(tmp_path / "trap.jpg", scene.images["rgb"])
        assert scene.truth["count"] == len(scene.truth["centres"]) == 18
        found = count_objects(
            image=tmp_path / "trap.jpg", target="insect", mode="blob", expected_size_px=scene.truth["length_px"]
        )
        assert abs(found.count - 18) <= 2


def test_the_disc_tells_how_tall_a_potted_weed_is(tmp_path: Path) -> None:
    from agrotools.build.sources.drawn.pictures import save_photo

    for species in FORMS:
        scene = make_pot(5, 1, species, 18.0)
        save_photo(tmp_path / "pot.jpg", scene.images["rgb"])
        marker = {"type": "circle", "size_cm": scene.truth["disc_cm"]}
        plant = measure_weed_phenotype(image=tmp_path / "pot.jpg", scale_marker=marker).plants[0]
        assert plant.height_cm == pytest.approx(scene.truth["height_cm"], rel=0.08)


def test_labels_of_the_schematic_packs_are_species_that_are_drawn() -> None:
    from agrotools.tools.recognition.packs import schematic_pack

    pests, weeds = schematic_pack("schematic_pests").info, schematic_pack("schematic_weeds").info
    assert set(pests.classes) == {insect.slug for insect in SPECIES}
    assert set(weeds.classes) == set(WEED_SHAPES)


def test_the_best_of_the_composites_shown_is_not_always_of_the_same_bands() -> None:
    ranking = {"-".join(bands): {"expected_accuracy": 0.9 - 0.02 * k} for k, bands in enumerate(rows.COMPOSITES)}
    best: Counter[tuple[str, str, str]] = Counter()
    for seed in range(120):
        shown = rows._shown_composites(ranking, np.random.default_rng(seed))
        assert len(set(shown)) == 4
        best[min(shown, key=rows.COMPOSITES.index)] += 1
    assert set(best) == {*rows.COMPOSITES[:3]}
    assert min(best.values()) > 25
