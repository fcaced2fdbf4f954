"""Users without a home folder, as in containers and cron jobs."""

import tempfile
from pathlib import Path

import pytest

from agrotools.core import UsageError
from agrotools.core.files import cache_dir, hub_cache
from support.command import run_command

pwd = pytest.importorskip("pwd")

pytestmark = pytest.mark.process


@pytest.fixture(params=["", None])
def temporary(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of temporary files of a user without an account whose ``HOME`` is empty or unset."""

    def nobody(uid: int) -> pwd.struct_passwd:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in (
        "AGROTOOLS_CACHE",
        "AGROTOOLS_KB",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "HF_HOME",
        "HF_HUB_CACHE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", request.param or "")
    if request.param is None:
        monkeypatch.delenv("HOME")
    return tmp_path


@pytest.mark.parametrize("command", [("tools", "kb", "search", "rust"), ("benchmarks", "list")])
def test_commands_work_without_a_home_folder(temporary: Path, command: tuple[str, ...]):
    done = run_command(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.stat().st_mode & 0o777 for path in temporary.glob("agrotools-home-*")] == [0o700]


def test_caches_lie_in_it_and_that_of_somebody_else_is_refused(temporary: Path):
    assert all(place.is_relative_to(temporary) for place in (cache_dir("x"), hub_cache()))
    (home,) = temporary.glob("agrotools-home-*")
    home.rmdir()
    home.symlink_to(temporary)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOME")
        with pytest.raises(UsageError, match="no home folder"):
            cache_dir()


def test_an_unknown_user_in_a_path_is_told():
    done = run_command("eval", "~no-such-user/mine", "--model", "baseline:guess")
    assert (done.returncode, "no user has that name" in done.stderr) == (2, True)
