"""Replies made to mislead a reader of choices, with gold known from how they were put together.

The phrases (``hard_phrases.toml``) are written for this file alone: nothing is taken from the reader or its words. A
reply states a drawn set of letters, in one of many forms of naming them, between parts that name other letters:
reasoning, hypotheses, common mistakes, words with capital letters, explanations, answers taken back, text cut off.
"""

import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Reply = dict[str, Any]
Made = tuple["Item", str, list[str] | None]

PHRASES: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("hard_phrases.toml").read_text("utf-8"))
TOPICS: tuple[tuple[str, ...], ...] = (
    ("小麦", "玉米", "大豆", "棉花", "油菜", "花生", "甘薯"),
    ("蚜虫", "红蜘蛛", "粉虱", "蓟马", "斜纹夜蛾", "小菜蛾", "金龟子"),
    ("尿素", "过磷酸钙", "硫酸钾", "碳酸氢铵", "硼砂"),
    ("霜霉病", "灰霉病", "白粉病", "炭疽病", "根腐病", "青枯病"),
    ("黏土", "壤土", "砂土", "黑土", "红壤"),
    ("嫁接", "扦插", "压条", "分株", "组织培养"),
    ("奶牛", "山羊", "绵羊", "蛋鸡", "肉鸭", "鹌鹑"),
    ("萌发", "分蘖", "孕穗", "开花", "乳熟"),
    ("降低地下水位", "增施有机肥", "合理轮作", "选用无病种苗", "覆盖地膜"),
)
ENGLISH_TOPICS: tuple[tuple[str, ...], ...] = (
    ("Powdery mildew", "Leaf rust", "Root rot", "Bacterial wilt", "Mosaic virus"),
    ("Maize", "Sorghum", "Barley", "Chickpea", "Cassava"),
    ("Crop rotation", "Deep tillage", "Resistant varieties", "Early sowing"),
)
TRUTHS: tuple[tuple[str, str], ...] = (("正确", "错误"), ("对", "错"), ("错误", "正确"), ("错", "对"), ("√", "×"))
TRADITIONAL = str.maketrans(
    "选择项这题应该为确错误对说结论综后认为还过时间发现将会实际与关乱从业产农麦绵鸡鸭鹌红壤黏组织压条灰霉无种",
    "選擇項這題應該為確錯誤對說結論綜後認為還過時間發現將會實際與關亂從業產農麥綿雞鴨鵪紅壤黏組織壓條灰黴無種",
)


class Item(NamedTuple):
    kind: str
    options: dict[str, str]
    english: bool = False

    @property
    def letters(self) -> list[str]:
        return list(self.options)


def hard_replies(seed: int = 20, count: int = 460) -> list[Reply]:
    """``count`` different replies, in turn from each class; the same for the same seed."""
    rng = random.Random(seed)
    replies: list[Reply] = []
    names = list(CLASSES)
    while len(replies) < count:
        name = names[len(replies) % len(names)]
        item, reply, gold = CLASSES[name](rng)
        row = {"class": name, "kind": item.kind, "options": item.options, "reply": reply, "gold": gold}
        if row not in replies:
            replies.append(row)
    return replies


def phrase(rng: random.Random, kind: str) -> str:
    return rng.choice(PHRASES[kind])


def single(rng: random.Random) -> Item:
    topic = rng.choice(TOPICS)
    return Item("single", lettered(rng, topic, rng.randint(4, min(7, len(topic)))))


def multiple(rng: random.Random) -> Item:
    return Item("multiple", lettered(rng, rng.choice(TOPICS), rng.randint(3, 5)))


def english(rng: random.Random) -> Item:
    kind = rng.choice(["single", "single", "multiple"])
    return Item(kind, lettered(rng, rng.choice(ENGLISH_TOPICS), 4), english=True)


def truth(rng: random.Random) -> Item:
    return Item("true_false", dict(zip("AB", rng.choice(TRUTHS), strict=True)))


def lettered(rng: random.Random, topic: tuple[str, ...], size: int) -> dict[str, str]:
    return dict(zip("ABCDEFG", rng.sample(topic, size), strict=False))


def drawn(rng: random.Random, *kinds: Callable[[random.Random], Item]) -> tuple[Item, list[str]]:
    item = rng.choice(kinds)(rng)
    if item.kind != "multiple":
        return item, [rng.choice(item.letters)]
    return item, sorted(rng.sample(item.letters, rng.randint(2, len(item.letters) - (len(item.letters) > 3))))


def other(rng: random.Random, item: Item, gold: list[str]) -> str:
    return rng.choice([letter for letter in item.letters if letter not in gold] or item.letters)


