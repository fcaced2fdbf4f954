"""``agrotools review`` where the extra is not installed."""

from pathlib import Path

import pytest

from agrotools.cli.own_farm import print_next_steps
from agrotools.core.base import install_command
from support.command import run_command


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    import agrotools.build.review as review

    monkeypatch.setattr(review, "find_spec", lambda _name: None)
    assert run_command("review", "my-farm").returncode == 2
    print_next_steps(Path("my-farm"))
    assert install_command("review") in capsys.readouterr().out
