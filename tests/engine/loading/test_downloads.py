"""Downloads of benchmarks: complete, interrupted, corrupted, missing, refused, offline, from mirrors of two layouts."""

import hashlib
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from agrotools.core import BENCHMARKS, BenchmarkError, InfrastructureError, UsageError
from agrotools.loading import obtaining
from agrotools.loading.benchmarks import load_benchmark
from agrotools.loading.downloads import (
    Downloader,
    Item,
    MissingFile,
    Patience,
    failure_lines,
    git_sha1_of,
)
from agrotools.loading.obtaining import LICENCES_FILE, Request, list_benchmarks, obtain, unpack
from agrotools.plugin import BenchmarkFiles, BenchmarkPlugin, Download
from support.caches import separate_cache
from support.command import run_command
from support.file_server import serving
from support.made_agrieval import write_agrieval

pytestmark = pytest.mark.process

HURRY = Patience(timeout_s=5, attempts=3, first_wait_s=0.01, longest_wait_s=0.02)
CONTENT = {f"rows/{number} é.bin": bytes([number]) * (5_000 + number) for number in range(6)}


@pytest.fixture
def served(tmp_path):
    for name, content in CONTENT.items():
        for place in ("raw.example.org/owner/repo/c0ffee", "media.example.org/owner/repo/c0ffee"):
            (path := tmp_path / "web" / place / name).parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    with serving(tmp_path / "web") as server:
        yield server


def _items() -> list[Item]:
    hosts = ("https://raw.example.org", "https://media.example.org")
    items: list[Item] = []
    for name, content in CONTENT.items():
        urls = tuple(
            f"{host}/owner/repo/c0ffee/{name.replace(' ', '%20').replace('é', '%C3%A9')}"
            for host in hosts
        )
        items.append(
            Item(name, urls, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
        )
    return items


def _fetch(server, folder: Path) -> list[MissingFile]:
    return Downloader(folder, server.url, HURRY).fetch(_items())


def _whole(folder: Path) -> bool:
    return all((folder / name).read_bytes() == content for name, content in CONTENT.items())


@pytest.mark.parametrize("layout", ["raw.example.org/owner", "owner", "local"])
def test_a_mirror_may_be_a_folder_of_any_layout(served, tmp_path, layout):
    mirror = tmp_path / "mirror"
    (mirror / layout).parent.mkdir(parents=True)
    source = served.root / "raw.example.org/owner"
    (mirror / layout).symlink_to(source / "repo/c0ffee" if layout == "local" else source)
    items = [item._replace(mirrored=(f"local/{item.path}",)) for item in _items()]
    assert Downloader(tmp_path / "out", str(mirror), HURRY).fetch(items) == []
    assert _whole(tmp_path / "out")
    with pytest.raises(UsageError, match="there is no folder"):
        Downloader(tmp_path, str(tmp_path / "nowhere"))


@pytest.mark.parametrize("left", ["cut", "half", "all", "wrong", "too much"])
def test_a_cut_or_killed_download_is_continued(served, tmp_path, left):
    name, content = next(iter(CONTENT.items()))
    if left == "cut":
        path = f"raw.example.org/owner/repo/c0ffee/{name}"
        served.faults[path] = ["cut"]
        assert _fetch(served, tmp_path / "out") == []
        assert _whole(tmp_path / "out")
        assert (path, f"bytes={len(content) // 2}-") in served.requests
        return
    (part := tmp_path / "out" / f"{name}.part").parent.mkdir(parents=True)
    part.write_bytes(
        {"half": content[:100], "all": content, "wrong": b"?" * 100, "too much": content * 2}[left]
    )
    assert _fetch(served, tmp_path / "out") == []
    assert _whole(tmp_path / "out")


@pytest.mark.parametrize("fault", [429, 503, "other", "pointer"])
def test_a_passing_fault_or_a_pointer_is_overcome(served, tmp_path, fault):
    for name in CONTENT:
        served.faults[f"raw.example.org/owner/repo/c0ffee/{name}"] = [fault]
    assert _fetch(served, tmp_path / "out") == []
    assert _whole(tmp_path / "out")


@pytest.mark.parametrize(
    ("fault", "reason"), [(429, "refused"), ("other", "differs"), ("cut", "unreachable")]
)
def test_a_file_that_cannot_be_had_is_reported_and_the_others_come(served, tmp_path, fault, reason):
    name = next(iter(CONTENT))
    for place in ("raw.example.org/owner", "media.example.org/owner"):
        served.always[f"{place}/repo/c0ffee/{name}"] = fault
    failures = _fetch(served, tmp_path / "out")
    assert [(each.path, each.reason) for each in failures] == [(name, reason)]
    assert not (tmp_path / "out" / name).exists()
    assert len([*(tmp_path / "out" / "rows").glob("*.bin")]) == len(CONTENT) - 1
    assert name in "\n".join(failure_lines(failures))
    served.always.clear()
    assert _fetch(served, tmp_path / "out") == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [("endless", "larger than the expected 5,0"), ("slow", "slower than 1 kB/s")],
)
def test_a_file_without_end_is_given_up(served, tmp_path, fault, message):
    name = next(iter(CONTENT))
    for place in ("raw.example.org/owner", "media.example.org/owner"):
        served.always[f"{place}/repo/c0ffee/{name}"] = fault
    (failure,) = Downloader(tmp_path / "out", served.url, replace(HURRY, timeout_s=0.3)).fetch(
        _items()
    )
    assert message in failure.detail
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*.part")) < 10_000


