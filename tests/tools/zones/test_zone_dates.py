"""Dates of rasters by the names of files and folders, and by a tag."""

from pathlib import Path

import pytest

from agrotools_tools.zones.dates import are_sortable, dates_of


@pytest.mark.parametrize(
    ("names", "dates"),
    [
        (["DJI_20240611103012_0001_V.tif"], ["2024-06-11"]),
        (["a_2024-06-11.tif", "a_20240230.tif"], ["2024-06-11", ""]),
        (["a_2024-W24.tif", "a_2024w26.tif"], ["2024-W24", "2024-W26"]),
        (["a_11Jun2024.tif", "2 July 2024.tif"], ["2024-06-11", "2024-07-02"]),
        (["ortho_240611.tif", "ortho_240702.tif"], ["240611", "240702"]),
        (["240611/o.tif", "240702/o.tif"], ["240611", "240702"]),
        (["a_03-04-2024.tif"], ["03-04-2024"]),
        (["a_06.06.2024.tif"], ["2024-06-06"]),
        (["a_11.06.2024.tif", "a_13.06.2024.tif"], ["2024-06-11", "2024-06-13"]),
        (["a_11.06.2024.tif", "a_13-06-2024.tif"], ["11.06.2024", "2024-06-13"]),
        (["a_13.06.2024.tif", "a_06.13.2024.tif"], ["13.06.2024", "06.13.2024"]),
        (["20240601_to_20240607.tif"], ["2024-06-01/2024-06-07"]),
        (["S2A_MSIL2A_20230611T101559_N0509_20230705T150000.tif"], ["2023-06-11"]),
        (["2024/o.tif", "2023-05/o.tif"], ["2024", "2023-05"]),
        (["plot_123456.tif", "a_2024.06.11111.tif"], ["", ""]),
    ],
)
def test_a_date_is_read_where_it_has_one_meaning(names: list[str], dates: list[str]) -> None:
    assert dates_of([Path(name) for name in names], [""] * len(names)) == dates


@pytest.mark.parametrize(
    ("name", "tag", "date"),
    [
        ("o.tif", "2024:06:11 10:30:12", "2024-06-11"),
        ("2024/o.tif", "2024:06:11 10:30:12", "2024-06-11"),
        ("2023/o.tif", "2024:06:11 10:30:12", "2023"),
        ("2024-05-02/o.tif", "2024:06:11 10:30:12", "2024-05-02"),
        ("o.tif", "0000:00:00 00:00:00", ""),
    ],
)
def test_the_tag_of_a_file_says_less_than_its_name(name: str, tag: str, date: str) -> None:
    assert dates_of([Path(name)], [tag]) == [date]


def test_only_dates_of_one_meaning_give_an_order() -> None:
    assert are_sortable(["2024-06-11", "2023"])
    assert are_sortable(["2024-W24", "2024-W02"])
    for dates in (["240611", "240702"], ["2024-06-11", ""], ["2024-06-11", "2024-W24"]):
        assert not are_sortable(dates)
