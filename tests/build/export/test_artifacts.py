"""What reference calls made goes with the samples into a copy of their benchmark."""

import hashlib
from pathlib import Path

from agrotools.benchmarks import load_folder
from agrotools.build.export.folder import copy_artifacts
from agrotools.core import Artifact, Observation, ReferenceStep, ReferenceTrajectory
from support.sums_benchmark import write_sums


def test_artifacts_of_the_samples_that_stay_are_copied_and_no_others(tmp_path: Path):
    root, out = write_sums(tmp_path / "sums", 3), tmp_path / "out"
    out.mkdir()
    (root / "artifacts").mkdir()
    content = [b"one", b"two"]
    hashes = [hashlib.sha256(each).hexdigest() for each in content]
    for each, name in zip(content, hashes, strict=True):
        (root / "artifacts" / f"{name}.png").write_bytes(each)
    (tmp_path / "secret.png").write_bytes(b"secret")

    def making(sha256: str | None):
        made = Artifact(name="step_1.png", kind="mask", media_type="image/png", sha256=sha256)
        step = ReferenceStep(tool="calculate", arguments={}, observation=Observation(result={}, artifacts=(made,)))
        return load_folder(root).samples[0].model_copy(update={"reference": ReferenceTrajectory(steps=(step,))})

    copy_artifacts(root, [making(hashes[0]), making("../../secret"), making("0" * 64), making(None)], out)
    assert [path.name for path in (out / "artifacts").iterdir()] == [f"{hashes[0]}.png"]
    assert (out / "artifacts" / f"{hashes[0]}.png").read_bytes() == b"one"
