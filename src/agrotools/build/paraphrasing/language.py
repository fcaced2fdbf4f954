"""Whether two texts are in the same language: by their letters, and for English by its small words."""

import re

from agrotools.text.normalise import CJK, normalise

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_OTHER_EAST_ASIAN = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
_LATIN_WORD = re.compile(r"[a-z]{2,}")
_ENGLISH = frozenset(
    """
    the an of is are was were be been how what which where when who do does did can could would should will may in on at
    to for from by with and or if than that this these those it its there here my our your me we you they them have has
    had not no please any all both each much many more less between as
    """.split()
)
_NOT_ENGLISH = frozenset(
    """
    der das den dem ein eine ist sind wie und oder nicht auf mit von zu im welche welcher bitte viele viel
    le les des du une est sont et ou dans sur avec pour combien quel quelle quelles que qui sur ces cette
    el los las una del es son y o en con por para cuanto cuantos cuantas cual que esta este
    il gli della delle dei uno sono con per quanti quante quale che questa questo
    het een van de zijn hoeveel welke niet met voor
    """.split()
)


def other_language(variant: str, original: str) -> str | None:
    """What shows that ``variant`` is in another language than ``original``; None where nothing does."""
    if _OTHER_EAST_ASIAN.search(variant) and not _OTHER_EAST_ASIAN.search(original):
        return "Japanese or Korean letters"
    mine, theirs = len(_HAN.findall(variant)), len(_HAN.findall(original))
    if theirs:
        if mine < theirs / 2:
            return "less Chinese"
        strange = _words(variant) - _words(original)
        return f"the words {', '.join(sorted(strange))}" if strange else None
    if mine:
        return "Chinese characters"
    new = {letter for letter in variant if letter.isalpha() and not letter.isascii()} - set(original)
    if new:
        return f"the letters {''.join(sorted(new))}"
    words, known = re.findall(r"[a-z]+", normalise(variant)), re.findall(r"[a-z]+", normalise(original))
    if sum(word in _ENGLISH for word in known) < 2:
        return None  # Too little of the original to tell what language it is.
    english, strange_words = (sum(word in those for word in words) for those in (_ENGLISH, _NOT_ENGLISH))
    return "few English words" if english < 2 or strange_words >= english else None


def _words(text: str) -> set[str]:
    return set(_LATIN_WORD.findall(re.sub(f"[{CJK}]", " ", normalise(text))))
