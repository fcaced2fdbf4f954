"""Every runner that this machine has."""

import shutil

import pytest

from agrotools.core import AgrotoolsError
from agrotools.sandbox.runners import RUNNERS
from agrotools.sandbox.running import probe, select_runner


@pytest.fixture(params=RUNNERS)
def runner(request: pytest.FixtureRequest) -> str:
    if request.param == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bwrap is not installed")
    found = probe(request.param)
    if not found.holds:
        pytest.skip(f"{request.param} does not work here: {found.message}")
    return request.param


@pytest.fixture(scope="session")
def best() -> str:
    """The best runner, for what is the same in all of them."""
    try:
        return select_runner()
    except AgrotoolsError as error:
        pytest.skip(str(error))
