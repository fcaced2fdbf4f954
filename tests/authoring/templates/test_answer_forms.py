"""No prompt tells which option is right: forms are the same to the byte, whichever option of a template is."""

import re
from importlib.resources import files

import pytest

from agrotools.text.answer_form import answer_form
from agrotools.text.normalise import CJK
from agrotools_build.templates import load_templates
from agrotools_build.templates.slot_draft import SlotDraft

TEMPLATES = sorted(
    file.name.removesuffix(".toml")
    for file in files("agrotools_build.templates").iterdir()
    if file.name.endswith(".toml")
)
CASES = [
    pytest.param(template, draft, id=f"{template.language}-{template.template}-{draft.name}")
    for file in TEMPLATES
    for language in ("en", "zh")
    for template in load_templates(file, language)
    for draft in template.slots
    if draft.type in ("exact", "choice_set") and draft.options
]


def words_of(draft: SlotDraft) -> dict[str, str]:
    """A word for each brace of the slot; words that stand for several options hold two."""
    named = re.findall(r"\{(\w+)\}", draft.model_dump_json())
    plain = {name: f"{name.replace('_', ' ')} thing" for name in named}
    return plain | {
        name: f"first {name} | second {name}"
        for name in named
        if name in ("others", "other_orders", "other_families")
    }


def forms(draft: SlotDraft, language: str) -> dict[str, str]:
    """By each option the answer form of a sample in which it is right."""
    words = words_of(draft)
    options = dict.fromkeys(
        one
        for option in draft.options
        for one in re.sub(r"\{(\w+)\}", lambda m: words[m[1]], option).split(" | ")
    )
    found = {}
    for option in options:
        value = [option] if draft.type == "choice_set" else option
        slot = draft.model_copy(update={"from_": repr(value)}).slot(words, [], [], language)
        found[option] = answer_form((slot,))
    return found


@pytest.mark.parametrize(("template", "draft"), CASES)
def test_swapping_the_right_option_leaves_the_form_the_same(template, draft):
    found = forms(draft, template.language)
    assert len(set(found.values())) == 1
    listed = re.search(r"<(?:one|those that apply) of: (.*)>", next(iter(found.values())))[1].split(
        ", "
    )
    assert len(listed) == len(found)
    assert len({re.search(f"[{CJK}]", name) is not None for name in listed}) == 1, (
        "one language in a list"
    )
