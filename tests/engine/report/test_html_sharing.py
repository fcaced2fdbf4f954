"""A page made for sharing holds no places, folders or file names of its owner, and says what was removed."""

from pathlib import Path

import pytest

from agrotools.core import Observation, SampleFile
from agrotools.report.html import build_report
from agrotools.report.html.sharing import Scrubber
from support.made_runs import call, end_to_end, keep, made_sample, write_files, write_run
from support.report_page import read_report

SECRETS = (
    "Miller_farm_north",
    "miller-run",
    "52.51632",
    "13.37771",
    "/home/miller",
    "nas.miller.example",
    "48°51",
)


NAME = "Miller_farm_north.JPG"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    file = SampleFile(
        name=NAME, path="files/s1.jpg", kind="image", note="taken at 52.51632, 13.37771"
    )
    sample = made_sample(
        query=f"What grows in {NAME} near 48°51′N? See /home/miller/fields/map.txt", files=(file,)
    )
    write_files(tmp_path, [sample])
    run = tmp_path / "miller-run"
    table = keep(run, b"plant,lat,lon\nmaize,52.51632,13.37771\n", "plants.csv", "table")
    seen = {"value": 6, "lat": 52.51632, "where": {"gps": [52.51632, 13.37771]}, "source": NAME}
    step = call("2*3", observation=Observation(result=seen, artifacts=(table,)))
    answer = f"rows: 7, from {NAME}, http://nas.miller.example/fields"
    return write_run(
        run, [end_to_end(sample, step, answer=answer)], base_url="http://nas.miller.example:8000/v1"
    )


def test_a_shared_page_names_no_place_folder_or_file(run: Path, tmp_path: Path):
    plain = read_report(build_report([run], tmp_path / "plain.html").path)
    assert all(secret in plain.everything for secret in SECRETS)
    written = build_report([run], tmp_path / "shared.html", share=True)
    page = read_report(written.path)
    assert [
        secret for secret in (*SECRETS, str(tmp_path)) if secret in page.everything + page.text
    ] == []
    (detail,) = page.details
    assert (detail["files"][0]["name"], detail["steps"][0]["result"]["source"]) == (
        "file_1.JPG",
        "file_1.JPG",
    )
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
        "rows: 7 of 8", "8.9 % and 12.1 %", "and/or", "1/2", "0.51, 0.62",
        "y: [[0.4412, 0.887099], [-0.0312, 0.9999]]", "image_1.jpg", "a: 3/4 b", "</td></tr>", "km/h",
        "12345+67 and 22+33", "overlay.png and count_objects-2.png", "3.25 N and 12.50 W", "5 E 3",
        "1.234, 5.678", "at 10:20:30 of 3:15", "about 3.5 ha, i.e. most of it", "Breite 12,5 m",
        "the secret place: none",
    ],
)  # fmt: skip
def test_what_tells_no_place_stays(text: str):
    assert Scrubber().text(text, Scrubber.new_names(["image_1.jpg"])) == text


@pytest.mark.parametrize(
    "text",
    [
        "seen in /home/alice/Secret place/photo.jpg and C:\\Users\\bob\\Secret\\x.jpg", "POINT(8.567 47.123)",
        "lat=47.123 lon=8.567", "latitude: 47.12345\nlongitude: 8.56789", "UTM 32N 465123 5218456",
        "32T 465123 5218456", "32TMT 65123 18456", "8FVC9G8F+6X", "N47.1234 E8.5678", "47.12 N, 8.56 E",
        "47,12345; 8,56789", "812.12345, 47.12345, 8.56789", "47° 07.407' N", "192.168.3.7:8000",
        "secret-host.local:9000", "alice@secretmail.example", "s3://secretbucket/a",
        "\\\\SECRETNAS\\share\\f.tif", "sftp://bob@host/a/b", "HTTP://HOST/x", "file:/home/bob/x", "./home/bob/x",
        "~/farm", "~alice/farm", "fields/north_plot/IMG_3.JPG", "%2Fhome%2Falice%2Ffields",
        "alice@gpu17:/scratch/alice", "git@host.example:alice/fields.git", "gpu-node-17.cluster.secretuni.edu",
        "greenacres-farm.co.uk", "2001:db8::5ec:1", "sk-proj-abcdefghijklmnop", "hf_abcdefghijklmnopqr",
        "Bearer abcdefghij.klmnop", "OPENAI_API_KEY=abcdefgh", "Breitengrad 52,1234", "纬度 52.1235",
        '{\\"latitude\\": \\"52.123456\\"', "391779.25 5773325.75", "left=391779.0", "52\\u00b007'24.4\\\"N",
        "Secretfarm_47.1234N_8.5678E_0.jpg",
    ],
)  # fmt: skip
def test_what_tells_a_place_goes(text: str):
    words = [word for word in ("and", "seen in", "latitude", "longitude") if word in text]
    shown = Scrubber().text(text)
    assert "removed]" in shown
    for word in (*words, "[address removed]", "[coordinate removed]", "[path removed]", "[file name removed]",
                 "[key removed]"):  # fmt: skip
        shown = shown.replace(word, "")
    assert not any(letter.isalnum() for letter in shown), shown


def test_a_drawing_goes_with_the_texts_of_its_call_and_a_map_with_its_values():
    def step(**arguments: object) -> dict[str, object]:
        file = {"name": "plot.png", "kind": "plot", "picture": "p1", "shown": [9, 9], "how": ""}
        return {
            "call": arguments,
            "args": [],
            "plain": [["lat", "52.1235"]],
            "result": {"x": [13.6, 13.7]},
            "files": [file],
        }

    scrubber = Scrubber()
    plain = scrubber.step(step(title="Trees of plot 3", x_label="rows"), {})
    assert "picture" in plain["files"][0]
    assert plain["plain"] == [["lat", "[coordinate removed]"]]
    for arguments in (
        {"title": "Field at 52.12345, 13.65432"},
        {"title": "Trees", "x_label": "lon (deg)"},
    ):
        told = scrubber.step(step(**arguments), {})
        assert "picture" not in told["files"][0]
        assert (told["result"] is None) == ("x_label" in arguments)
    assert "2 drawings" in scrubber.summary()


@pytest.mark.parametrize(
    "part", ["a", "a-", "a.", "a/", "/a", "a@", "0a:", "~", "1", "1.2 ", "%2F"]
)
def test_a_long_word_of_a_model_does_not_stop_the_report(part: str):
    text = part * (200_000 // len(part))  # with time of its square, hours
    assert Scrubber().text(text) == ("[path removed]" if part == "/a" else text)
