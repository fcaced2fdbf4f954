import json

import pytest

from agrotools.core import BenchmarkError
from prepared import read_items


def _folder(tmp_path, truth):
    if truth is not None:
        (tmp_path / "truth.json").write_text(truth if isinstance(truth, str) else json.dumps(truth))
    (tmp_path / "a.jpg").write_bytes(b"x")
    return tmp_path


@pytest.mark.parametrize(
    ("truth", "says"),
    [
        (None, r"truth\.json cannot be read"),
        ("[{", "cannot be read"),
        ({"id": 1}, "not a list of objects"),
        (["a.jpg"], "not a list of objects"),
        ([{"id": "7", "image": "a.jpg"}], "item 7 lacks count"),
        ([{"image": "b.jpg", "count": 1}], "lacks b.jpg"),
        ([{"image": f"{n}.jpg", "count": 1} for n in range(9)], "and 6 more"),
        ([{"image": "../a.jpg", "count": 1}], "leads out"),
        ([{"image": "/etc/passwd", "count": 1}], "leads out"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, truth, says):
    with pytest.raises(BenchmarkError, match=says):
        read_items(_folder(tmp_path, truth), ("count",), ("image",))
