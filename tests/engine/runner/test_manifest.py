"""The manifest: whatever can change a score makes another run."""

from pathlib import Path

import orjson
import pytest

from agrotools.formats.manifest import Manifest, differences, manifest_json, merged, parse_manifest
from agrotools.loading import load_benchmark
from agrotools.models import Endpoint
from agrotools.runner.build import default_folder, describe_run
from agrotools.runner.config import EvalConfig
from agrotools.runner.plan import work_items
from agrotools.runner.policies import policy_source
from agrotools.runner.run_settings import resolve_settings
from support.runs import manifest as made_manifest

pytestmark = pytest.mark.process


def manifest(benchmark: Path, model: str = "baseline:oracle") -> Manifest:
    loaded = load_benchmark(benchmark)
    source = policy_source(Endpoint(model), loaded.samples)
    config = EvalConfig.of(benchmark=str(benchmark), model=model, mode="end-to-end")
    return describe_run(
        config, resolve_settings(config, loaded), loaded, source, work_items(loaded.samples, [], 1)
    )


def test_a_head_that_was_trained_meanwhile_makes_another_run(
    small_benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path))
    before = manifest(small_benchmark)
    heads = tmp_path / "heads" / "crop_weed"
    heads.mkdir(parents=True)
    (heads / "carrots.npz").write_bytes(b"weights")
    after = manifest(small_benchmark)
    assert [line.partition(":")[0] for line in differences(before, after)] == [
        "data of tools, measure_crop_weed_area"
    ]
    changed = {
        tool for tool, digest in after.tool_data.items() if before.tool_data.get(tool) != digest
    }
    assert changed == {"measure_crop_weed_area"}
    assert default_folder(before) != default_folder(after)
    assert manifest(small_benchmark) == after


def test_further_samples_may_need_further_tools(small_benchmark: Path):
    whole = manifest(small_benchmark)
    first, *others = whole.tool_data
    part = whole.model_copy(update={"tool_data": {first: whole.tool_data[first]}})
    assert others
    assert differences(part, whole) == []
    assert merged(part, whole).tool_data == whole.tool_data


def test_a_script_that_was_edited_makes_another_run(small_benchmark: Path, tmp_path: Path):
    script = tmp_path / "script.json"
    script.write_text('["Final Answer: 1"]')
    before = manifest(small_benchmark, f"scripted:{script}")
    script.write_text('["Final Answer: 2"]')
    after = manifest(small_benchmark, f"scripted:{script}")
    assert [line.partition(":")[0] for line in differences(before, after)] == [
        "content of the model"
    ]


@pytest.mark.parametrize("n", [0, 2])
def test_manifest_is_written_as_indented_json_and_read_again(n: int, tmp_path: Path):
    whole = made_manifest(sample_ids=tuple(f"s{number}" for number in range(n)))
    content, file = manifest_json(whole), tmp_path / "manifest.json"
    assert (
        content == orjson.dumps(whole.model_dump(mode="json"), option=orjson.OPT_INDENT_2) + b"\n"
    )
    for written in (content, orjson.dumps(orjson.loads(content))):
        file.write_bytes(written)
        assert parse_manifest(file) == whole
