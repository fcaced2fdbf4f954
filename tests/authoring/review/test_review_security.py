"""A real server on this machine, and everything that should not get in."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.review_server import ReviewServer, review_benchmark, reviewing

pytest.importorskip("starlette", reason="needs the extra review")
pytest.importorskip("uvicorn", reason="needs the extra review")

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    folder = review_benchmark(tmp_path_factory.mktemp("guarded"), 3)
    (folder / "secret.txt").write_text("secret")
    (folder.parent / "outside.txt").write_text("outside")
    with reviewing(folder) as running:
        yield running


def accept(server: ReviewServer, number: int = 1, **changes: Any) -> dict[str, Any]:
    row = server.index()["samples"][0]
    made = {
        "id": f"{number:08x}",
        "sample": row["id"],
        "content": row["content"],
        "reviewer": "Ada",
    }
    return made | {"verdict": "accept"} | changes


def lines(server: ReviewServer) -> list[str]:
    path = Path(server.said.partition("decisions go to ")[2].splitlines()[0])
    return path.read_text().splitlines()


def test_nothing_is_seen_and_stored_without_the_secret_path(server: ReviewServer):
    made, before, root = accept(server), lines(server), server.root
    for server.root in ("", "/x", root[:-1], root.swapcase()):
        for path in (
            "/",
            "/index",
            "/sample/rows-0001",
            "/picture/rows-0001/image_1.png",
            "/static/main.js",
        ):
            reply = server.ask(path)
            assert reply.status == 403
            assert b"rows-0001" not in reply.body
        assert server.post(made).status == 403
    server.root = root
    assert server.ask("/").status == server.ask("/index").status == 200
    assert lines(server) == before


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", "", None],
)
def test_a_name_that_was_made_to_point_here_is_refused(server: ReviewServer, host: str | None):
    reply = server.ask("/index", Host=host.format(port=server.port) if host else host)
    assert reply.status in (400, 403)
    assert b"rows-0001" not in reply.body
    assert server.ask("/index", Host=f"localhost:{server.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}, {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
    ],
)  # fmt: skip
def test_a_decision_that_another_page_sends_is_not_stored(
    server: ReviewServer, headers: dict[str, str | None]
):
    before = lines(server)
    assert server.post(accept(server), **headers).status in (403, 415)
    assert lines(server) == before


def test_a_decision_from_the_page_is_stored_before_it_is_answered(server: ReviewServer):
    before = len(lines(server))
    assert server.post(accept(server, 77)).data["saved"] is True
    stored = lines(server)
    assert len(stored) == before + 1
    assert '"verdict":"accept"' in stored[-1]
    assert server.post(accept(server, 77)).status == 200
    assert lines(server) == stored


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"verdict": "reject"}, 422), ({"verdict": "edit", "reason": "x", "edits": {}}, 422),
        ({"verdict": "edit", "reason": "x", "edits": {"slots": {"none": {"label": "y"}}}}, 422),
        ({"verdict": "edit", "reason": "x", "edits": {"slots": {"green": {"abs_tol": -1}}}}, 422),
        ({"verdict": "maybe"}, 422), ({"extra": 1}, 422), ({"sample": "../rows-0001"}, 404),
        ({"reviewer": " "}, 422), ({"reviewer": "a\nb"}, 422),
        ({"content": "f" * 16}, 409), ({"reason": "x" * 70_000}, 413),
    ],
)  # fmt: skip
def test_a_decision_that_makes_no_sense_is_refused_with_a_reason(server, change, status):
    before = lines(server)
    reply = server.post(accept(server, 5, **change))
    assert reply.status == status
    assert reply.data["error"]
    assert lines(server) == before
    assert server.post(b"{not json").status == 422


@pytest.mark.parametrize(
    "path",
    [
        "/picture/rows-0001/../../secret.txt", "/picture/rows-0001/..%2f..%2fsecret.txt",
        "/original/rows-0001/%2e%2e%2fbenchmark.toml", "/original/..%2fguarded/secret.txt",
        "/original/rows-0001/files%2f1.png", "/original/rows-0001/%2fetc%2fpasswd",
        "/original/rows-0001/secret.txt", "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py",
        "/artifact/rows-0001/1/..%2f..%2fsecret.txt", "/artifact/rows-0001/99/x.png",
        "/picture/rows-0001/image_1.png?size=9999999", "//etc/passwd",
    ],
)  # fmt: skip
def test_files_go_out_by_sample_and_name_only(server: ReviewServer, path: str):
    reply = server.ask(path)
    assert reply.status == 404
    for secret in (b"secret\n", b"root:", b"licence =", b"import"):
        assert secret not in reply.body


def test_every_answer_forbids_foreign_scripts_frames_and_guessed_types(server: ReviewServer):
    for path, kind in (
        ("/", "text/html"),
        ("/index", "application/json"),
        ("/sample/rows-0001", "text/html"),
        ("/picture/rows-0001/image_1.png", "image/jpeg"),
        ("/original/rows-0001/image_1.png", "image/png"),
        ("/static/main.js", "text/javascript"),
        ("/nothing", "application/json"),
    ):
        reply = server.ask(path)
        assert reply.headers["content-type"].startswith(kind), path
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert (reply.headers["x-content-type-options"], reply.headers["x-frame-options"]) == (
            "nosniff",
            "DENY",
        )
        assert "access-control-allow-origin" not in reply.headers
    assert (
        server.ask("/original/rows-0001/image_1.png")
        .headers["content-disposition"]
        .startswith("attachment")
    )
    page = server.ask("/").body
    assert b"onclick" not in page
    assert b"<style" not in page
    assert page.count(b"<script") == page.count(b'<script type="module" src="static/main.js">') == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None}, {"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"},
        {"Content_Type": "text/plain"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/editor/work", "/editor/run", "/editor/save"])
def test_no_other_page_can_run_a_tool_or_change_a_sample(
    server: ReviewServer, path: str, headers: dict[str, str | None]
):
    trial = {"key": "rows-0001", "written": {"steps": [{"tool": "describe_region"}]}}
    sent: dict[str, str | None] = {"Origin": server.base, "Content_Type": "application/json"}
    reply = server.ask(path, method="POST", body=trial, **{**sent, **headers})
    assert reply.status in (403, 415)
    root, server.root = server.root, "/x"
    assert server.ask(path, method="POST", body=trial, **sent).status == 403
    server.root = root


@pytest.mark.parametrize(
    ("written", "key", "status"),
    [
        ({"steps": [{"tool": "calculate", "arguments": {}}] * 100}, "rows-0001", 422),
        ({"files": [{"sample": "rows-0001", "name": "../secret.txt", "as": "a.png"}]}, "new-1", 422),
        ({"files": [{"sample": "rows-0001", "name": "image_1.png", "as": "../a.png"}]}, "new-1", 422),
        ({"query": "x" * 300_000}, "rows-0001", 413),
        ({"unknown": 1}, "rows-0001", 422),
        ({}, "rows-9999", 404),
        ({"steps": [{"tool": "calculate", "arguments": {"expression": {"$ref": "steps[3].observation.a"}}}]},
         "rows-0001", 422),
    ],
)  # fmt: skip
def test_a_run_that_makes_no_sense_is_refused_with_a_reason(
    server: ReviewServer, written: dict[str, Any], key: str, status: int
):
    body = {"key": key, "written": written}
    sent: dict[str, str | None] = {"Origin": server.base, "Content_Type": "application/json"}
    reply = server.ask("/editor/run", method="POST", body=body, **sent)
    assert reply.status == status
    assert reply.data["error"]
    assert b"Traceback" not in reply.body


def test_a_tool_reads_no_file_but_those_of_the_sample(server: ReviewServer):
    calls = [
        {"tool": "describe_region", "arguments": {"image": name}}
        for name in ("/etc/passwd", "../secret.txt", "files/2.png")
    ]
    calls.append({"tool": "run_code", "arguments": {"code": "1"}})
    body = {"key": "rows-0001", "written": {"steps": calls}}
    sent: dict[str, str | None] = {"Origin": server.base, "Content_Type": "application/json"}
    reply = server.ask("/editor/run", method="POST", body=body, **sent)
    assert reply.status == 200
    assert all(step["error"] and not step["result"] for step in reply.data["steps"])
    assert b"Traceback" not in reply.body


def test_other_methods_do_nothing(server: ReviewServer):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert server.ask("/decisions", method=method, Origin=server.base).status in (403, 405)
    assert server.ask("/decisions", method="GET").status == 405


def test_only_this_machine_can_connect(server: ReviewServer):
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    places = [line.split()[1] for line in listening if line.split()[3] == "0A"]
    assert [each for each in places if each.endswith(f":{server.port:04X}")] == [
        f"0100007F:{server.port:04X}"
    ]
