"""Names in other languages, the English names that they stand for, and the entries found by them."""

import pytest

from agrotools.knowledge.foreign import english_names, foreign_names
from agrotools.knowledge.kb_names import healthy_crop, kb_names
from agrotools_tools.lookup.retrieval import knowledge_base


def test_every_listed_name_leads_to_an_entry():
    meant = [english for name in foreign_names() for english in english_names(name)]
    assert [name for name in meant if not kb_names().meant_by(name)] == []


@pytest.mark.parametrize(
    ("name", "crop", "entry"),
    [
        ("ferrugem", "café", "disease.coffee_leaf_rust"),
        ("ferrugem", "soybean", "disease.soybean_rust"),
        ("ferrugem", "wheat", None),  # three rusts
        ("ferrugem", None, None),
        ("Ferrugem do cafeeiro", None, "disease.coffee_leaf_rust"),
        ("roya", "bean", "disease.bean_rust"),
        ("bicho-mineiro", None, "pest.coffee_leaf_miner"),
        ("minador", "citrus", "pest.citrus_leafminer"),
        ("cercosporiose", "coffee", "disease.coffee_brown_eye_spot"),
        ("mildiou", "grape", "disease.grape_downy_mildew"),
        ("mildiou", "potato", "disease.late_blight"),
        ("oídio", "grape", "disease.grape_powdery_mildew"),
        ("Rost", "bean", "disease.bean_rust"),
        ("pinta-preta", "citrus", "disease.citrus_black_spot"),
    ],
)
def test_a_name_in_another_language_means_the_thing_on_the_crop(name, crop, entry):
    found = kb_names().of_name(name, ("disease", "pest"), crop)
    assert (found and found.id) == entry


@pytest.mark.parametrize(
    ("name", "crop"),
    [
        ("sadia", ""),
        ("Saudável", ""),
        ("hoja sana", ""),
        ("café sano", "coffee"),
        ("planta sana con roya", None),
    ],
)
def test_healthy_in_other_languages(name, crop):
    assert healthy_crop(name) == crop


@pytest.mark.parametrize(
    ("query", "crop", "entry"),
    [
        ("ferrugem", None, "disease.coffee_leaf_rust"),
        ("ferrugem", "soja", "disease.soybean_rust"),
        ("bicho-mineiro", None, "pest.coffee_leaf_miner"),
        ("roya del café", None, "disease.coffee_leaf_rust"),
    ],
)
def test_a_search_finds_names_in_other_languages(query, crop, entry):
    hits = knowledge_base()[0].search(query, crop=crop)
    assert entry in [hit.entry.id for hit in hits]