def test_a_mirror_of_devices_and_large_files_is_refused(tmp_path):
    (mirror := tmp_path / "mirror" / "rows").mkdir(parents=True)
    items = [item._replace(mirrored=(item.path,)) for item in _items()]
    (mirror / Path(items[0].path).name).symlink_to("/dev/zero")
    (mirror / Path(items[1].path).name).write_bytes(bytes(100_000))
    failures = {
        each.path: each
        for each in Downloader(tmp_path / "out", str(tmp_path / "mirror"), HURRY).fetch(items)
    }
    assert failures[items[0].path].detail.endswith("is not a regular file")
    assert "is larger than expected (100,000 bytes)" in failures[items[1].path].detail


@pytest.mark.parametrize("fault", [500, 429, "cut"])
def test_a_server_that_gives_nothing_is_given_up_and_the_progress_says_why(served, tmp_path, fault):
    many = [
        item._replace(path=f"{number}/{item.path}") for number in range(20) for item in _items()
    ]
    served.always["*"] = fault
    shown: list[str] = []
    fetch = Downloader(tmp_path / "out", served.url, HURRY).fetch
    if fault == 429:
        assert {each.reason for each in fetch(many, lambda what, *_: shown.append(what))} <= {
            "refused",
            "unreachable",
        }
    else:
        with pytest.raises(InfrastructureError, match="no file could be downloaded"):
            fetch(many, lambda what, *_: shown.append(what))
    assert len(served.requests) < len(many)
    assert any("is given up" in what for what in shown)


