"""A real server on this machine, and everything that should not get in."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.review_server import ReviewServer, review_benchmark, reviewing

pytest.importorskip("starlette", reason="needs the extra review")
pytest.importorskip("uvicorn", reason="needs the extra review")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    folder = review_benchmark(tmp_path_factory.mktemp("guarded"), 3)
    (folder / "secret.txt").write_text("secret")
    (folder.parent / "outside.txt").write_text("outside")
    with reviewing(folder) as running:
        yield running


@pytest.fixture
def entered(server: ReviewServer) -> ReviewServer:
    if not server.cookie:
        server.enter()
    return server


def accept(server: ReviewServer, number: int = 1, **changes: Any) -> dict[str, Any]:
    row = server.index()["samples"][0]
    made = {
        "id": f"{number:08x}",
        "sample": row["id"],
        "content": row["content"],
        "reviewer": "Ada",
        "verdict": "accept",
    }
    return made | changes


def lines(server: ReviewServer) -> list[str]:
    path = Path(server.said.partition("decisions go to ")[2].splitlines()[0])
    return path.read_text().splitlines()


def test_the_token_opens_once_and_nothing_is_seen_without_the_session(server: ReviewServer):
    for path in (
        "/",
        "/index",
        "/sample/rows-0001",
        "/picture/rows-0001/image_1.png",
        "/original/rows-0001/image_1.png",
    ):
        reply = server.ask(path, Cookie=None)
        assert reply.status == 401
        assert b"rows-0001" not in reply.body
    assert server.ask("/?token=wrong", Cookie=None).status == 403
    opened = server.enter() if not server.cookie else None
    if opened:
        assert opened.status == 200
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert server.token not in cookie
    assert server.ask("/").status == 200
    again = server.ask(f"/?token={server.token}", Cookie=None)
    assert again.status == 403
    assert "set-cookie" not in again.headers
    assert server.ask("/index", Cookie="agrotools_review_1=x").status == 401


def test_enter_prints_a_new_address_and_the_session_that_it_opens_ends_the_one_before(tmp_path: Path):
    terminal, of_command = os.openpty()
    with reviewing(review_benchmark(tmp_path, 1), stdin=of_command) as server:

        def press_enter() -> str:
            os.write(terminal, b"\n")
            return next(line for line in server.process.stdout if "/?token=" in line).partition("/?token=")[2].strip()

        server.enter()
        old, csrf = server.cookie, server.index()["csrf"]
        tokens = [server.token, press_enter(), press_enter()]
        assert len(set(tokens)) == 3
        for token in tokens[:2]:
            assert server.ask(f"/?token={token}", Cookie=None).status == 403
        assert server.ask("/index").status == 200  # nothing ends before the new address is opened
        server.token = tokens[2]
        server.cookie = ""
        assert server.enter().status == 200
        assert server.ask(f"/?token={tokens[2]}", Cookie=None).status == 403
        assert server.ask("/index").status == 200
        for path in ("/index", "/sample/rows-0001", "/picture/rows-0001/image_1.png"):
            assert server.ask(path, Cookie=old).status == 401
        assert server.post(accept(server), Cookie=old).status == 401
        assert server.post(accept(server), Cookie=old, X_Review_Session=csrf).status == 403
    os.close(terminal)
    os.close(of_command)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", "", None]
)
def test_a_name_that_was_made_to_point_here_is_refused(entered: ReviewServer, host: str | None):
    reply = entered.ask("/index", Host=host.format(port=entered.port) if host else host)
    assert reply.status in (400, 403)
    assert b"rows-0001" not in reply.body
    assert entered.ask("/index", Host=f"localhost:{entered.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
        {"X_Review_Session": None}, {"X_Review_Session": "0" * 64}, {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"}, {"Cookie": None}, {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
    ],
)  # fmt: skip
def test_a_decision_that_another_page_sends_is_not_stored(entered: ReviewServer, headers: dict[str, str | None]):
    before = lines(entered)
    assert entered.post(accept(entered), **headers).status in (401, 403, 415)
    assert lines(entered) == before


def test_a_decision_from_the_page_is_stored_before_it_is_answered(entered: ReviewServer):
    before = len(lines(entered))
    assert entered.post(accept(entered, 77)).data["saved"] is True
    stored = lines(entered)
    assert len(stored) == before + 1
    assert '"verdict":"accept"' in stored[-1]
    assert entered.post(accept(entered, 77)).status == 200
    assert lines(entered) == stored


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"verdict": "reject"}, 422), ({"verdict": "edit", "reason": "x", "edits": {}}, 422),
        ({"verdict": "edit", "reason": "x", "edits": {"slots": {"none": {"label": "y"}}}}, 422),
        ({"verdict": "edit", "reason": "x", "edits": {"slots": {"green": {"abs_tol": -1}}}}, 422),
        ({"verdict": "maybe"}, 422), ({"extra": 1}, 422), ({"sample": "../rows-0001"}, 404),
        ({"content": "f" * 16}, 409), ({"reason": "x" * 70_000}, 413),
    ],
)  # fmt: skip
def test_a_decision_that_makes_no_sense_is_refused_with_a_reason(entered, change, status):
    before = lines(entered)
    reply = entered.post(accept(entered, 5, **change))
    assert reply.status == status
    assert reply.data["error"]
    assert lines(entered) == before
    assert entered.post(b"{not json").status == 422


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
def test_files_go_out_by_sample_and_name_only(entered: ReviewServer, path: str):
    reply = entered.ask(path)
    assert reply.status == 404
    for secret in (b"secret\n", b"root:", b"licence =", b"import"):
        assert secret not in reply.body


def test_every_answer_forbids_foreign_scripts_frames_and_guessed_types(entered: ReviewServer):
    for path, kind in (
        ("/", "text/html"),
        ("/index", "application/json"),
        ("/sample/rows-0001", "text/html"),
        ("/picture/rows-0001/image_1.png", "image/jpeg"),
        ("/original/rows-0001/image_1.png", "image/png"),
        ("/static/main.js", "text/javascript"),
        ("/nothing", "application/json"),
    ):
        reply = entered.ask(path)
        assert reply.headers["content-type"].startswith(kind), path
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert (reply.headers["x-content-type-options"], reply.headers["x-frame-options"]) == ("nosniff", "DENY")
        assert "access-control-allow-origin" not in reply.headers
    assert entered.ask("/original/rows-0001/image_1.png").headers["content-disposition"].startswith("attachment")
    page = entered.ask("/").body
    assert b"onclick" not in page
    assert b"<style" not in page
    assert page.count(b"<script") == page.count(b'<script type="module" src="/static/main.js">') == 1


def test_other_methods_do_nothing(entered: ReviewServer):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert entered.ask("/decisions", method=method, Origin=entered.base).status in (403, 405)
    assert entered.ask("/decisions", method="GET").status == 405


def test_only_this_machine_can_connect(entered: ReviewServer):
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    own = [
        line.split()[1]
        for line in listening
        if line.split()[1].endswith(f":{entered.port:04X}") and line.split()[3] == "0A"
    ]
    assert own == [f"0100007F:{entered.port:04X}"]
