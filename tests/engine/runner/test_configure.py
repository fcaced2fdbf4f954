"""Which runs a command asks for."""

import os
import re
from pathlib import Path

import pytest

from agrotools.core import UsageError
from agrotools.models import Endpoint
from agrotools.runner.config import JudgeConfig
from agrotools.runner.config_file import ConfigFile, read_config, read_judges
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
    assert [config.model.name for config in read_config(ConfigFile.read(file), {}, [])] == [
        "baseline:echo",
        "baseline:constant",
    ]
    (config,) = read_config(ConfigFile.read(file), {"limit": 5}, ["baseline:random"])
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
        read_config(ConfigFile.read(file), {}, [])


def test_a_file_that_may_never_end_is_refused_and_a_pipe_of_the_shell_is_read(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match="is a pipe or a device"):
            ConfigFile.read(path)
    read_end, write_end = os.pipe()
    os.write(write_end, b"limit = 3")
    os.close(write_end)
    assert (
        read_config(ConfigFile.read(Path(f"/dev/fd/{read_end}")), {}, ["baseline:echo"])[
            0
        ].benchmark.limit
        == 3
    )
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


def test_a_file_takes_the_options_that_the_command_does_not(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        'model = "qwen"\n'
        "top_logprobs = 5\nserve_timeout = 60\nrpm = 30\ntpm = 9000\n"
        'executor = "ray"\n'
        'vlm_model = "eye"\nvlm_base_url = "http://gpu:1/v1"\n'
        'vlm_api_key_env = "EYE_KEY"\nvlm_price = "1/2"\n'
    )
    (config,) = read_config(ConfigFile.read(file), {}, [])
    assert config.model.settings.top_logprobs == 5
    assert config.model.serve_timeout == 60
    assert (config.wire.settings.rpm, config.wire.settings.tpm) == (30, 9000)
    assert config.tools.executor == "ray"
    eye = config.vlm_endpoint
    assert (eye.model, eye.base_url, eye.api_key_env, eye.price) == (
        "eye",
        "http://gpu:1/v1",
        "EYE_KEY",
        "1/2",
    )


def test_a_file_names_judges_beside_the_model_and_the_command_overrides_them(
    tmp_path: Path,
) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        'model = "baseline:echo"\nlimit = 3\n'
        'judge = "strict"\njudge_base_url = "http://gpu:1/v1"\njudge_api_key_env = "KEY"\n'
        'judge_votes = 2\njudge_calibration = "shipped"\njudge_rubrics = "mine.toml"\n'
        'judge_budget = 2.5\njudge_price = "1/2"\njudge_concurrency = 4\n'
    )
    read = ConfigFile.read(file)
    judges = read_judges(read)
    assert judges == JudgeConfig(
        judge=("strict",),
        judge_base_url="http://gpu:1/v1",
        judge_api_key_env="KEY",
        judge_votes=2,
        judge_calibration="shipped",
        judge_rubrics=Path("mine.toml"),
        judge_budget=2.5,
        judge_price="1/2",
        judge_concurrency=4,
    )
    assert read_judges(read, ["mild", "kind"]).judge == ("mild", "kind")
    assert read_config(read, {}, [])[0].benchmark.limit == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("judge_votes = 2", "judge_votes, but no judge is named"),
        ('judge = "a"\njudge_votes = 0', "judge_votes: should be at least 1"),
        ('judge = "a"\njudge_budget = true', "judge_budget: should be a number"),
        ("judge = 3", "judge: should be a name"),
        ('judge = "a"\njudge_vote = 2', "unknown key 'judge_vote'"),
    ],
)
def test_wrong_options_of_judges_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=re.escape(said)):
        read_judges(ConfigFile.read(file))
