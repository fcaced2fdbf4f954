"""The report as a file: whole, safe, bounded, and with the numbers of the tables."""

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from agrotools.core import Observation, Record, RunStoreError, SampleFile, UsageError
from agrotools.report.html import build_report
from agrotools.report.html.pictures import Absent, Pictures, Places, benchmark_roots
from agrotools.report.tables import tables_text
from agrotools.runner.rescore import rescore
from agrotools.runner.store import read_manifest
from support.made_runs import (
    ATTACK,
    ATTACKS,
    call,
    end_to_end,
    hostile_run,
    keep,
    made_sample,
    picture,
    predicted,
    right,
    write_files,
    write_run,
)

VOID = {"meta", "link", "img", "input", "br", "hr", "line", "circle", "path"}


class Elements(HTMLParser):
    """Every element of a page with its attributes, the text of those that are not shown, and all shown text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.shown: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.raw.append((tag, dict(attrs), ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            tag, attributes, text = self.raw[-1]
            self.raw[-1] = (tag, attributes, text + data)
        else:
            self.shown.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page_of(*runs: Path, **options) -> tuple[str, Elements]:
    out = build_report(list(runs), runs[0].parent / "report.html", **options).path
    text = out.read_text(encoding="utf-8")
    return text, Elements(text)


def index_of(page: Elements) -> dict:
    return json.loads(next(text for _, attributes, text in page.raw if attributes.get("id") == "index"))


def write_two_runs(tmp_path: Path) -> tuple[Path, Path]:
    """Write runs on twelve samples: a model that is wrong on every third, and the oracle, wrong on the first."""
    samples = [made_sample(f"s{number:02}") for number in range(12)]
    write_files(tmp_path, samples)
    model = tmp_path / "model"
    overlay = keep(tmp_path / "oracle", picture((200, 30, 30), form="PNG"))
    wrong = [end_to_end(each, call("2*4"), call("plot()", 1), answer="rows: 8") for each in samples[::3]]
    rest = [right(each) for at, each in enumerate(samples) if at % 3]
    steps = [predicted(each, "2*3", "6 + 2") for each in samples]
    write_run(model, [*wrong, *rest, *steps], model="some-model")
    drawn = Observation(result={"value": 6.0, "overlay": "overlay.png"}, artifacts=(overlay,))
    best = [end_to_end(each, call("2*3", observation=drawn), call("6 + 1", 1)) for each in samples[1:]]
    lost = end_to_end(samples[0], call("2*3"), call("6 + 1", 1), answer="rows: 9")
    write_run(tmp_path / "oracle", [lost, *best], model="baseline:oracle", privileged=True)
    return model, tmp_path / "oracle"


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path]:
    return write_two_runs(tmp_path)


@pytest.fixture(scope="module")
def shared_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same runs, not to be changed."""
    return write_two_runs(tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def page_of_both(shared_runs: tuple[Path, Path]) -> tuple[str, Elements]:
    return page_of(*shared_runs)


def test_the_tables_hold_the_numbers_of_the_terminal(page_of_both, shared_runs):
    _, page = page_of_both
    shown = " ".join("".join(page.shown).split())
    text = tables_text([rescore(run).summary for run in shared_runs])
    numbers = set(re.findall(r"\d+\.\d", text))
    assert len(numbers) > 8
    assert {number for number in numbers if number not in shown} == set()
    assert "privileged" in shown
    assert "Minimum detectable difference" in shown


def test_intervals_are_drawn_with_the_ceiling_as_a_mark(page_of_both):
    _, page = page_of_both
    labels = [attributes["aria-label"] for attributes in page.of("svg") if attributes.get("role") == "img"]
    of_model = [label for label in labels if label.startswith("66.7 %")]
    assert of_model
    assert all(re.search(r"95 % interval \d+\.\d to \d+\.\d, ceiling 91\.7", label) for label in of_model)


def test_a_mode_with_too_many_invalid_records_gets_no_headline_and_no_drawing(tmp_path: Path):
    records = [right(made_sample(f"s{at}")) for at in range(12)]
    records.append(Record(sample=made_sample("lost"), mode="end-to-end", invalid="connection refused"))
    run = write_run(tmp_path / "run", records)
    _, page = page_of(run)
    shown = "".join(page.shown)
    assert "no score: more than 1 %" in shown
    assert "1 invalid (7.7 %): too many to report scores" in shown
    assert "connection refused" in shown
    assert not [each for each in page.of("svg") if each.get("role") == "img"]
    _, allowed = page_of(run, allow_invalid=True)
    assert [each for each in allowed.of("svg") if each.get("role") == "img"]


def test_the_policy_allows_the_two_blocks_of_the_page_and_nothing_else(page_of_both):
    text, page = page_of_both
    (policy,) = [each["content"] for each in page.of("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (block,) = [raw for name, attributes, raw in page.raw if name == tag and "type" not in attributes]
        digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert "unsafe" not in policy
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcset", "action")], tag
        address = attributes.get("src") or attributes.get("href") or ""
        assert address.startswith(("data:", "#")) or not address, (tag, address)
    assert not re.search(r"url\(|@import|https?://(?!127)", text)


def test_what_others_wrote_stands_there_as_text(tmp_path: Path):
    run = hostile_run(tmp_path / "run")
    harmless = page_of(write_run(tmp_path / "plain", [right(made_sample())]))[1]
    text, page = page_of(run)
    known = {tag for tag, _ in harmless.elements} | {"svg", "line", "circle", "path", "dl", "dt", "dd", "ul", "li", "p"}
    known |= {"table", "thead", "tbody", "tr", "th", "td", "section", "figure", "figcaption", "div", "h4", "h5", "ol"}
    assert {tag for tag, _ in page.elements} <= known
    assert not page.of("iframe")
    assert not page.of("base")
    assert len(page.of("meta")) == len(harmless.of("meta"))
    scripts = [attributes.get("type") for tag, attributes, _ in page.raw if tag == "script"]
    assert scripts.count(None) == 1
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    shown = "".join(page.shown)
    for attack in ATTACKS[:5]:
        assert shown.count(attack) > 10, attack
    assert "{{ 7 * 7 }}" in shown
    assert "\u202e" not in text
    assert "\u2028" not in text
    assert index_of(page)["parts"][0]["query"].startswith(ATTACK[:40])


def test_what_went_wrong_is_found_again_as_facets(page_of_both):
    parts = {(each["run"], each["mode"], each["sample"]): each for each in index_of(page_of_both[1])["parts"]}
    first = parts[0, "end-to-end", "s00"]
    assert first["facets"] == ["wrong argument", "tool limit"]
    assert (first["state"], first["value"]) == ("wrong", 0)
    assert parts[0, "end-to-end", "s03"]["facets"] == ["wrong argument"]
    assert parts[0, "end-to-end", "s01"]["facets"] == []
    assert parts[1, "end-to-end", "s00"]["facets"] == ["tool limit"]
    steps = parts[0, "step-by-step", "s00"]
    assert steps["facets"] == ["wrong argument"]
    assert steps["value"] == pytest.approx(2 / 3)


def test_calls_stand_beside_reference_calls_and_what_disagrees_is_marked(shared_runs):
    text, _ = page_of(shared_runs[0])
    part = re.sub(r"\s+", " ", text.split('<template id="d0">')[1].split("</template>")[0])
    assert '<tr class="wrong"><th scope="row"><span class="mark">✗</span> expression</th>' in part
    assert "<td>2*4</td><td>2*3" in part
    assert "off by 1" in part


def test_pictures_are_held_once_whichever_samples_show_them(page_of_both):
    _, page = page_of_both
    held = [attributes["id"] for _, attributes, _ in page.raw if attributes.get("type") == "text/plain"]
    used = [attributes["data-picture"] for attributes in page.of("img")]
    assert len(held) == len(set(held)) == 13  # twelve photos and one overlay
    assert set(used) == set(held)
    assert len(used) > 3 * len(held) - 3
    assert all(attributes["alt"] for attributes in page.of("img"))
    for _, attributes, raw in page.raw:
        if attributes.get("type") == "text/plain":
            assert re.fullmatch(r"data:image/(webp|png);base64,[A-Za-z0-9+/=]+", raw)


def test_a_page_without_the_benchmark_is_whole_and_says_so(two_runs, tmp_path: Path):
    shutil.rmtree(tmp_path / "benchmark")
    written = build_report(two_runs, tmp_path / "moved.html")
    assert written.missing_pictures == 12
    page = Elements(written.path.read_text(encoding="utf-8"))
    shown = "".join(page.shown)
    assert "12 images could not be embedded" in shown
    assert shown.count("image_1.jpg: not found on this machine") == 36
    assert len(index_of(page)["parts"]) == written.shown == 36


def test_a_benchmark_that_moved_is_found_by_data_root(two_runs, tmp_path: Path):
    (tmp_path / "benchmark").rename(tmp_path / "elsewhere")
    found = build_report(two_runs, tmp_path / "moved.html", data_root=tmp_path / "elsewhere")
    assert found.missing_pictures == 0


def test_a_run_is_shown_from_where_it_was_made(two_runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    manifest = read_manifest(two_runs[0]).model_copy(update={"benchmark_path": "benchmark"})
    monkeypatch.chdir("/")
    assert benchmark_roots(manifest, two_runs[0], None) == [(tmp_path / "benchmark").resolve()]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\xff\xd8\xff\xe0 cut", "damaged"),
        (picture((1, 2, 3))[:400], "damaged"),
        (b"<VRTDataset><SourceFilename>/etc/passwd</SourceFilename></VRTDataset>", "virtual raster"),
        (b"GIF89a" + b"\0" * 90, "GIF"),
    ],
)
def test_broken_and_hostile_picture_files_are_said_to_be(tmp_path: Path, content: bytes, reason: str):
    sample = made_sample()
    root = write_files(tmp_path, [sample])
    (root / "files" / "s1.jpg").write_bytes(content)
    run = write_run(tmp_path / "run", [right(sample)])
    _, page = page_of(run)
    assert reason in "".join(page.shown)


def test_only_the_files_of_the_record_are_shown(tmp_path: Path):
    root = write_files(tmp_path, [made_sample()])
    (tmp_path / "secret.jpg").write_bytes(picture((1, 2, 3)))
    (root / "files" / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    places = Places([])

    def found(path: str, sha256: str | None = None):
        return places.of_file(SampleFile(name="a.jpg", path=path, kind="image", sha256=sha256), [root.resolve()])

    assert isinstance(found("files/s1.jpg"), Path)
    assert found(str(tmp_path / "secret.jpg")) == Absent("not found on this machine")
    assert found("../secret.jpg") == Absent("not found on this machine")
    assert found("files/link.jpg") == Absent("not found on this machine")
    assert found("files/s1.jpg", "0" * 64) == Absent("altered since the run")


def test_artifacts_are_found_by_content_in_any_of_the_runs(tmp_path: Path):
    kept = keep(tmp_path / "b", picture((9, 9, 9), form="PNG"))
    places = Places([tmp_path / "a", tmp_path / "b"])
    assert isinstance(places.of_artifact(kept), Path)
    assert isinstance(places.of_artifact(kept.model_copy(update={"sha256": "../" * 20})), Absent)
    next((tmp_path / "b" / "artifacts").iterdir()).write_bytes(b"altered")
    assert isinstance(Places([tmp_path / "b"]).of_artifact(kept), Absent)


def test_pictures_keep_to_their_budget(tmp_path: Path):
    for number in range(8):
        noise = Image.effect_noise((900, 700), 90 + number).convert("RGB")
        noise.save(tmp_path / f"{number}.jpg", quality=95)
    pictures = Pictures(8, budget_bytes=200_000)
    shown = [
        pictures.of_file(SampleFile(name=f"{n}.jpg", path=f"{n}.jpg", kind="image"), tmp_path / f"{n}.jpg")
        for n in range(8)
    ]
    assert not [each for each in shown if isinstance(each, Absent)]
    assert pictures.bytes <= 200_000
    assert pictures.shrunk == 8
    assert {max(each.width_px, each.height_px) for each in shown} <= {320, 200, 120}
    roomy = Pictures(1, longest_px=480)
    one = roomy.of_file(SampleFile(name="0.jpg", path="0.jpg", kind="image"), tmp_path / "0.jpg")
    assert (one.width_px, roomy.shrunk) == (480, 0)


def test_drawings_are_shown_unless_they_could_keep_a_browser_busy(tmp_path: Path):
    plain, bomb = tmp_path / "a.svg", tmp_path / "b.svg"
    plain.write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    bomb.write_text('<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg>&a;</svg>')
    pictures = Pictures(2)
    first = keep(tmp_path / "run", plain.read_bytes(), "a.svg", "plot")
    assert not isinstance(pictures.of_artifact(first, plain), Absent)
    assert isinstance(pictures.of_artifact(first.model_copy(update={"sha256": "1" * 64}), bomb), Absent)


def test_what_is_left_out_is_said_with_how_to_get_it(shared_runs):
    _, page = page_of(shared_runs[0], samples=6)
    shown = "".join(page.shown)
    assert "6 of 24 records are shown" in shown
    assert "--samples 24" in shown
    assert "--image-px 1200" in shown
    assert str(shared_runs[0].parent / "benchmark") in shown
    parts = index_of(page)["parts"]
    assert {part["mode"] for part in parts} == {"end-to-end", "step-by-step"}
    assert [part["state"] for part in parts if part["mode"] == "end-to-end"] == ["wrong"] * 3
    assert "records are shown" not in "".join(page_of(shared_runs[0])[1].shown)


def test_given_summaries_are_what_the_tables_show(shared_runs, page_of_both):
    summaries = [rescore(run).summary for run in shared_runs]
    computed, given = page_of_both[0], page_of(*shared_runs, summaries=summaries)[0]
    assert computed == given


def test_runs_that_cannot_be_compared_are_said_to_differ(tmp_path: Path):
    one = write_run(tmp_path / "one", [right(made_sample())])
    other = write_run(tmp_path / "other", [right(made_sample())], benchmark_hash="other", prompt_hash="q")
    shown = "".join(page_of(one, other)[1].shown)
    assert "not comparable" in shown
    assert "different benchmark: h / other" in shown
    assert "different prompts: p / q" in shown
    assert "not comparable" not in "".join(page_of(one)[1].shown)


def test_runs_of_the_same_name_have_links_of_their_own(tmp_path: Path):
    runs = [write_run(tmp_path / place / "run 1", [right(made_sample())]) for place in ("a", "b")]
    assert [run["name"] for run in index_of(page_of(*runs)[1])["runs"]] == ["run-1", "run-1-2"]


def test_a_report_replaces_the_old_one_as_a_whole_or_not_at_all(tmp_path: Path):
    run = write_run(tmp_path / "run", [right(made_sample())])
    folder = tmp_path / "taken.html"
    folder.mkdir()
    with pytest.raises(RunStoreError, match="cannot write the report"):
        build_report([run], folder)
    with pytest.raises(RunStoreError, match="not a run folder"):
        build_report([tmp_path], tmp_path / "out.html")
    with pytest.raises(UsageError, match="there is no folder"):
        build_report([run], tmp_path / "new" / "out.html")
    with pytest.raises(RunStoreError, match="no finished sample"):
        build_report([write_run(tmp_path / "empty", [])], tmp_path / "out.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "run", "taken.html"]
    out = build_report([run], tmp_path / "out.html").path
    before = out.read_bytes()
    assert build_report([run], out).path.read_bytes() == before


def test_endless_text_is_cut(tmp_path: Path):
    sample = made_sample()
    steps = [call("9" * 200_000, thought="x" * 200_000) for _ in range(100)]
    run = write_run(tmp_path / "run", [end_to_end(sample, *steps, answer="y" * 500_000)])
    text, page = page_of(run)
    assert len(text) < 1_500_000
    assert "more characters" in text
    assert "more steps are not shown" in "".join(page.shown)
