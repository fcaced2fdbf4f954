"""Tool servers over HTTP: a session for each sample, no secret in a record, and failures that are never the model's."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agrotools.core import InfrastructureError, UsageError
from agrotools.served.tools import served_toolset
from support.bound_tools import find_tool
from support.http_tools import HttpServer, serving
from support.served_calls import called, opened, workspace

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server for the tests that leave it well."""
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


async def test_each_sample_has_a_session_of_its_own_that_ends_with_it(
    server: HttpServer, tmp_path: Path
):
    toolset = await served_toolset([server.url], [], find_tool)
    opened_before = len(server.requests("DELETE"))
    async with opened(toolset) as executor:
        samples = [workspace(tmp_path, f"sample{number}") for number in range(3)]
        for word in ("leaf", "root"):
            said = await asyncio.gather(
                *(called(executor, at, "remember", word=word) for at in samples)
            )
        assert [each.result for each in said] == [{"words": ["leaf", "root"]}] * 3
        await executor.end_sample(samples[0])
        ended = server.requests("DELETE")[opened_before:]
        assert len(ended) == 1
        again = await called(executor, samples[0], "remember", word="stem")
        assert again.result == {"words": ["stem"]}
    ended = server.requests("DELETE")[opened_before:]
    assert len({session for session, _ in ended}) == 4
    assert {status for _, status in ended} == {200}


@pytest.mark.parametrize("reply", ["events", "json"])
async def test_results_pictures_and_files_are_those_of_a_server_that_we_start(
    tmp_path: Path, reply: str
):
    environment = {"JSON_REPLIES": "yes"} if reply == "json" else {}
    with serving(tmp_path, **environment) as running:
        toolset = await served_toolset([running.url], [], find_tool)
        async with opened(toolset) as executor:
            at = workspace(tmp_path, "sample", 250)
            structured = await called(executor, at, "cover", image_path="leaf.jpg")
            assert structured.result == {"cover": 0.5}
            by_path = await called(executor, at, "segment", image_path="leaf.jpg")
            assert by_path.result == {"session_id": "session-1", "sessions": 1, "warnings": []}
            by_content = await called(executor, at, "size", image="leaf.jpg")
            assert by_content.result == {"bytes": 250}
            refused = await called(executor, at, "segment", image_path="leaf.jpg", threshold=900)
            assert refused.error is not None
            assert "threshold must be at most 255" in refused.error.message
            shown = await called(executor, at, "picture")
            assert [made.media_type for made in shown.artifacts] == ["image/png"]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("answer", {"status": 500}, "answered 500 Internal Server Error"),
        ("answer", {"status": 401}, "answered 401 Unauthorized"),
        ("answer", {"status": 404}, "answered 404 Not Found"),
        ("answer", {"status": 200, "content_type": "text/html"}, "text/html"),
        ("hang", {}, "did not answer within 3 s"),
    ],
)
async def test_an_answer_that_is_no_message_is_no_observation(
    server: HttpServer, tmp_path: Path, tool: str, arguments: dict[str, Any], words: str
):
    toolset = await served_toolset([server.url], [], find_tool)
    async with opened(toolset, timeout_s=3) as executor:
        at = workspace(tmp_path, "sample")
        for _ in range(2):  # the session stays broken
            with pytest.raises(InfrastructureError, match=words) as failed:
                await called(executor, at, tool, **arguments)
            assert failed.value.hint
        well = await called(executor, workspace(tmp_path, "next"), "cover", image_path="leaf.jpg")
        assert well.ok
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_server_that_dies_is_no_observation_and_leaves_no_task(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    with serving(tmp_path) as running:
        toolset = await served_toolset([running.url], [], find_tool)
        async with opened(toolset) as executor:
            idle = workspace(tmp_path, "idle")
            assert (await called(executor, idle, "cover", image_path="leaf.jpg")).ok
            with pytest.raises(InfrastructureError, match="broke off the call"):
                await called(executor, workspace(tmp_path, "sample"), "die")
            for at in (idle, workspace(tmp_path, "next")):
                for _ in range(2):
                    with pytest.raises(InfrastructureError, match=r"broke off|cannot be reached"):
                        await called(executor, at, "cover", image_path="leaf.jpg")
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert "Traceback" not in capfd.readouterr().err


async def test_a_token_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with serving(tmp_path, TOKEN="orchard-secret") as running:
        with pytest.raises(InfrastructureError, match="answered 401 Unauthorized"):
            await served_toolset([running.url], [], find_tool)
        with pytest.raises(UsageError, match="FIELD_TOKEN is not set"):
            await served_toolset([f"{running.url} Authorization=FIELD_TOKEN"], [], find_tool)
        monkeypatch.setenv("FIELD_TOKEN", "Bearer orchard-secret")
        address = f"{running.url} Authorization=FIELD_TOKEN"
        toolset = await served_toolset([address], [], find_tool)
        async with opened(toolset) as executor:
            found = await called(
                executor, workspace(tmp_path, "sample"), "cover", image_path="leaf.jpg"
            )
    assert found.ok
    assert toolset.uses[0].address == address
