"""The response cache: what is found again, what is not, and that nothing that is wrong with the file costs a run."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agrotools.core import ToolSpec, Usage, UsageError
from agrotools.models import Completion, ImagePart, Message, ModelSettings, RequestedCall, TextPart
from agrotools.models.endpoint import ScriptedModel
from agrotools.models.metered import CachedModel, ResponseCache, request_key, response_cache_path

REPLY = Completion(
    text="雑草 8.9 %", tool_calls=(RequestedCall(name="f", arguments='{"a": 1}', id="1"),), thought="hm", seconds=2.5,
    usage=Usage(input_tokens=7, output_tokens=3), finish_reason="tool_calls", attempts=3,
)  # fmt: skip
ASKED = [Message.of("user", "How many?")]
SETTINGS = ModelSettings()
SPEC = ToolSpec(
    name="f", category="c", version="1", description="d", parameters={}, agreement={}, defaults={}
)


def _python(code: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_reply_is_found_again_at_once_and_later_with_its_usage_but_without_its_waits(
    tmp_path: Path,
) -> None:
    path = tmp_path / "deep" / "c.sqlite"
    expected = REPLY.model_copy(update={"cached": True, "seconds": 0.0, "attempts": 0})
    with ResponseCache(path) as cache:
        assert cache.get("k") is None
        cache.put("k", REPLY)
        assert cache.get("k") == expected
    with ResponseCache(path) as again:
        assert again.get("k") == expected
        assert again.get("other") is None
        assert again.fault is None


def test_everything_that_can_change_a_reply_changes_the_key() -> None:
    picture = Message(
        role="user", content=(TextPart(text="a"), ImagePart(url="data:image/png;base64,AAAA"))
    )
    other_picture = Message(
        role="user", content=(TextPart(text="a"), ImagePart(url="data:image/png;base64,AAAB"))
    )
    asked = [
        ("http://a/v1", "m", ASKED, (), SETTINGS, 0),
        ("http://b/v1", "m", ASKED, (), SETTINGS, 0),
        ("http://a/v1", "n", ASKED, (), SETTINGS, 0),
        ("http://a/v1", "m", [Message.of("system", "How many?")], (), SETTINGS, 0),
        ("http://a/v1", "m", [*ASKED, *ASKED], (), SETTINGS, 0),
        ("http://a/v1", "m", [picture], (), SETTINGS, 0),
        ("http://a/v1", "m", [other_picture], (), SETTINGS, 0),
        ("http://a/v1", "m", ASKED, (SPEC,), SETTINGS, 0),
        ("http://a/v1", "m", ASKED, (), ModelSettings(temperature=0.5), 0),
        ("http://a/v1", "m", ASKED, (), ModelSettings(seed=1), 0),
        ("http://a/v1", "m", ASKED, (), ModelSettings(extra={"reasoning_effort": "low"}), 0),
        ("http://a/v1", "m", ASKED, (), SETTINGS, 1),
    ]
    keys = [request_key(*each) for each in asked]
    assert len(set(keys)) == len(asked)
    assert keys == [request_key(*each) for each in asked]


async def test_a_model_replies_from_the_cache_until_the_epoch_changes(tmp_path: Path) -> None:
    replies = iter(range(100))
    model = ScriptedModel(lambda *_: f"reply {next(replies)}")
    with ResponseCache(tmp_path / "c.sqlite") as cache:
        first, again, other_epoch = (
            CachedModel(model, cache),
            CachedModel(model, cache),
            CachedModel(model, cache, 1),
        )
        texts = [
            (await each.generate(ASKED, (), SETTINGS)).text
            for each in (first, again, other_epoch, first)
        ]
        assert texts == ["reply 0", "reply 0", "reply 1", "reply 0"]
        assert model.stats.cached == 2
        assert first.name == model.name
        await first.close()


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "length", "filtered", "context"])
async def test_only_real_replies_are_kept(tmp_path: Path, reason: str) -> None:
    asked = 0

    def reply(*_: object) -> Completion:
        nonlocal asked
        asked += 1
        return Completion.model_validate({"finish_reason": reason})

    with ResponseCache(tmp_path / "c.sqlite") as cache:
        model = CachedModel(ScriptedModel(reply), cache)
        for _ in range(2):
            assert (await model.generate(ASKED, (), SETTINGS)).finish_reason == reason
    assert asked == (2 if reason == "context" else 1)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/etc/passwd", "a b", "x" * 65, "-x", "a\n", "é"]
)
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name"):
        response_cache_path(name)


def _goes_on_without(path: Path, fault: str) -> None:
    started = time.monotonic()
    cache = ResponseCache(path)
    cache.put("k", REPLY)
    cache.get("k")
    cache.close()
    assert cache.fault is not None
    assert fault in cache.fault
    assert "the run goes on" in cache.fault
    assert time.monotonic() - started < 10


def test_a_file_that_is_no_cache_is_left_as_it_is(tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite"
    text.write_bytes(b"this is not a database " * 100)
    _goes_on_without(text, "not a database")
    assert text.read_bytes().startswith(b"this is not")
    (tmp_path / "folder.sqlite").mkdir()
    _goes_on_without(tmp_path / "folder.sqlite", "not a file")
    os.mkfifo(tmp_path / "pipe.sqlite")
    _goes_on_without(tmp_path / "pipe.sqlite", "not a file")
    (tmp_path / "full.sqlite").symlink_to("/dev/full")
    _goes_on_without(tmp_path / "full.sqlite", "not a file")
    (tmp_path / "file").write_bytes(b"")
    _goes_on_without(tmp_path / "file" / "c.sqlite", "")
    _goes_on_without(Path("/proc/nowhere/c.sqlite"), "")


_FULL = """
import resource, sys
from pathlib import Path
from agrotools.models import Completion
from agrotools.models.metered import ResponseCache
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
cache = ResponseCache(Path(sys.argv[1]))
for number in range(300):
    cache.put(f"key{number}", Completion(text="x" * 5000))
    cache.get(f"key{number}")
cache.close()
print(cache.fault)
"""


@pytest.mark.process
@pytest.mark.parametrize("limit", [0, 200_000])
def test_a_full_disk_costs_the_entries_and_not_the_run(tmp_path: Path, limit: int) -> None:
    process = _python(_FULL, tmp_path / "c.sqlite", limit)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "the run goes on without it" in out
    with ResponseCache(tmp_path / "c.sqlite") as after:
        found = [after.get(f"key{number}") for number in range(300)]
        assert all(entry.text == "x" * 5000 for entry in found if entry)
