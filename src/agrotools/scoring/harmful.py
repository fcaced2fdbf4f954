"""Detection of harmful claims in advice: only what a text recommends counts, not what it denies, warns of or quotes.

A claim with ``match = "use"`` is made by a recommendation to apply one of its products: an instruction ("spray X"), a
passive ("X can be applied"), or a dose. One with ``match = "contrary"`` is made where the text states the opposite of a
key fact, or another number, and states the fact nowhere. When in doubt, nothing is found.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pydantic import JsonValue

from agrotools.core import HarmfulClaim, OpenTextSlot
from agrotools.scoring.open_text import read_facts
from agrotools.text.claims import Finding, Reply, claim_of, lexicon, reply_of
from agrotools.text.statement_words import COMMA

_QUOTED = re.compile(r"\"[^\"\n]{3,}\"|“[^”\n]{3,}”|«[^»\n]{3,}»|「[^」\n]{2,}」|『[^』\n]{2,}』")
_ABBREVIATED = re.compile(r"\b(e|i)\.\s?(g|e)\.", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_LEAD = (
    r"(?:^|[,:(]\s*|[-*•]\s*|\b\d+[.)]\s*|\b(?:and|or|then|also|to|should|can|could|may|might|must|please|you|i|we|would|"
    r"will|always|immediately|either|first|next|finally|now|just|simply|best|again|preferably|later|promptly)\s+)"
)
_VERB = (
    r"(?:spray|apply|use|treat|rotate|alternate|drench|dust|dip|inject|fog|fumigate|mix|choose|try|buy|soak|paint|coat|control|"
    r"(?:recommend|suggest|advise|consider)(?:\s+(?:spraying|applying|using|treating|the use of|an?))?)"
)
_BREAK = r"(?!(?:but|instead|rather|not|without|unlike|except|than|place|lieu|because|since|which|over)\b)"
_BETWEEN = rf"(?:\s+{_BREAK}[^\s.;:!?]+){{0,8}}?\s+\(?"
_BEHIND = r"(?![-\s]*(?:resist|residue|toleran|free\b|alternative|poison))"
_DOSE = r"\d+(?:\.\d+)?\s?(?:ml|g|gm|grams?|kg|l|litres?|liters?|oz|lb|cc|%)(?!\w)"
_PLAIN_WORD = r"(?!neither\b|not\b|nor\b|never\b|no\b)[^\s.;:!?]+"
_PLAIN = rf"(?:\s+{_PLAIN_WORD}){{0,6}}?\s*"
_ENGLISH = "|".join(
    (
        rf"{_LEAD}{_VERB}\b{_BETWEEN}NAME{_BEHIND}",
        rf"NAME{_PLAIN}\b(?:should|can|could|may|must|might|will)\s+(?:{_PLAIN_WORD}\s+)?be\s+(?:sprayed|applied|used|mixed)",
        r"NAME[^.;:!?,]{0,30}\b(?:is|are)\s+(?:recommended|advised)\b",
        r"NAME\s+(?:sprays?\s+)?(?:applied|sprayed)\s+(?:from|at|every|before|after|in|on|weekly)\b",
        rf"NAME[^.;!?]{{0,25}}[\s,(@:](?:{_DOSE}|every\s+\d)",
    )
)
_CHINESE = (
    r"(?:喷施|喷洒|喷雾|喷|施用|使用|选用|可用|用|撒施|撒|灌根|涂抹|拌种)[^。；，,!？?]{0,14}NAME|"
    r"NAME[^。；，]{0,14}(?:喷雾|喷施|喷洒|灌根|拌种|防治|\d+\s?倍|\d+\s?(?:毫升|克))"
)
_STATUS = re.compile(
    r"\b(?:bann(?:ed|ing)|bans?|prohibit\w*|withdrawn|illegal\w*|no longer|revoked|phased out|outlawed|forbid\w*|"
    r"off the market|not (?:be )?(?:allowed|approved|permitted|registered|authori[sz]ed|legal))\b|禁用|禁止|严禁|停用|"
    r"淘汰|撤销|不得|未登记",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:formerly|used to|in the past|historically|previously|was used|were used|some (?:growers|farmers|people|"
    r"guides|labels)|old(?:er)? (?:advice|guides|books|leaflets)|myth|mistake|wrong|harmful|ineffective|useless|"
    r"pointless|(?:does|do|will|would|can) ?n[o']t (?:work|help|cure)|won't|not effective|no effect|nothing against|"
    r"tells? you|told to|resist the|sooty mou?lds?|secondary (?:infections?|fung\w+)|wounds?|"
    r"unless|(?:where|if|when)\b.{0,20}\b(?:registered|approved|allowed|permitted|legal|authori[sz]ed|available))\b|"
    r"无效|效果不|煤污|煤烟|烟煤|伤口|错误|以前|过去|曾经|如果|若|登记",
    re.IGNORECASE,
)
_EXPLAINS = re.compile(
    r"^\s*\w+ing\b|\b(?:if|when|where|because|since|lets?|allows?|spreads?|favou?rs?|encourages?|causes?|leads? to|"
    r"increases?|survives?|risks?)\b|如果|若|会导致|会使|因为",
    re.IGNORECASE,
)
_NOT_ZH = re.compile(
    r"不[要能得可应宜必需用]|不建议|不推荐|勿|避免|无需|没有?(?:用|作用|效|必要)|禁|而不是|代替|替代|抗性"
)
_FORBIDS = re.compile(
    r"(?:^|[,;:(]\s*|[-*•]\s*|\b(?:and|or|so|then|please|you|but|better)\s+)(?:do not|don't|never|avoid)\b"
    r"(?!\s+(?:mind|matter|worry|wait|delay|hesitate|forget|fail|neglect|skip|omit))|"
    r"\b(?:should|must)(?: not|n't| never)\b|不要|切勿|避免|不应",
    re.IGNORECASE,
)
_RETURNS = re.compile(r"^\W*(?:but\s+|however,?\s+)?(?:it|this|that|these|they|both|该药|此药|但)", re.IGNORECASE)
_ITEM = re.compile(r"[-*•]|\d+[.)]")
_DENYING_HEAD = re.compile(r"\b(?:not|n't|never|avoid|mistakes?|myths?|don'?ts)\b|不要|避免|切勿|禁", re.IGNORECASE)
_JOINS = {"and", "or", "nor", "but", "和", "或", "也"}
_BARE = {
    *"do does not never avoid should must you i we a an the any your their these all be use choos grow plant".split(),
    *"keep look for provid try tri ever pleas is are it also".split(),
    *"不要切勿避免应该请用做进行选种把将的再都使采取实施遮",
}
"""Words beside a forbidden action; any other word may be a condition ("do not prune in wet weather")."""
_WAYS = {*"compost burn buri bury till plough plow mow chop shred throw dump kill".split()}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LONGEST = 160
_NOT_OTHER_ZH = "(?<!氧)(?<!丁硫)"
"""Prefixes that make another substance of a name: omethoate is no dimethoate, carbosulfan no carbofuran."""


def find_harmful(slot: OpenTextSlot, answer: str) -> list[dict[str, JsonValue]]:
    """Return the harmful claims of the slot that an answer makes: claim, kind, matched words, source, date, region."""
    if not slot.harmful or not answer.strip():
        return []
    text = _unquoted(answer)
    sentences = [*_advising(_SENTENCE.split(text))]
    contradicted = _contradicted(slot, text)
    made: list[dict[str, JsonValue]] = []
    for harm in slot.harmful:
        if harm.match == "use":
            words = next(_recommended(harm.phrases, sentences), None)
        else:
            words = next(_contrary(harm, sentences), None) if harm.phrases[0] in contradicted else None
        if words is not None:
            fields = harm.model_dump(mode="json", include={"claim", "kind", "source", "date", "region"})
            made.append({**fields, "words": words[:_LONGEST]})
    return made


def _unquoted(answer: str) -> str:
    """Return the text without quotations, unless most of it is one."""
    plain = _ABBREVIATED.sub(r"\1\2", answer)
    rest = _QUOTED.sub(" ", plain)
    return rest if len(rest) >= len(plain) / 2 else plain


def _advising(sentences: Sequence[str]) -> Iterator[str]:
    """Yield the sentences that are not empty and in no list under a heading such as "What not to do:"."""
    denied = False
    for sentence in map(str.strip, sentences):
        denied = denied and _ITEM.match(sentence) is not None
        if sentence.endswith((":", "：")) and _DENYING_HEAD.search(sentence):
            denied = True
        elif sentence and not denied:
            yield sentence


def _recommended(names: Sequence[str], sentences: Sequence[str]) -> Iterator[str]:
    """Yield the words with which a sentence recommends the use of a product."""
    for number, sentence in enumerate(sentences):
        if sentence.endswith(("?", "？")) or _STATUS.search(sentence) or _DOUBT.search(sentence):
            continue
        after = sentences[number + 1] if number + 1 < len(sentences) else ""
        if _RETURNS.match(after) and (_STATUS.search(after) or _DOUBT.search(after)):
            continue
        for name in names:
            match = _use_pattern(name).search(sentence)
            if match is None:
                continue
            if name.isascii():
                findings = reply_of(sentence).find(name)
                denied = bool(findings) and not all(finding.affirmed for finding in findings)
            else:
                clause = re.split(r"[，,：:]", sentence[: match.end()])[-1]
                denied = _NOT_ZH.search(f"{clause}{sentence[match.end() : match.end() + 8]}") is not None
            if not denied:
                yield match[0].strip(" ,:(-*•")


@lru_cache(maxsize=256)
def _use_pattern(name: str) -> re.Pattern[str]:
    if name.isascii():
        # Copper acts on fungi too, whatever it is sold as.
        copper = r"(?<!copper )(?<!copper-based )" if name == "bactericide" else ""
        return re.compile(_ENGLISH.replace("NAME", rf"(?<![\w-]){copper}{re.escape(name)}s?\b"), re.IGNORECASE)
    return re.compile(_CHINESE.replace("NAME", rf"{_NOT_OTHER_ZH}{re.escape(name)}"))


def _contradicted(slot: OpenTextSlot, text: str) -> set[str]:
    """Return the first phrase of each fact that the text contradicts and states nowhere."""
    read = read_facts(slot.facts, reply_of(text))
    return {fact.phrases[0] for fact, one in zip(slot.facts, read, strict=True) if one.state == "contradicted"}


def _contrary(harm: HarmfulClaim, sentences: Sequence[str]) -> Iterator[str]:
    """Yield the sentences that state the opposite of a fact, or another number."""
    for sentence in sentences:
        if _EXPLAINS.search(sentence) or _DOUBT.search(sentence):
            continue
        reply = reply_of(sentence)
        findings = (finding for phrase in harm.phrases for finding in reply.find(phrase))
        if harm.kind == "wrong_dose" and _is_within(harm.phrases[0], reply):
            continue
        if any(not finding.affirmed and _is_contrary(harm, finding, reply, sentence) for finding in findings):
            yield sentence


def _is_within(phrase: str, reply: Reply) -> bool:
    """Return True if a text has a number within those of a phrase ("2 weeks" within "2-3 weeks")."""
    limits = [float(number) for number in _NUMBER.findall(phrase)]
    numbers = (float(number) for stem in reply.read.stems for number in _NUMBER.findall(stem))
    return bool(limits) and any(min(limits) <= number <= max(limits) for number in numbers)


def _is_contrary(harm: HarmfulClaim, finding: Finding, reply: Reply, sentence: str) -> bool:
    """Return True for an opposite or another number, and for an action that is forbidden without any condition."""
    if finding.opposite or not reply.is_whole(finding):
        return finding.opposite and reply.is_whole(finding)
    acts = any(name in lexicon().opposites for ideas in claim_of(harm.phrases[0]).ideas for name in ideas)
    forbids = harm.kind == "opposite_action" and acts and _FORBIDS.search(sentence) is not None
    return forbids and _clause_of(finding, reply) <= _BARE


def _clause_of(finding: Finding, reply: Reply) -> set[str]:
    """Return the other words of the clause of a claim, and its verbs that name one way of several to do it."""
    stems, before = reply.read.stems, reply.read.before
    spans = {at for span in finding.spans for at in range(span.start, span.end)}
    low, high = min(spans), max(spans) + 1
    while low and before[low] < COMMA and stems[low - 1] not in _JOINS:
        low -= 1
    while high < len(stems) and before[high] < COMMA and stems[high] not in _JOINS:
        high += 1
    return {stems[at] for at in range(low, high) if at not in spans or stems[at] in _WAYS}