def _write(path: Path, content: bytes | str | object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def _load(loading):
    raise BenchmarkError(f"loaded from {loading.data_root}")


def _find(root):
    if not (root / "made_set/questions.json").is_file():
        raise BenchmarkError("there is no made set")
    return root


@pytest.fixture
def hub(tmp_path):
    """A made-up benchmark at three kinds of addresses, below one mirror."""
    web = tmp_path / "web"
    for kind, address, into in (
        ("zip", "https://github.com/o/r/releases/download/v1/set.zip", ""),
        ("hub", "https://huggingface.co/datasets/o/n", "made_set"),
        ("tree", "https://github.com/o/r/tree/HEAD/Data", "made_set"),
    ):
        files = BenchmarkFiles("files", Download(address, "CC0", into), _find)
        BENCHMARKS.add(f"made-{kind}", BenchmarkPlugin(f"made-{kind}", _load, files=files))
    questions = _write(tmp_path / "q.json", [1, 2])
    (web / "github.com/o/r/releases/download/v1").mkdir(parents=True)
    with zipfile.ZipFile(web / "github.com/o/r/releases/download/v1/set.zip", "w") as archive:
        archive.write(questions, "made_set/questions.json")
        archive.writestr("__MACOSX/made_set/._questions.json", "x")
    sha1, size = git_sha1_of(questions), questions.stat().st_size
    pages = web / "huggingface.co/api/datasets/o/n/tree"
    _write(pages / "main", [{"type": "directory", "path": "image"}])
    _write(pages / "2", [{"type": "file", "path": "questions.json", "oid": sha1, "size": size}])
    _write(web / "huggingface.co/datasets/o/n/resolve/main/questions.json", questions.read_bytes())
    blob = {"type": "blob", "sha": sha1, "size": size}
    tree = [{**blob, "path": path} for path in ("Data/questions.json", "LICENSE", "other/x")]
    tree.append({"path": "Data", "type": "tree", "sha": "0"})
    _write(web / "api.github.com/repos/o/r/git/trees/HEAD", {"tree": tree})
    for name in ("Data/questions.json", "LICENSE"):
        _write(web / f"raw.githubusercontent.com/o/r/HEAD/{name}", questions.read_bytes())
    with serving(web) as server:
        next_page = "https://huggingface.co/api/datasets/o/n/tree/2?cursor=x"
        server.links["huggingface.co/api/datasets/o/n/tree/main"] = next_page
        yield server
    for kind in ("zip", "hub", "tree"):
        BENCHMARKS.remove(f"made-{kind}")


@pytest.mark.parametrize("kind", ["zip", "hub", "tree"])
def test_a_published_benchmark_is_put_where_its_loader_looks(hub, tmp_path, monkeypatch, kind):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    root, name = tmp_path / "cache/data", f"made-{kind}"
    assert obtain(name, Request(root, hub.url, patience=HURRY)).failures == []
    assert (root / "made_set/questions.json").read_text() == "[1, 2]"
    assert "CC0" in (root / LICENCES_FILE).read_text()
    assert (root / "made_set/LICENSE").is_file() == (kind == "tree")
    states = {row.name: row.state for row in list_benchmarks()}
    assert (states[name], states["gta"], states["embedded"]) == (
        "complete",
        "not downloaded",
        "found",
    )
    with pytest.raises(BenchmarkError, match=f"loaded from {root}"):
        load_benchmark(name)
    (root / "made_set/questions.json").unlink()
    assert {row.name: row.state for row in list_benchmarks()}[name] == "incomplete"


def test_the_list_tells_the_size_of_a_download_from_that_of_the_files_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    request = Request(tmp_path / "cache/data", str(nothing), quick=True, patience=HURRY)
    before = run_command("benchmarks", "list").stdout
    assert obtain("field", request).failures
    after = run_command("benchmarks", "list").stdout
    (whole,) = {line for line in before.splitlines() if "35 data sets (" in line}
    assert whole in after, "the size of the download stays"
    assert f"incomplete: {request.root} (0.0 MB there)" in after


def test_a_list_of_another_form_and_an_evil_archive_are_refused(hub, tmp_path):
    for more, message in (("", "not of the known form"), (', "oid": "0", "size": 1', "leads out")):
        page = hub.root / "huggingface.co/api/datasets/o/n/tree/2"
        page.write_text(f'[{{"type": "file", "path": "../x"{more}}}]')
        with pytest.raises(BenchmarkError, match=message):
            obtain("made-hub", Request(tmp_path / "out", hub.url, patience=HURRY))
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../evil.txt", "x")
    with pytest.raises(BenchmarkError, match="leads out"):
        unpack(tmp_path / "evil.zip")
    with pytest.raises(UsageError, match="no public address"):
        obtain("embedded", Request(tmp_path / "out"))


def test_eval_gets_a_published_benchmark_first_if_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []

    def obtained(name: str, request: obtaining.Request) -> obtaining.Obtained:
        asked.append(name)
        folder = write_agrieval(request.root, choices=30, questions=5)
        files = [path for path in folder.rglob("*") if path.is_file()]
        return obtaining.Obtained(files, [], [])

    monkeypatch.setattr(obtaining, "obtain", obtained)
    separate_cache(monkeypatch, tmp_path / "cache")
    command = (
        "eval",
        "agrieval",
        "--model",
        "baseline:guess",
        "--limit",
        "4",
        "--out",
        tmp_path / "run",
    )
    assert "benchmarks get agrieval" in run_command(*command).stderr
    assert not asked, "nothing is downloaded unasked"
    done = run_command(*command, "--get")
    assert (asked, done.returncode) == (["agrieval"], 0), done.stderr
