"""The notebook page of the documentation is that of the notebook, with its outputs."""

import pytest

import quickstart


def test_the_page_and_its_pictures_are_those_of_the_notebook():
    """After a change: ``python tests/quickstart.py``."""
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient (extra dev)")
    cells = nbformat.read(quickstart.NOTEBOOK, as_version=4).cells
    page, pictures = quickstart.page_of(cells)
    assert quickstart.PAGE.read_text(encoding="utf-8") == page
    assert pictures
    for name, content in pictures.items():
        assert (quickstart.IMAGES / name).read_bytes() == content