def named(rng: random.Random, item: Item, gold: list[str], *, inside: bool) -> str:
    """The letters in one of many forms; ``inside`` a sentence, so with nothing behind them."""
    wide = rng.random() < 0.15
    letters = [chr(ord(letter) + 0xFEE0) if wide else letter for letter in gold]
    if len(gold) == 1:
        forms = PHRASES["one_letter"] + ([] if inside else PHRASES["one_letter_at_the_end"])
        return rng.choice(forms).format(letters[0], item.options[gold[0]])
    if not inside and rng.random() < 0.3:
        between = rng.choice(["、", "，", "；", " ", "和"])
        form = rng.choice(["{0}. {1}", "{0}（{1}）", "{0}.{1}" if between == "、" else "{0}、{1}", "{0} {1}"])
        return between.join(form.format(one, item.options[letter]) for one, letter in zip(letters, gold, strict=True))
    style = rng.randrange(4)
    if style == 0:
        return "".join(letters)
    if style == 1:
        return rng.choice(["、", "，", ",", " ", "；", ", ", "/", "和", " 、"]).join(letters)
    if style == 2:
        last = rng.choice(["和", "与", "及", "以及", " 和 "])
        return rng.choice(["、", "，", ", "]).join(letters[:-1]) + last + letters[-1]
    return "".join(rng.sample(letters, len(letters)))


def stated(rng: random.Random, item: Item, gold: list[str]) -> str:
    if not item.english:
        statement = phrase(rng, "statements")
        return statement.format(named(rng, item, gold, inside=not statement.rstrip("。\n ").endswith("}")))
    if len(gold) > 1:
        joined = rng.choice([", ".join(gold), ", ".join(gold[:-1]) + " and " + gold[-1]])
    else:
        form = rng.choice(["{0}", "{0}", "({0})", "{0}. {1}", "**{0}**"])
        joined = form.format(gold[0], item.options[gold[0]])
    return phrase(rng, "english_statements").format(joined, joined)


def misleading(rng: random.Random, item: Item, gold: list[str]) -> str:
    if item.english:
        return phrase(rng, "english_misleading").format(other(rng, item, gold)) + " "
    return phrase(rng, "misleading").format(other(rng, item, gold))


def walk(rng: random.Random, item: Item, gold: list[str]) -> str:
    """Every option in turn, with a verdict."""
    good, bad, line = phrase(rng, "good"), phrase(rng, "bad"), phrase(rng, "walk_lines")
    return "".join(
        line.format(letter, text, phrase(rng, "remarks"), good if letter in gold else bad)
        for letter, text in item.options.items()
    )


def a_statement(rng: random.Random) -> Made:
    item, gold = drawn(rng, single, single, multiple)
    return item, stated(rng, item, gold) + phrase(rng, "endings"), gold


def misled_first(rng: random.Random) -> Made:
    item, gold = drawn(rng, single, multiple)
    before = "".join(misleading(rng, item, gold) for _ in range(rng.randint(1, 3)))
    return item, before + stated(rng, item, gold) + phrase(rng, "endings"), gold


