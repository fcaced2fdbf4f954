"""``prompts.jsonl`` of a run folder, and ``agrotools explain --prompt``, which prints it."""

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from agrotools.cli import main
from agrotools.core import RunStoreError, ToolSpec
from agrotools.models import ImagePart, Message, TextPart
from agrotools.runner.prompts import PROMPTS_FILE, PromptLog, StoredPrompts, stored_image
from support.openai_server import Body, Endpoint, completion, serving

BENCHMARKS = Path(__file__).resolve().parents[2] / "golden" / "benchmarks"
KEY = "sk-never-to-be-stored"
CALL = {"expression": "2 + 3"}


def reply(body: Body) -> web.Response:
    """A tool call at first, and then the answer."""
    if any(message["role"] == "assistant" for message in body["messages"]):
        return completion("Thought: That is all.\nFinal Answer: 5 ü,\nin my own words")
    if "tools" in body:
        return completion(None, [("calculate", json.dumps(CALL))])  # null, as OpenAI replies
    return completion(f"Thought: A sum.\nAction: calculate\nAction Input: {json.dumps(CALL)}")


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with serving(reply) as endpoint:
        yield endpoint


def agrotools(patch: pytest.MonkeyPatch, *arguments: object) -> int:
    patch.setattr(sys, "argv", ["agrotools", *map(str, arguments)])
    patch.setenv("OPENAI_API_KEY", KEY)
    try:
        main.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


RUNS = {
    "react": (str(BENCHMARKS / "drawn"), "--mode", "end-to-end"),
    "no-tool": (str(BENCHMARKS / "drawn"), "--mode", "no-tool"),
    "step-by-step": (str(BENCHMARKS / "drawn"), "--mode", "step-by-step"),
    "tool-calling": (
        str(BENCHMARKS / "drawn"),
        "--mode",
        "end-to-end",
        "--protocol",
        "tool-calling",
    ),
    "lagent": (
        "gta",
        "--data-root",
        str(BENCHMARKS / "gta"),
        "--mode",
        "end-to-end",
        "--backend",
        "recorded",
    ),
    "agent-x": ("agent-x", "--data-root", str(BENCHMARKS / "agent-x")),
    "agrieval": ("agrieval", "--data-root", str(BENCHMARKS / "agrieval")),
}


