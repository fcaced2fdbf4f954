"""Tools of MCP servers in the environment to train agents in: offered as methods, ended with the episode."""

import gc
import inspect
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agrotools.core import InfrastructureError, UsageError
from agrotools.sandbox.agents import is_available
from agrotools_build import Env, PictureEnv
from agrotools_build import env as environment
from agrotools_build.env import call_tool, offered_tools, published, question_of
from support.marked_server import MarkedServer

pytestmark = pytest.mark.process
SAMPLE = published().samples[0].model_copy(update={"files": ()})
ROW = f"train-0-0:{SAMPLE.id}"
_PATIENCE_S = 60
BINDING = """
[calculate]
[[calculate.calls]]
tool = "cover"
arguments = { image_path = "{expression}" }
[calculate.result]
value = "cover"
"""
OF_A_KEYWORD = """
from typing import Annotated
from pydantic import Field
from mcp.server.mcpserver import MCPServer

server = MCPServer("dates")

@server.tool()
def days(start: Annotated[str, Field(alias="from")]) -> int:
    return 1

server.run()
"""
LEFT = """
from agrotools_build import Env
from agrotools_build import env as environment

published = environment.published()
sample = published.sample({sample!r}).model_copy(update={{"files": ()}})
environment.questions = lambda *_: {{sample.id: environment.question_of(published, sample)}}
environment.possible_ids = lambda _: {{sample.id}}
served = Env.with_servers(tool_servers=[{server!r}])
left = [served(), served()]
for env in left:
    env.reset(id={row!r})
    print(env.cover(image_path="x"))
"""
"""A program that leaves two episodes open."""


@pytest.fixture(autouse=True)
def _not_drawn(monkeypatch: pytest.MonkeyPatch):
    """The question is one of the package, without files: nothing is drawn."""
    asked = {SAMPLE.id: question_of(published(), SAMPLE)}
    monkeypatch.setattr(environment, "questions", lambda *_: asked)
    monkeypatch.setattr(environment, "possible_ids", lambda _: {*asked})


def begun(env_class: type[Env]) -> Any:
    env = env_class()
    env.reset(id=ROW)
    return env


def test_an_episode_has_a_server_of_its_own_that_ends_with_it(capsys: pytest.CaptureFixture[str]):
    server = MarkedServer()
    served = Env.with_servers(tool_servers=[server.address])
    sealed = "" if is_available() else ", unsealed"
    assert capsys.readouterr().err == f"tool server field-tools 3{sealed}: offers 8 tools\n"
    functions = {name for name, _ in inspect.getmembers(served, inspect.isfunction)}
    assert functions >= {"segment", "calculate"}
    assert [tool["name"] for tool in offered_tools(served)][-9:-7] == ["segment", "measure"]
    assert not hasattr(Env, "segment")
    assert server.processes() == 0

    env, other = begun(served), begun(served)
    assert '"cover": 0.5' in env.cover(image_path="x")
    assert '"cover": 0.5' in call_tool(other, "cover", {"image_path": "x"})
    of_two = server.processes()
    env.reset(id=ROW)
    assert 0 < server.processes() < of_two
    other.close()
    assert server.processes() == 0

    env.cover(image_path="x")
    del env
    gc.collect()
    ends = time.monotonic() + _PATIENCE_S
    while server.processes() and time.monotonic() < ends:
        time.sleep(0.1)
    assert server.processes() == 0, "nobody closed the episode"

    env = begun(served)
    with pytest.raises(InfrastructureError, match="out of field"):
        env.die()
    env.submit_answer("unknown")
    with pytest.raises(InfrastructureError, match="out of field"):
        env.get_reward()
    env.reset(id=ROW)
    env.submit_answer("unknown")
    assert env.get_reward() == -1, "its twin has no answer"
    env.close()


def test_a_bound_tool_of_ours_runs_on_the_server(tmp_path: Path):
    binding = tmp_path / "binding.toml"
    binding.write_text(BINDING)
    served = PictureEnv.with_servers([MarkedServer().address], bindings=[str(binding)])
    assert [tool["name"] for tool in offered_tools(served)] == [
        tool["name"] for tool in offered_tools(PictureEnv)
    ]
    env = begun(served)
    assert '"value": 0.5' in env.calculate(expression="6 * 7")
    env.close()
    with pytest.raises(UsageError, match="tool servers already"):
        served.with_servers(["true"])


def test_an_argument_that_python_does_not_take_is_named(tmp_path: Path):
    script = tmp_path / "dates.py"
    script.write_text(OF_A_KEYWORD)
    with pytest.raises(UsageError, match="'from', which no Python function can have"):
        Env.with_servers([f"{sys.executable} {script}"])


def test_episodes_that_nobody_closes_end_at_the_exit_of_the_interpreter():
    server = MarkedServer()
    left = LEFT.format(sample=SAMPLE.id, server=server.address, row=ROW)
    done = subprocess.run(
        [sys.executable, "-c", left], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout.count('"cover": 0.5') == 2
    assert "Traceback" not in done.stderr
    assert server.processes() == 0
