"""Attribution of runs with tool servers: bound tools are called again, with the state that the run left."""

import io
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import support
from agrotools.analysis.attribution import AttributedLoss, attribute_run
from agrotools.core import Action, Answer, CallTools, SampleView, Step, ToolCall
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.repeated_calls import REPEATED_CALLS_FILE, RepeatedCall

pytestmark = pytest.mark.process
BINDING = """
[measure_crop_weed_area]
[[measure_crop_weed_area.calls]]
tool = "segment"
arguments = { image_path = "{image}" }
[measure_crop_weed_area.result]
veg_pct = "sessions"
"""
"""The result is how often the server was asked before in the same session, and this time."""
TOOL = "measure_crop_weed_area"


class WrongRegion:
    """Policy that measures a corner of the picture, twice."""

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        if len(history) == 2:
            return Answer(text="vegetation: 3 %")
        region = [0, 0, 10 + len(history), 10]
        arguments = {"image": view.files[0].name, "region": region}
        return CallTools(calls=(ToolCall(tool=TOOL, arguments=arguments),))


@pytest.fixture(scope="module")
def made(small_benchmark: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run in which the region of every call is wrong, its binding and its server."""
    folder = tmp_path_factory.mktemp("attributed")
    binding, server = folder / "binding.toml", folder / "server.py"
    binding.write_text(BINDING)
    shutil.copyfile(Path(support.__path__[0]) / "tool_server.py", server)
    config = EvalConfig.of(
        benchmark=str(small_benchmark),
        mode="end-to-end",
        limit=2,
        tool_servers=(f"{sys.executable} {server}",),
        bindings=(str(binding),),
        out=folder / "run",
    )
    evaluate(config, io.StringIO(), model=WrongRegion())
    return folder


def attributed(folder: Path) -> tuple[AttributedLoss, dict[str, list[RepeatedCall]]]:
    """Attribute the run anew; also return the calls of the bound tool that were made, by sample."""
    calls: dict[str, list[RepeatedCall]] = {}
    lost = attribute_run(folder / "run")
    for line in (folder / "run" / REPEATED_CALLS_FILE).read_text().splitlines():
        call = RepeatedCall.model_validate_json(line)
        if call.tool == TOOL:
            calls.setdefault(call.sample, []).append(call)
    return lost, calls


def test_calls_are_made_on_the_server_behind_those_of_the_run(made: Path):
    stored = made / "run" / REPEATED_CALLS_FILE
    stored.unlink(missing_ok=True)
    lost, calls = attributed(made)
    assert not lost.notes
    assert lost.attribution.unknown_results == 0
    assert calls
    for of_sample in calls.values():
        results = [call.observation and call.observation.result for call in of_sample]
        assert results == [{"veg_pct": 3 + number} for number in range(len(results))]
    # Versions that did not ask servers kept that there is no result.
    unknown = [call.model_copy(update={"observation": None}) for call in calls.popitem()[1]]
    stored.write_text("".join(f"{call.model_dump_json()}\n" for call in unknown))
    assert attributed(made)[0] == lost


def test_where_a_server_cannot_be_asked_the_note_says_why_and_it_is_asked_later(made: Path):
    stored, binding, server = (
        made / "run" / REPEATED_CALLS_FILE,
        made / "binding.toml",
        made / "server.py",
    )
    program = server.read_text()

    def note() -> str:
        stored.unlink(missing_ok=True)
        lost, calls = attributed(made)
        assert not calls
        assert lost.attribution.unknown_results > 0
        assert sum(lost.attribution.run.parts.values()) == lost.attribution.run.gap
        (text,) = lost.notes
        return text

    binding.write_text(BINDING + "\n")
    assert "binding.toml changed since the run" in note()
    binding.write_text(BINDING)
    server.write_text("raise SystemExit('no field today')")
    assert "does not start: no field today" in note()
    server.write_text(program.replace("len(_areas),", "len(_areas) + 5,"))
    text = note()
    assert "(rows-" in text, "the samples are named"
    assert f"{TOOL} gives another result than in the run" in text
    server.write_text(program.replace('version="3"', 'version="4"'))
    assert "field-tools changed since the run" in note()
    server.write_text(program)
