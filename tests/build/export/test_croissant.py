import json
import logging

import pytest
from every_slot import HEADER, samples, write_every_slot

from agrotools.benchmarks import load_folder
from agrotools.build.export.folder import check_croissant, croissant
from agrotools.core.files import sha256_of_file

# Its JSON-LD library warns of itself.
pytestmark = pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_every_slot(tmp_path_factory.mktemp("croissant") / "benchmark")


@pytest.fixture(scope="module")
def described(folder):
    return json.loads((folder / "croissant.json").read_text())


def test_it_declares_croissant_1_1_and_the_rai_vocabulary(described):
    assert described["conformsTo"] == ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
    required = {
        "@context", "@type", "name", "description", "license", "url", "creator", "datePublished", "distribution",
    }  # fmt: skip
    assert required <= described.keys()
    assert (described["license"], described["version"]) == ("https://creativecommons.org/licenses/by/4.0/", "3.0.0")


def test_every_file_has_its_hash_and_size(folder, described):
    files = {file["contentUrl"]: file for file in described["distribution"]}
    shown = {file.path for sample in load_folder(folder).samples for file in sample.files}
    assert set(files) == {"benchmark.toml", "samples.jsonl", *shown}
    for path, file in files.items():
        assert file["sha256"] == sha256_of_file(folder / path)
        assert file["contentSize"] == f"{(folder / path).stat().st_size} B"
    assert len({file["@id"] for file in files.values()}) == len(files)
    assert not [file["@id"] for file in files.values() if " " in file["@id"]]


def test_the_rai_fields_say_what_the_header_can_vouch_for(folder, described):
    assert "Paddock" in described["rai:dataCollection"]
    assert any("57 % of samples are Orchard" in bias for bias in described["rai:dataBiases"])
    assert any("English and Chinese" in bias for bias in described["rai:dataBiases"])
    assert "duplicate: 2" in described["rai:dataCollectionMissingData"]
    for name in ("dataLimitations", "personalSensitiveInformation", "dataAnnotationProtocol", "dataUseCases"):
        assert described[f"rai:{name}"]
    drawn = croissant(folder, HEADER.model_copy(update={"synthetic": True}), samples(folder))
    assert drawn["description"].startswith("SYNTHETIC")
    assert any("Synthetic" in limit for limit in drawn["rai:dataLimitations"])
    own = {"rai": {"personalSensitiveInformation": ["A farmer's hand."], "nonsense": "x"}}
    said = croissant(folder, HEADER.model_copy(update={"metadata": own}), samples(folder))
    assert said["rai:personalSensitiveInformation"] == ["A farmer's hand."]
    assert "rai:nonsense" not in said


def test_mlcroissant_finds_no_fault_and_reads_the_records_offline(folder, monkeypatch, caplog):
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed (extra croissant)")
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("the network was asked"))
    with caplog.at_level(logging.WARNING):
        dataset = mlcroissant.Dataset(str(folder / "croissant.json"))
        records = list(dataset.records("samples"))
    issues = dataset.metadata.ctx.issues
    assert (issues.errors, issues.warnings, caplog.records) == (set(), set(), [])
    assert dataset.metadata.ctx.conforms_to.value == "http://mlcommons.org/croissant/1.1"
    assert dataset.metadata.data_biases
    assert dataset.metadata.personal_sensitive_information
    expected = load_folder(folder).samples
    assert [record["samples/id"].decode() for record in records] == [sample.id for sample in expected]
    assert [record["samples/query"].decode() for record in records] == [sample.query for sample in expected]
    assert [text.decode() for text in records[6]["samples/file_kinds"]] == ["raster", "mask", "table"]
    assert [text.decode() for text in records[0]["samples/files"]] == [file.path for file in expected[0].files]


def test_the_check_names_what_mlcroissant_finds(folder, tmp_path):
    pytest.importorskip("mlcroissant", reason="mlcroissant is not installed (extra croissant)")
    assert check_croissant(folder / "croissant.json") == []
    broken = json.loads((folder / "croissant.json").read_text())
    del broken["distribution"][0]["encodingFormat"]
    (tmp_path / "croissant.json").write_text(json.dumps(broken))
    assert any("encodingFormat" in line for line in check_croissant(tmp_path / "croissant.json"))
