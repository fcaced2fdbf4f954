import json
from datetime import date
from typing import Any

import pytest
from every_slot import HEADER, samples, write_every_slot

from agrotools.core.files import sha256_of_file
from agrotools.loading import load_folder
from agrotools_build.export.folder import croissant


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_every_slot(tmp_path_factory.mktemp("croissant") / "benchmark")


@pytest.fixture(scope="module")
def described(folder):
    return json.loads((folder / "croissant.json").read_text())


def test_it_declares_croissant_1_1_and_the_rai_vocabulary(described):
    """The properties that the specification of Croissant 1.1 requires of a data set."""
    assert described["conformsTo"] == [
        "http://mlcommons.org/croissant/1.1",
        "http://mlcommons.org/croissant/RAI/1.0",
    ]
    assert described["@type"] == "sc:Dataset"
    for name in (
        "name",
        "description",
        "license",
        "url",
        "creator",
        "version",
        "citeAs",
        "distribution",
        "recordSet",
    ):
        assert described[name], name
    assert date.fromisoformat(described["datePublished"])
    context = described["@context"]
    assert (context["@vocab"], context["sc"]) == ("https://schema.org/", "https://schema.org/")
    assert context["cr"] == "http://mlcommons.org/croissant/"
    assert context["rai"] == "http://mlcommons.org/croissant/RAI/"
    assert context["conformsTo"] == "dct:conformsTo"
    assert (described["license"], described["version"]) == (
        "https://creativecommons.org/licenses/by/4.0/",
        "3.0.0",
    )


def test_every_file_has_its_hash_and_size(folder, described):
    files = {file["contentUrl"]: file for file in described["distribution"]}
    shown = {file.path for sample in load_folder(folder).samples for file in sample.files}
    assert set(files) == {"benchmark.toml", "samples.jsonl", *shown}
    for path, file in files.items():
        assert file["@type"] == "cr:FileObject"
        assert file["name"]
        assert "/" in file["encodingFormat"]
        assert file["sha256"] == sha256_of_file(folder / path)
        assert file["contentSize"] == f"{(folder / path).stat().st_size} B"
    assert len({file["@id"] for file in files.values()}) == len(files)
    assert not [file["@id"] for file in files.values() if " " in file["@id"]]


def test_the_rai_fields_say_what_the_header_can_vouch_for(folder, described):
    assert "Paddock" in described["rai:dataCollection"]
    assert any("57 % of samples are Orchard" in bias for bias in described["rai:dataBiases"])
    assert any("English and Chinese" in bias for bias in described["rai:dataBiases"])
    assert "duplicate: 2" in described["rai:dataCollectionMissingData"]
    for name in (
        "dataLimitations",
        "personalSensitiveInformation",
        "dataAnnotationProtocol",
        "dataUseCases",
    ):
        assert described[f"rai:{name}"]
    drawn = croissant(folder, HEADER.model_copy(update={"synthetic": True}), samples(folder))
    assert drawn["description"].startswith("SYNTHETIC")
    assert any("Synthetic" in limit for limit in drawn["rai:dataLimitations"])
    own = {"rai": {"personalSensitiveInformation": ["A farmer's hand."], "nonsense": "x"}}
    said = croissant(folder, HEADER.model_copy(update={"metadata": own}), samples(folder))
    assert said["rai:personalSensitiveInformation"] == ["A farmer's hand."]
    assert "rai:nonsense" not in said


def _record(row: dict[str, Any], fields: list[dict[str, Any]]) -> dict[str, Any]:
    """The record that a reader of Croissant makes of a line of ``samples.jsonl``."""
    record = {}
    for field in fields:
        value = row[field["source"]["extract"]["column"]]
        if path := field["source"].get("transform", {}).get("jsonPath"):
            value = [item[path] for item in value]
        record[field["@id"]] = value
    return record


def test_the_record_set_names_fields_that_the_samples_have(folder, described):
    (record_set,) = described["recordSet"]
    fields = record_set["field"]
    assert (record_set["@type"], record_set["@id"], record_set["key"]) == (
        "cr:RecordSet",
        "samples",
        {"@id": "samples/id"},
    )
    files = {file["@id"] for file in described["distribution"]}
    for field in fields:
        assert field["@type"] == "cr:Field"
        assert field["@id"] == f"samples/{field['name']}"
        assert field["description"]
        assert field["dataType"] in ("sc:Text", "sc:Boolean")
        assert field["source"]["fileObject"]["@id"] in files
        assert (
            ("transform" in field["source"])
            == field.get("isArray", False)
            == ("arrayShape" in field)
        )
    lines = (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    records = [_record(json.loads(line), fields) for line in lines]
    expected = load_folder(folder).samples
    assert [record["samples/id"] for record in records] == [sample.id for sample in expected]
    assert [record["samples/query"] for record in records] == [sample.query for sample in expected]
    assert [record["samples/no_tool_eligible"] for record in records] == [
        sample.no_tool_eligible for sample in expected
    ]
    assert records[6]["samples/file_kinds"] == ["raster", "mask", "table"]
    assert records[0]["samples/files"] == [file.path for file in expected[0].files]
    assert records[0]["samples/answer_kinds"] == ["tolerance"]


def test_every_term_is_in_the_context(described):
    """A key without a prefix is a term of the context, or of schema.org, which is the vocabulary."""
    terms = {"name", "description", "version", "license", "url", "creator", "datePublished", "inLanguage", "keywords",
             "isBasedOn", "distribution", "contentUrl", "contentSize", "encodingFormat", "sha256"}  # fmt: skip

    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return {*value}.union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    used = keys({name: value for name, value in described.items() if name != "@context"})
    assert {key for key in used if key[0] != "@" and ":" not in key} <= terms | described[
        "@context"
    ].keys()
    assert {key.partition(":")[0] for key in used if ":" in key} == {"rai"}
