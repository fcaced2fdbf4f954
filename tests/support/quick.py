"""Short waits between attempts, so that tests of faults do not wait like users."""

import pytest

from agrotools.models import openai_compatible
from agrotools.runner import execute


def shorten_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait tenths of a second where a run waits seconds; time limits stay as they are set."""
    monkeypatch.setattr(openai_compatible, "backoff_s", lambda _wire, attempt: 0.1 * attempt)
    monkeypatch.setattr(execute, "_TICK_S", 0.1)
