"""Which runs a command asks for."""

import os
import re
from pathlib import Path

import pytest

from agrotools.core import UsageError
from agrotools.models import Endpoint
from agrotools.runner.config_file import read_config
from agrotools.runner.early_checks import check_models
from agrotools.runner.policies import policy_source
from support.plain_sample import plain_sample


def test_without_any_argument_the_planner_runs_beside_floor_and_ceiling():
    configs = read_config(None, {}, [])
    assert [config.model.name for config in configs] == [
        "baseline:planner",
        "baseline:oracle",
        "baseline:guess",
    ]
    assert all(
        config.benchmark.name == "embedded" and config.run.modes == configs[0].run.modes
        for config in configs
    )
    sources = [
        policy_source(Endpoint(config.model.name), [plain_sample(reference={"steps": ()})])
        for config in configs
    ]
    assert sources[0].modes == configs[0].run.modes
    assert [source.privileged for source in sources] == [True, True, False]


def test_a_named_model_runs_alone_and_options_win_over_the_file(tmp_path: Path):
    file = tmp_path / "run.toml"
    file.write_text('model = ["baseline:echo", "baseline:constant"]\nlimit = 3\n')
    assert [config.model.name for config in read_config(None, {}, ["baseline:echo"])] == [
        "baseline:echo"
    ]
    assert [config.model.name for config in read_config(file, {}, [])] == [
        "baseline:echo",
        "baseline:constant",
    ]
    (config,) = read_config(file, {"limit": 5}, ["baseline:random"])
    assert (config.model.name, config.benchmark.limit) == ("baseline:random", 5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("faults = []", "--faults is empty"),
        ("model = []", "model: should be a name"),
        ("limit = true", "limit: should be a number"), ("epochs = true", "epochs: should be a number"),
        ("budget = false", "budget: should be a number"),
    ],
)  # fmt: skip
def test_values_of_another_kind_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=re.escape(said)):
        read_config(file, {}, [])


def test_a_file_that_may_never_end_is_refused_and_a_pipe_of_the_shell_is_read(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match="is a pipe or a device"):
            read_config(path, {}, [])
    read_end, write_end = os.pipe()
    os.write(write_end, b"limit = 3")
    os.close(write_end)
    assert read_config(Path(f"/dev/fd/{read_end}"), {}, ["baseline:echo"])[0].benchmark.limit == 3
    os.close(read_end)


def test_a_benchmark_that_does_not_exist_is_named_before_a_missing_key(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="unknown benchmark 'embeded'") as raised:
        check_models(read_config(None, {"benchmark": "embeded"}, ["openai:gpt-4o"]))
    assert raised.value.hint == "did you mean embedded?"
    (tmp_path / "embeded").mkdir()
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        check_models(
            read_config(
                None, {"benchmark": "embeded", "data_root": str(tmp_path)}, ["openai:gpt-4o"]
            )
        )
