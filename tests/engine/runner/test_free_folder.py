"""The run folder of a model object, whose name another object may have."""

from pathlib import Path

from agrotools.runner.evaluate import _free_folder


def test_each_object_of_one_name_gets_the_next_number(tmp_path: Path):
    taken = [tmp_path / name for name in ("run", "run-2", "run-3", "run-4")]
    for expected in taken:
        assert _free_folder(tmp_path / "run") == expected
        expected.mkdir()