@pytest.mark.process
@pytest.mark.parametrize("name", RUNS)
def test_the_printed_prompt_is_what_the_server_received_byte_for_byte(
    name: str,
    server: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    run = tmp_path / "run"
    images = ["--images"] if name == "lagent" else []
    words = [
        "eval",
        *RUNS[name],
        "-m",
        "model",
        "--base-url",
        server.base_url,
        "--limit",
        1,
        *images,
        "--out",
        run,
    ]
    assert agrotools(monkeypatch, *words) == 0
    sample = json.loads((run / "records.jsonl").read_bytes().splitlines()[0])["sample"]["id"]
    capsys.readouterr()
    assert agrotools(monkeypatch, "explain", run, sample, "--prompt", "--json") == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["requests"]
    for request, body in zip(shown["requests"], server.bodies, strict=True):
        messages = with_images(request["messages"], shown["images"], run)
        assert b'"messages":' + orjson.dumps(messages) in body
        assert ("tools" in orjson.loads(body)) == bool(request["tools"])
        if request["tools"]:
            assert b'"tools":' + orjson.dumps(request["tools"]) in body
    assert all(
        KEY not in path.read_text(errors="replace") for path in run.rglob("*") if path.is_file()
    )

    assert agrotools(monkeypatch, "explain", run, sample, "--prompt") == 0
    text = capsys.readouterr().out
    for message in shown["requests"][-1]["messages"]:
        content = message["content"] or ""
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            assert part["text"] in text if part["type"] == "text" else "sha256" in text

    if (
        name != "lagent"
    ):  # shows images and replays calls here, by options that a preview does not have
        assert (
            agrotools(
                monkeypatch, "explain", RUNS[name][0], sample, "--prompt", "--json", *RUNS[name][1:]
            )
            == 0
        )
        (first, *_, last) = json.loads(capsys.readouterr().out)[0]["requests"] * 2
        sent = [(each["messages"], each["tools"]) for each in read_sent(run, shown)]
        assert (first["messages"], first["tools"]) == sent[0]
        assert last["messages"][-1] == sent[-1][0][-1]


def read_sent(run: Path, shown: dict) -> list[dict]:
    """The requests of a run with the short URLs of images."""
    requests = StoredPrompts(run).of((shown["mode"], shown["sample"], shown["epoch"]))
    return [{"messages": each.messages, "tools": each.tools} for each in requests or ()]


def with_images(messages: list[dict], images: dict[str, dict], run: Path) -> list[dict]:
    """``messages`` with the stored images in place of their short URLs."""
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                image = images[part["image_url"]["url"]]
                content = base64.b64encode((run / image["file"]).read_bytes()).decode()
                part["image_url"]["url"] = f"data:{image['media_type']};base64,{content}"
    return messages


def test_a_run_without_prompts_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    run = tmp_path / "run"
    options = ("-m", "baseline:constant", "--mode", "no-tool", "--limit", "1", "--out", run)
    assert agrotools(monkeypatch, "eval", BENCHMARKS / "drawn", *options) == 0
    assert not (run / PROMPTS_FILE).exists()
    sample = json.loads((run / "records.jsonl").read_bytes().splitlines()[0])["sample"]["id"]
    assert agrotools(monkeypatch, "explain", run, sample, "--prompt") == 2
    assert "stores no prompt" in capsys.readouterr().err


TOOL = ToolSpec(
    name="calculate",
    category="analytics",
    version="1",
    description="Sums.",
    parameters={},
    agreement={},
    defaults={},
)
SYSTEM = Message.of("system", "Be brief.")
FIRST = ("no-tool", "s1", 0)
PIXELS = b"\x89PNG of no real picture"
PICTURE = ImagePart(url=f"data:image/png;base64,{base64.b64encode(PIXELS).decode()}")


def write(run: Path, key: tuple[str, str, int], *requests: list[Message]) -> None:
    log = PromptLog(run)
    log.write(log.lines(key, [(messages, (TOOL,)) for messages in requests]))
    log.close()


def texts(run: Path, key: tuple[str, str, int]) -> list[list[object]]:
    return [
        [message["content"] for message in each.messages]
        for each in StoredPrompts(run).of(key) or ()
    ]


def test_a_picture_is_written_as_it_was_sent_and_a_fault_is_raised(tmp_path: Path, monkeypatch):
    shown = ImagePart(PICTURE.url, PIXELS)
    request = [([Message(role="user", content=(shown,))], ())]
    log = PromptLog(tmp_path)
    monkeypatch.setattr(base64, "b64decode", None)  # not decoded again
    log.write(log.lines(FIRST, request))
    assert [path.read_bytes() for path in (tmp_path / "artifacts").iterdir()] == [PIXELS]
    (tmp_path / "other" / "artifacts").parent.mkdir()
    (tmp_path / "other" / "artifacts").write_text("a file where the folder has to be")
    other = PromptLog(tmp_path / "other")
    with pytest.raises(OSError, match="artifacts"):
        other.lines(FIRST, request)
    log.close()
    other.close()


def test_what_is_sent_again_is_stored_once_also_after_a_restart(tmp_path: Path):
    again = Message.of("user", "Why?")
    write(tmp_path, FIRST, [SYSTEM, again], [SYSTEM, again, Message.of("assistant", "So.")])
    write(tmp_path, ("no-tool", "s2", 0), [SYSTEM, Message.of("user", "Who?")])
    stored = (tmp_path / PROMPTS_FILE).read_text()
    assert stored.count("Be brief.") == stored.count("Sums.") == stored.count("Why?") == 1
    assert texts(tmp_path, FIRST) == [["Be brief.", "Why?"], ["Be brief.", "Why?", "So."]]
    assert texts(tmp_path, ("no-tool", "s2", 0)) == [["Be brief.", "Who?"]]


def test_a_torn_line_is_cut_off_and_the_last_line_of_a_sample_counts(tmp_path: Path):
    write(tmp_path, FIRST, [SYSTEM])
    with (tmp_path / PROMPTS_FILE).open("ab") as file:
        file.write(b'{"hash":"0123')
    assert texts(tmp_path, FIRST) == [["Be brief."]]
    write(tmp_path, FIRST, [SYSTEM, Message.of("user", "Again?")])
    assert texts(tmp_path, FIRST) == [["Be brief.", "Again?"]]


def test_an_image_is_a_file_of_its_own(tmp_path: Path):
    message = Message(role="user", content=(TextPart(text="See:"), PICTURE))
    write(tmp_path, FIRST, [message], [message])
    (text, image), _ = texts(tmp_path, FIRST)[0][0], None
    found = stored_image(tmp_path, image["image_url"]["url"])
    assert text == {"type": "text", "text": "See:"}
    assert found is not None
    assert found.bytes == len(PIXELS)
    assert (tmp_path / found.file).read_bytes() == PIXELS
    (tmp_path / found.file).unlink()
    gone = stored_image(tmp_path, image["image_url"]["url"])
    assert gone is not None
    assert gone.bytes is None
    assert stored_image(tmp_path, "data:image/png;sha256,../../x") is None


def test_content_that_is_gone_is_an_error(tmp_path: Path):
    write(tmp_path, FIRST, [SYSTEM])
    path = tmp_path / PROMPTS_FILE
    path.write_bytes(
        b"".join(line for line in path.read_bytes().splitlines(True) if b"Be brief" not in line)
    )
    with pytest.raises(RunStoreError, match="cut off or damaged"):
        StoredPrompts(tmp_path).of(FIRST)
    assert StoredPrompts(tmp_path).of(("no-tool", "other", 0)) is None
    write(tmp_path, FIRST, [SYSTEM])
    path.write_bytes(path.read_bytes().replace(b'"message"', b'"massage"'))
    with pytest.raises(RunStoreError, match="cut off or damaged"):
        StoredPrompts(tmp_path).of(FIRST)
