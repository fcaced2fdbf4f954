"""Wiki markup to plain text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.knowledge.corpus.documents import plain_text

PAGE = """{{Taxobox | name = 水稻 | image = [[File:a.jpg|thumb|x {{y}}]] }}
'''水稻'''（{{lang-la|Oryza}}；学名：''Oryza sativa''）是[[禾本科]][[稻属|稻屬植物]]。<ref name="a">{{cite
web}}</ref><ref name=b/>
<!-- nobody reads this -->
[[File:Rice.jpg|thumb|一张[[稻田]]的照片]]
== 病害 ==
* [[纹枯病]]：由-{zh-hans:立枯丝核菌; zh-hant:立枯絲核菌}-引起<br />多在[//a.example 高温]下发生。-{H|甲=>zh-cn:乙;}-
{| class="wikitable"
! a !! b
|-
| 1 || {{x|}}
|}
a < b and c &lt; d&nbsp;e, H<sub>2</sub>O, <nowiki>kept</nowiki>
[[Category:稻|*]][[en:Rice]][[:植物]]
__NOTOC__
"""


def test_a_page_reads_as_a_reader_sees_it():
    assert plain_text(PAGE).split("\n") == [
        "水稻（学名：Oryza sativa）是禾本科稻屬植物。", "病害", "纹枯病：由立枯丝核菌引起", "多在高温下发生。",
        "a < b and c < d e, H2O, kept", "植物",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("a {{b|{{c}}|d}} e", "a e"), ("{{unclosed a", "unclosed a"), ("[[a|b]]", "b"),
        ("[[a (plant)|]]", "a (plant)"), ("x [[Image:a.png|an [[apple|Apple]]]] y", "x y"),
        ("[[文件:图.jpg|缩略图|说明]]尾", "尾"), ("{| \n| a {{b}}\n{|\n| inner\n|}\n|}\nend", "end"),
        ("-{稻}-米", "稻米"),
        ("-{{{b}}稻}-", "稻"), ("-{zh-tw:電腦; zh-cn:计算机}-", "计算机"),
        ("-{A|zh-hans:博客; zh-hant:部落格}-", "博客"),
        ("<REF>x</REF>a<ref>never closed", "anever closed"), ("E = <math>mc^2</math>.", "E = ."),
        ("a<!-- b -->c<!-- never closed", "ac"), ("=== 三级 ===\n# one\n#: two\n----\nend", "三级\none\ntwo\nend"),
        ("&lt;ref&gt; &amp;amp;", "<ref> &amp;"),
    ],
)  # fmt: skip
def test_pieces_of_markup(wikitext: str, plain: str):
    assert plain_text(wikitext) == plain


_WORDS = st.text(st.sampled_from("稻麦病虫 abcXYZ019。，.?!\n"), max_size=30)


@given(st.lists(_WORDS, max_size=8))
def test_text_without_markup_stays(parts: list[str]):
    text = "x".join(parts)
    assert plain_text(text).split() == text.split()


@given(st.text(st.sampled_from("{}[]|<>-!'=*#:;&_/ \nrefab稻"), max_size=200))
def test_no_text_is_too_odd(wikitext: str):
    found = plain_text(wikitext)
    assert "\n\n" not in found
    assert found == found.strip()


@pytest.mark.parametrize(
    "part",
    [
        "{{", "[[", "-{", "<!--", "<ref>", "[[a|", "{|\n", "'", "{{a}}",
    ],
)  # fmt: skip
def test_no_page_takes_longer_than_its_length(part: str):
    """A step that went over the rest of the text at each mark would take minutes here."""
    for text in (part * (100_000 // len(part)), part * 5_000 + "x" * 100_000 + "]]" * 5_000):
        plain_text(text)
