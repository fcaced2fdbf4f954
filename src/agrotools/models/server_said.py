"""What servers say beside their replies, brought to a form that may be shown and obeyed."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_LONGEST = 300


def one_line(text: str, secret: str = "") -> str:
    """``text`` as one printable line of at most 300 characters, without the secret: some servers echo keys."""
    if secret:
        text = text.replace(secret, "***")
    line = " ".join(text[: 20 * _LONGEST].split())
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait: ``retry-after-ms``, or ``Retry-After`` as seconds or as a date."""
    for name, scale in (("Retry-After-Ms", 0.001), ("Retry-After", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) * scale
        except ValueError:
            try:
                date = parsedate_to_datetime(text)
                seconds = (date - datetime.now(UTC if date.tzinfo else None)).total_seconds()
            except (ValueError, OverflowError):
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None
