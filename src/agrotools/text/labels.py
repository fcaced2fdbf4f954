"""Names of items and labels of options, compared without case, widths, and marks around them."""

from collections.abc import Iterable
from functools import lru_cache

from agrotools.core.form_item import FormItem
from agrotools.text.normalise import late_pattern, normalise

_JOINED = late_pattern(r"(?<=[^\W\d_])[-_](?=[^\W\d_])")
_MARKS = " \t*`_\"'|,;。.!"
_MARKS_OF_NAMES = _MARKS + ">#•+~-"


def label_key(text: str) -> str:
    """Return the label of an option as it is compared; hyphens between words are spaces."""
    return _JOINED.sub(" ", normalise(text).strip("<>[]{}" + _MARKS))


def name_key(name: str) -> str:
    """Return the name of an item as it is compared; underscores are spaces."""
    return normalise(name).strip(_MARKS_OF_NAMES).replace("_", " ")


def item_names(items: Iterable[FormItem]) -> dict[str, str]:
    """Return the names of items by what may head their column or line: label or name, as :func:`name_key` writes it."""
    names = dict[str, str]()
    for item in items:
        names.setdefault(name_key(item.label), item.name)
    return names | {name_key(item.name): item.name for item in items}


@lru_cache(maxsize=1_000)
def option_names(item: FormItem) -> dict[str, str]:
    """Return the options of ``item`` by their names as :func:`label_key` writes them."""
    known = {label_key(alias): choice for choice, names in item.aliases.items() for alias in names}
    return known | {label_key(choice): choice for choice in item.choices}
