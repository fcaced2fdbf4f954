import numpy as np
import pytest
from fake_cwfid import fake_field, write_original, write_prepared
from field_parts.weeds import read_cwfid

from agrotools.core import BenchmarkError
from agrotools.core.files import sha256_of_file


def _check(images, count):
    assert len(images) == count
    assert len({sha256_of_file(image.path) for image in images}) == count
    for number, image in enumerate(images):
        _, classes, vegetation = fake_field(number)
        np.testing.assert_array_equal(image.classes, classes)
        np.testing.assert_array_equal(image.vegetation, vegetation)


@pytest.mark.parametrize("plants_black", [False, True])
def test_the_authors_layout_whichever_way_plants_are_drawn(tmp_path, plants_black):
    _check(read_cwfid(write_original(tmp_path / "set", 3, plants_black)), 3)


def test_absent_broken_and_other_files_are_named(tmp_path):
    folder = write_prepared(tmp_path / "set", 4)
    (folder / "masks/001.png").unlink()
    (folder / "vegetation/003.png").unlink()
    with pytest.raises(BenchmarkError, match=r"masks/001\.png, vegetation/003\.png"):
        read_cwfid(folder)
    with pytest.raises(BenchmarkError, match="not a folder"):
        read_cwfid(tmp_path / "none")
    with pytest.raises(BenchmarkError, match="no CWFID images"):
        read_cwfid(tmp_path)
    (tmp_path / "truth.json").write_text('[{"id": "1"}]')
    with pytest.raises(BenchmarkError, match="item 1 lacks image"):
        read_cwfid(tmp_path)


def test_masks_of_another_size_and_broken_images_are_refused(tmp_path):
    from PIL import Image

    folder = write_prepared(tmp_path / "set", 1)
    Image.fromarray(np.zeros((10, 10), np.uint8)).save(folder / "masks/000.png")
    with pytest.raises(BenchmarkError, match="differ in size"):
        read_cwfid(folder)
    (folder / "images/000.jpg").write_bytes(b"no jpeg")
    with pytest.raises(BenchmarkError, match="image 000 cannot be read"):
        read_cwfid(folder)
    image = folder / "images/000.jpg"
    image.write_bytes(image.read_bytes()[: image.stat().st_size // 2])
    with pytest.raises(BenchmarkError, match="image 000 cannot be read"):
        read_cwfid(folder)
