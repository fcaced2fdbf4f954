"""A page made for sharing holds no places, folders or file names of its owner, and says what was removed."""

from pathlib import Path

import pytest

from agrotools.core import Observation, SampleFile
from agrotools.report.html import build_report
from agrotools.report.html.sharing import Scrubber
from support.made_runs import call, end_to_end, keep, made_sample, write_files, write_run
from support.report_page import read_report

SECRETS = ("Miller_farm_north.JPG", "52.51632", "13.37771", "/home/miller", "nas.miller.example", "48°51")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    file = SampleFile(name=SECRETS[0], path="files/s1.jpg", kind="image", note="taken at 52.51632, 13.37771")
    sample = made_sample(
        query=f"What grows in {SECRETS[0]} near 48°51′N? See /home/miller/fields/map.txt", files=(file,)
    )
    write_files(tmp_path, [sample])
    run = tmp_path / "run"
    table = keep(run, b"plant,lat,lon\nmaize,52.51632,13.37771\n", "plants.csv", "table")
    seen = {"value": 6, "lat": 52.51632, "where": {"gps": [52.51632, 13.37771]}, "source": SECRETS[0]}
    step = call("2*3", observation=Observation(result=seen, artifacts=(table,)))
    answer = f"rows: 7, from {SECRETS[0]}, http://nas.miller.example/fields"
    return write_run(run, [end_to_end(sample, step, answer=answer)], base_url="http://nas.miller.example:8000/v1")


def test_a_shared_page_names_no_place_folder_or_file(run: Path, tmp_path: Path):
    plain = read_report(build_report([run], tmp_path / "plain.html").path)
    assert all(secret in plain.everything for secret in SECRETS)
    written = build_report([run], tmp_path / "shared.html", share=True)
    page = read_report(written.path)
    assert [secret for secret in (*SECRETS, str(tmp_path)) if secret in page.everything + page.text] == []
    (detail,) = page.details
    assert detail["files"][0]["name"] == "file_1.JPG"
    assert detail["steps"][0]["result"]["source"] == "file_1.JPG"
    assert detail["steps"][0]["result"]["value"] == 6
    assert detail["steps"][0]["files"][0]["rows"][1] == ["maize", "", ""]
    assert detail["answer"].startswith("rows: 7, from file_1.JPG")
    assert page.head["shared"] == [written.removed]
    assert {"file name", "coordinate", "path", "address"} <= {
        word for word in ("file name", "coordinate", "path", "address") if word in written.removed
    }


@pytest.mark.parametrize(
    "text",
    [
        "rows: 7 of 8",
        "8.9 % and 12.1 %",
        "and/or",
        "1/2",
        "0.51, 0.62",
        "image_1.jpg",
        "a: 3/4 b",
        "</td></tr>",
        "km/h",
    ],
)
def test_what_tells_no_place_stays(text: str):
    assert Scrubber().text(text, Scrubber.new_names(["image_1.jpg"])) == text
