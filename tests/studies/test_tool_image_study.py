"""The planted model of the study of pictures in results reads the severity that a mask shows."""

import io

import pytest
from PIL import Image, ImageDraw

from agrotools.models import ImagePart
from tool_images import LEAF_RGB, LESION_RGB, severity_of


def mask(lesion_px: int) -> ImagePart:
    picture = Image.new("RGB", (400, 300), "white")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((50, 50, 349, 249), fill=LEAF_RGB)
    draw.rectangle((100, 100, 99 + lesion_px, 199), fill=LESION_RGB)
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=90)
    return ImagePart.of("image/jpeg", content.getvalue())


def test_the_severity_of_a_shown_mask_is_the_share_of_the_lesions():
    assert severity_of(mask(60)) == pytest.approx(100 * 60 * 100 / (300 * 200), abs=0.5)


def test_a_picture_without_a_leaf_has_none():
    content = io.BytesIO()
    Image.new("RGB", (40, 30), "white").save(content, "PNG")
    assert severity_of(ImagePart.of("image/png", content.getvalue())) is None