def explained_after(rng: random.Random) -> Made:
    """At times the explanation is cut off; the answer is not."""
    item, gold = drawn(rng, single, multiple)
    first = rng.choice([stated(rng, item, gold), "".join(gold), "、".join(gold) + "。"])
    after = phrase(rng, "explanations").format(other(rng, item, gold), other(rng, item, gold))
    if rng.random() < 0.3:
        after = after[: len(after) * 2 // 3]
    return item, first.rstrip() + "\n" + after, gold


def walked_through(rng: random.Random) -> Made:
    item, gold = drawn(rng, single, multiple)
    head = rng.choice(["逐项来看：\n", "", "我们逐一分析各选项。\n"])
    return item, head + walk(rng, item, gold) + "\n" + stated(rng, item, gold), gold


def walked_without_end(rng: random.Random) -> Made:
    """Only the verdicts say it."""
    item, gold = drawn(rng, single, multiple)
    return item, walk(rng, item, gold), gold


def thought_first(rng: random.Random) -> Made:
    item, gold = drawn(rng, single, multiple)
    wrong = [rng.choice([misleading(rng, item, gold), stated(rng, item, [other(rng, item, gold)])]) for _ in range(3)]
    statement = rng.choice([stated(rng, item, gold), "".join(gold)])
    return item, f"<think>\n{''.join(wrong)}\n</think>\n\n{statement}", gold


def among_domain_words(rng: random.Random) -> Made:
    item, gold = drawn(rng, single, multiple)
    return item, phrase(rng, "domain") + stated(rng, item, gold).rstrip() + "\n" + phrase(rng, "domain"), gold


def taken_back(rng: random.Random) -> Made:
    item, gold = drawn(rng, single, multiple)
    first = [other(rng, item, gold)] if item.kind == "single" else sorted({*gold[:-1], other(rng, item, gold)})
    before = stated(rng, item, first).rstrip() + rng.choice(["\n", "\n\n"])
    return item, before + phrase(rng, "turns") + stated(rng, item, gold), gold


def in_words(rng: random.Random) -> Made:
    item, gold = drawn(rng, single, multiple)
    words = [item.options[letter] for letter in gold]
    several = len(words) > 2
    text = "、".join(words[:-1]) + "和" + words[-1] if several else rng.choice(["、", "和", "，"]).join(words)
    return item, phrase(rng, "in_words").format(text), gold


def filled_in(rng: random.Random) -> Made:
    """The question repeated with the letter in its brackets."""
    item, gold = drawn(rng, single)
    return item, phrase(rng, "blanks").format(gold[0]), gold


def boxed_or_keyed(rng: random.Random) -> Made:
    item, gold = drawn(rng, single, multiple)
    before = misleading(rng, item, gold) if rng.random() < 0.7 else ""
    run, quoted = "".join(gold), ", ".join(f'"{letter}"' for letter in gold)
    forms = {"run": run, "close": "、".join(gold), "comma": ",".join(gold), "quoted": quoted, "small": run.lower()}
    return item, before + "\n" + phrase(rng, "boxed").format(**forms), gold


def listed_in_lines(rng: random.Random) -> Made:
    item = multiple(rng)
    gold = sorted(rng.sample(item.letters, rng.randint(2, max(2, len(item.letters) - 1))))
    bullet, tail = rng.choice(["- ", "* ", "• ", "", "{0}. "]), rng.choice(["", ". {}", "（{}）", " {}"])
    lines = [bullet.format(place) + letter + tail.format(item.options[letter]) for place, letter in enumerate(gold, 1)]
    return item, phrase(rng, "line_heads") + "\n".join(lines), gold


def by_exclusion(rng: random.Random) -> Made:
    item = multiple(rng)
    out = rng.choice(item.letters)
    return item, phrase(rng, "exclusion").format(out), [letter for letter in item.letters if letter != out]


def all_at_once(rng: random.Random) -> Made:
    item = multiple(rng)
    return item, phrase(rng, "all").format("零一两三四五"[len(item.letters)]), item.letters


def true_or_false(rng: random.Random) -> Made:
    item = truth(rng)
    value = rng.random() < 0.5
    letter = next(key for key, text in item.options.items() if (text in ("正确", "对", "√")) == value)
    words = {
        "said": phrase(rng, "true" if value else "false"),
        "fixed": "正确" if value else rng.choice(["错误", "不正确", "有误"]),
        "opposite": "错误" if value else "正确",
    }
    return item, phrase(rng, "judged").format(letter=letter, text=item.options[letter], **words), [letter]


def in_english(rng: random.Random) -> Made:
    item, gold = drawn(rng, english)
    before = "".join(misleading(rng, item, gold) for _ in range(rng.randint(0, 2)))
    return item, before + stated(rng, item, gold), gold


def in_traditional(rng: random.Random) -> Made:
    item, gold = drawn(rng, single, multiple)
    return item, (misleading(rng, item, gold) + stated(rng, item, gold)).translate(TRADITIONAL), gold


def spaced_or_repeated(rng: random.Random) -> Made:
    item, gold = drawn(rng, single)
    return item, phrase(rng, "spaced").format(gold[0]), gold


def cut_off(rng: random.Random) -> Made:
    """No answer yet."""
    item, gold = drawn(rng, single, multiple)
    head = rng.choice(["本题考查基础知识。", ""])
    return item, head + misleading(rng, item, gold) + phrase(rng, "cut"), None


def no_answer(rng: random.Random) -> Made:
    item, _ = drawn(rng, single, multiple, truth)
    return item, "".join(rng.sample(PHRASES["domain"], rng.randint(0, 3))) + phrase(rng, "none"), None


def not_offered(rng: random.Random) -> Made:
    item, _ = drawn(rng, single, multiple, truth)
    return item, phrase(rng, "not_offered").format(chr(ord(item.letters[-1]) + rng.randint(1, 2))), None


def at_odds(rng: random.Random) -> Made:
    """Two answers of a single-choice question, and nothing to choose between them."""
    item, _ = drawn(rng, single)
    return item, phrase(rng, "at_odds").format(*rng.sample(item.letters, 2)), None


def only_excluded(rng: random.Random) -> Made:
    item, _ = drawn(rng, single)
    return item, phrase(rng, "excluded").format(*rng.sample(item.letters, 2)), None


CLASSES: dict[str, Callable[[random.Random], Made]] = {
    function.__name__.replace("_", " "): function
    for function in (
        *(a_statement, misled_first, explained_after, walked_through, walked_without_end, thought_first),
        *(among_domain_words, taken_back, in_words, filled_in, boxed_or_keyed, listed_in_lines, by_exclusion),
        *(all_at_once, true_or_false, in_english, in_traditional, spaced_or_repeated),
        *(cut_off, no_answer, not_offered, at_odds, only_excluded),
    )
}
