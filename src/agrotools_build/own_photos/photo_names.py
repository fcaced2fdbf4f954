"""Names of picture files as tables write them: their endings, and what does not tell two names apart."""

import re
from unicodedata import normalize

PHONE_SUFFIXES = (".heic", ".heif", ".hif", ".avif")
SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp", *PHONE_SUFFIXES)
IMAGE_NAME = re.compile(
    rf"(?:{'|'.join(re.escape(suffix) for suffix in SUFFIXES)})$", re.IGNORECASE
)
"""The ending of the name of a picture."""


def plain_name(name: str) -> str:
    """Return a name in lower case, with one form of accents and one kind of space."""
    return " ".join(normalize("NFC", name).casefold().split())
