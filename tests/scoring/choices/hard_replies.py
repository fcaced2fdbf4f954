"""Replies made to mislead a reader of choices, with gold known from how they were put together.

The phrases are written for this file alone: nothing is taken from the reader or its words. A reply is a sentence that
states a drawn set of letters, in one of many forms of naming them, between parts that name other letters: reasoning,
hypotheses, common mistakes, words with capital letters, explanations, answers taken back, text cut off.
"""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

Reply = dict[str, Any]

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
FULL_WIDTH = {chr(code): chr(code + 0xFEE0) for code in range(33, 127)}
TRADITIONAL = str.maketrans(
    "选择项这题应该为确错误对说结论综后认为还过时间发现将会实际与关乱从业产农麦绵鸡鸭鹌红壤黏组织压条条壮灰霉应无种",
    "選擇項這題應該為確錯誤對說結論綜後認為還過時間發現將會實際與關亂從業產農麥綿雞鴨鵪紅壤黏組織壓條條壯灰黴應無種",
)


class Item(NamedTuple):
    kind: str
    options: dict[str, str]
    english: bool = False

    @property
    def letters(self) -> list[str]:
        return list(self.options)


def hard_replies(seed: int = 20, count: int = 320) -> list[Reply]:
    """``count`` replies, in turn from each class; the same for the same seed."""
    rng = random.Random(seed)
    made: list[Reply] = []
    names = list(CLASSES)
    while len(made) < count:
        name = names[len(made) % len(names)]
        item, reply, gold = CLASSES[name](rng)
        row = {"class": name, "kind": item.kind, "options": item.options, "reply": reply, "gold": gold}
        if row not in made:
            made.append(row)
    return made


# --- questions -------------------------------------------------------------------------------------------------------


def single(rng: random.Random) -> Item:
    topic = rng.choice(TOPICS)
    return Item("single", _lettered(rng, topic, rng.randint(4, min(7, len(topic)))))


def multiple(rng: random.Random) -> Item:
    topic = rng.choice(TOPICS)
    return Item("multiple", _lettered(rng, topic, rng.randint(3, 5)))


def english(rng: random.Random, kind: str = "single") -> Item:
    return Item(kind, _lettered(rng, rng.choice(ENGLISH_TOPICS), 4), english=True)


def truth(rng: random.Random) -> Item:
    return Item("true_false", dict(zip("AB", rng.choice(TRUTHS), strict=True)))


def _lettered(rng: random.Random, topic: tuple[str, ...], size: int) -> dict[str, str]:
    return dict(zip("ABCDEFG", rng.sample(topic, size), strict=False))


def draw(rng: random.Random, item: Item) -> list[str]:
    if item.kind != "multiple":
        return [rng.choice(item.letters)]
    return sorted(rng.sample(item.letters, rng.randint(2, len(item.letters) - (len(item.letters) > 3))))


def other(rng: random.Random, item: Item, gold: list[str]) -> str:
    return rng.choice([letter for letter in item.letters if letter not in gold] or item.letters)


# --- naming options --------------------------------------------------------------------------------------------------


def named(rng: random.Random, item: Item, gold: list[str], *, plain: bool = False) -> str:
    """The letters in one of many forms."""
    wide = rng.random() < 0.15
    shown = [FULL_WIDTH[letter] if wide else letter for letter in gold]
    if len(gold) == 1:
        forms = ["{}"] * 5 + ["（{}）", "“{}”", "**{}**", "「{}」", "选项{}", "({})", " {} ", "《{}》", "`{}`"]
        if not plain:
            forms += ["{}选项", "{}项", "{}. " + item.options[gold[0]], "{}（" + item.options[gold[0]] + "）"]
            forms += [
                "{}、" + item.options[gold[0]],
                "{}：" + item.options[gold[0]],
                "**{}. " + item.options[gold[0]] + "**",
            ]
        return rng.choice(forms).format(shown[0])
    if not plain and rng.random() < 0.3:
        between = rng.choice(["、", "，", "；", " ", "和"])
        form = rng.choice(["{0}. {1}", "{0}（{1}）", "{0}、{1}", "{0} {1}"])
        if between == "、" and form == "{0}、{1}":
            form = "{0}.{1}"
        return between.join(form.format(one, item.options[letter]) for one, letter in zip(shown, gold, strict=True))
    style = rng.randrange(4)
    if style == 0:
        return "".join(shown)
    if style == 1:
        return rng.choice(["、", "，", ",", " ", "；", ", ", "/", "和", " 、"]).join(shown)
    if style == 2:
        return (
            rng.choice(["、", "，", ", "]).join(shown[:-1]) + rng.choice(["和", "与", "及", "以及", " 和 "]) + shown[-1]
        )
    return "".join(rng.sample(shown, len(shown)))


STATEMENTS = (
    "综合判断，答案就是{}。", "故本题应选{}。", "正确答案应当是：{}", "本题的正确选项为{}。", "由此可知答案为{}", "我的选择：{}", "毫无疑问，选{}。",
    "这题选{}", "选：{}", "答：{}", "答：选{}。", "【正确答案】：{}", "最佳答案：{}", "该题答案即{}。", "应选择的选项是 {} 。", "答案 {}", "答案选{}。", "正解是{}。",
    "因此我给出的答案是：{}。", "所以，正确答案：{}", "综上所述，应当选{}。", "[答案] {}", "答案——{}", "因此，最终的选择是{}。", "所以本题选择：{}。", "正确选项：{}", "故{}当选。",
    "可以确定{}为正确答案。", "{}是正确选项。", "结论是：选{}", "答案=>{}", "本题答案：\n{}", "答案是：\n\n{}\n", "我会选{}。", "只能选{}。", "答案显然是{}。", "考虑到以上因素，我选{}。",
    "根据题意，应该选{}", "＊＊答案＊＊：{}", "**正确答案**：{}", "最后选{}。", "最终答案为{}。", "最终我的答案是 {}。",
)  # fmt: skip
ENGLISH_STATEMENTS = (
    "The correct answer should be {}.", "So the final answer would be {}.", "I believe the answer is {}.", "Therefore, I'd choose {}.", "ANSWER: {}", "Ans: {}", "My final answer is {}.",
    "The right answer here is {}.", "Hence the answer: {}", "Option {} it is: the answer is {}.", "The answer must be {}", "I would select {}.", "Thus, {} is the correct answer.", "**Final Answer:** {}",
    "The best option is {}.", "Correct option: {}", "The answer is therefore {}.", "Based on this, the correct choice is {}.", "Solution: the answer is {}.",
)  # fmt: skip


def stated(rng: random.Random, item: Item, gold: list[str]) -> str:
    if item.english:
        joined = (
            gold[0] if len(gold) == 1 else rng.choice([", ".join(gold), " and ".join([", ".join(gold[:-1]), gold[-1]])])
        )
        if len(gold) == 1:
            joined = rng.choice([joined, joined, f"({joined})", f"{joined}. {item.options[gold[0]]}", f"**{joined}**"])
        return rng.choice(ENGLISH_STATEMENTS).format(joined, joined)
    statement = rng.choice(STATEMENTS)
    return statement.format(named(rng, item, gold, plain=not statement.rstrip("。\n ").endswith("}")))


# --- parts that mislead ----------------------------------------------------------------------------------------------

DOMAIN = (
    "土壤的C/N比会影响分解速度。", "维生素A和B族维生素都与此无关。", "DNA鉴定、ATP含量和CO2浓度不在考查范围内。", "该地的A层土壤较厚，B层黏重。", "A型和B型小种的致病力有差异。",
    "pH值为5.5的D地块与EC值偏高的E地块除外。", "F1代与BC1代的表现不一。", "C3和C4植物的光补偿点不同。", "叶绿素a与叶绿素b的比例随光照变化。", "兽医用B超检查妊娠。", "用6-BA和GA3处理后更明显。",
    "注射维生素E、维生素C有一定作用。", "E. coli和B. subtilis是常见的细菌。", "D-木糖和L-精氨酸不影响结论。", "A公司和B公司的产品相近。", "Bt棉和DDT的历史这里不展开。",
)  # fmt: skip
MISLEADING = (
    "有些同学会误选{}，这是没有看清题目。", "如果题目问的是别的季节，那么应选{}。", "{}看似合理，其实是干扰项。", "很多人第一反应是{}，其实并不符合题意。", "不要选{}，那是常见的陷阱。", "{}的说法有误。",
    "若把条件改成水田，则答案是{}。", "为什么不选{}呢？因为题干强调的是北方。", "{}选项明显错误。", "这里不能选{}。", "{}不符合题意。", "先排除{}。", "容易错选{}。",
    "假如不考虑成本，那就选{}。", "{}与题干无关，可以排除。", "有人认为答案是{}，这种看法不成立。",
)  # fmt: skip
ENGLISH_MISLEADING = (
    "Many students pick {}, which is a mistake.", "{} is wrong because it needs more water.", "If the soil were acid, the answer would be {}.", "Do not choose {} here.", "Option {} can be ruled out.",
    "A hasty reader might say {}, but that ignores the season.", "{} is not correct.",
)  # fmt: skip
EXPLANATIONS = (
    "解析：{}的说法不准确。", "理由如下：{}多见于其他作物，{}则与题干的时间不符。", "（{}不选，因为与题意相反。）", "原因是{}所述内容不属于本题范围。", "说明：{}错在因果倒置。", "其他选项如{}均有明显漏洞。", "至于{}，教材中另有论述。",
    "【解析】本题考查基础知识，{}是干扰项。", "{}为什么错？因为顺序颠倒了。", "与{}相比，它更贴近题意。",
)  # fmt: skip
ENDINGS = (
    "",
    "",
    "",
    "\n希望对你有所帮助！",
    "\n\n如有疑问，欢迎继续提问。",
    "😊",
    "\n（以上内容由模型生成）",
    "\n\n---\n参考教材相关章节。",
    "</s>",
    "<|im_end|>",
)


def misleading(rng: random.Random, item: Item, gold: list[str]) -> str:
    if item.english:
        return rng.choice(ENGLISH_MISLEADING).format(other(rng, item, gold)) + " "
    return rng.choice(MISLEADING).format(other(rng, item, gold))


def walk(rng: random.Random, item: Item, gold: list[str]) -> str:
    """Every option in turn, with a verdict."""
    good = rng.choice(["符合题意", "正确", "说法正确", "对", "√", "是合适的"])
    bad = rng.choice(["不符合题意", "错误", "说法错误", "不对", "×", "不合适"])
    line = rng.choice(
        [
            "{0}. {1}：{2}，{3}。\n",
            "{0}项，{1}{2}，{3}；",
            "- **{0}**（{1}）{2}，{3}。\n",
            "选项{0}：{1}{2}，{3}。",
            "（{0}）{1}，{2}，{3}。\n",
        ]
    )
    remarks = ["与题干的条件有关", "在南方较常见", "多见于苗期", "受温度影响大", "教材中有叙述", "需要结合实际判断"]
    return "".join(
        line.format(letter, text, rng.choice(remarks), good if letter in gold else bad)
        for letter, text in item.options.items()
    )


def think(rng: random.Random, item: Item, gold: list[str]) -> str:
    inside = "".join(
        rng.choice([misleading(rng, item, gold), stated(rng, item, [other(rng, item, gold)])]) for _ in range(3)
    )
    return f"<think>\n{inside}\n</think>\n\n"


# --- classes ---------------------------------------------------------------------------------------------------------


def a_statement(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, single, multiple])(rng)
    gold = draw(rng, item)
    return item, stated(rng, item, gold) + rng.choice(ENDINGS), gold


def misled_first(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    before = "".join(misleading(rng, item, gold) for _ in range(rng.randint(1, 3)))
    return item, before + stated(rng, item, gold) + rng.choice(ENDINGS), gold


def explained_after(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    first = rng.choice([stated(rng, item, gold), "".join(gold), "、".join(gold) + "。"])
    wrong = [other(rng, item, gold), other(rng, item, gold)]
    after = rng.choice(EXPLANATIONS).format(*wrong)
    if rng.random() < 0.3:
        after = after[: len(after) * 2 // 3]
    return item, first.rstrip() + "\n" + after, gold


def walked_through(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    return (
        item,
        rng.choice(["逐项来看：\n", "", "我们逐一分析各选项。\n"])
        + walk(rng, item, gold)
        + "\n"
        + stated(rng, item, gold),
        gold,
    )


def walked_without_end(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    """Only the verdicts say it."""
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    return item, walk(rng, item, gold), gold


def thought_first(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    return item, think(rng, item, gold) + rng.choice([stated(rng, item, gold), "".join(gold)]), gold


def among_domain_words(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    parts = [rng.choice(DOMAIN), stated(rng, item, gold).rstrip() + "\n", rng.choice(DOMAIN)]
    return item, "".join(parts), gold


def taken_back(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    first = [other(rng, item, gold)] if item.kind == "single" else sorted({*gold[:-1], other(rng, item, gold)})
    turn = rng.choice(
        [
            "等等，刚才看错了题目。",
            "不对，重新审题后发现上面有误。",
            "抱歉，上面的回答有误。",
            "更正一下：",
            "仔细一想，前面的判断不对。",
            "哦，我弄错了，",
            "Wait, 再检查一遍。",
            "重新思考之后，",
            "前面说错了，",
        ]
    )
    return item, stated(rng, item, first).rstrip() + rng.choice(["\n", "\n\n"]) + turn + stated(rng, item, gold), gold


def in_words(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    words = [item.options[letter] for letter in gold]
    text = rng.choice(["、", "和", "，"]).join(words) if len(words) < 3 else "、".join(words[:-1]) + "和" + words[-1]
    form = rng.choice(
        [
            "{}",
            "{}。",
            "答案是{}。",
            "应该是{}。",
            "正确答案：{}",
            "**{}**",
            "本题应选{}。",
            "我认为是{}。",
            "答案为“{}”",
            "综上，应选{}。",
            "答：{}",
            "根据描述，应当是{}。",
        ]
    )
    return item, form.format(text), gold


def filled_in(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    """The question repeated with the letter in its brackets."""
    item = single(rng)
    gold = draw(rng, item)
    question = rng.choice(
        ["当地最主要的一种是（{}）。", "下列最合适的是（ {} ）", "该现象最可能与（{}）有关。", "其中最典型的是( {} )。"]
    )
    return item, question.format(gold[0]), gold


def boxed_or_keyed(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    before = misleading(rng, item, gold) if rng.random() < 0.7 else ""
    forms = [
        "$\\boxed{" + "".join(gold) + "}$", "\\boxed{\\text{" + "、".join(gold) + "}}", "$$\\boxed{\\mathrm{" + ",".join(gold) + "}}$$", "<answer>" + "".join(gold) + "</answer>",
        '{"answer": "' + "".join(gold) + '"}', '{"analysis": "略", "答案": ["' + '", "'.join(gold) + '"]}', "```json\n{\n  \"answer\": \"" + ",".join(gold) + "\"\n}\n```",
        "{'选项': '" + "".join(gold).lower() + "'}", "### 最终答案\n\n" + "".join(gold), "| 题号 | 答案 |\n|---|---|\n| 1 | " + "".join(gold) + " |", "\\textbf{答案：" + "".join(gold) + "}",
    ]  # fmt: skip
    return item, before + "\n" + rng.choice(forms), gold


def listed_in_lines(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = multiple(rng)
    gold = sorted(rng.sample(item.letters, rng.randint(2, max(2, len(item.letters) - 1))))
    bullet = rng.choice(["- ", "* ", "• ", "", "number"])
    tail = rng.choice(["", ". {}", "（{}）", " {}"])
    lines = [
        (f"{place}. " if bullet == "number" else bullet) + letter + tail.format(item.options[letter])
        for place, letter in enumerate(gold, 1)
    ]
    head = rng.choice(["正确答案：\n", "答案如下：\n", "", "应选择以下选项：\n", "**答案**：\n\n"])
    return item, head + "\n".join(lines), gold


def by_exclusion(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = multiple(rng)
    out = rng.choice(item.letters)
    gold = [letter for letter in item.letters if letter != out]
    form = rng.choice(
        [
            "除了{}以外，其他选项都对。",
            "除{}外均正确。",
            "只有{}不对，其余都正确。",
            "{}是错的，剩下的都对。",
            "{}错误，其余选项均正确。",
            "{}不选，其他都选。",
            "除{}项之外的都应该选。",
            "All except {}.",
        ]
    )
    return item, form.format(out), gold


def all_at_once(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = multiple(rng)
    count = "零一两三四五"[len(item.letters)]
    form = rng.choice(
        [
            "全选",
            "全部都选。",
            "以上选项都正确。",
            f"{count}个选项都对",
            f"{count}项均正确。",
            "答案：以上全部",
            "所有选项都正确",
            "应该全选。",
            "本题全选",
            f"{count}个都选",
        ]
    )
    return item, form, item.letters


def true_or_false(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = truth(rng)
    value = rng.random() < 0.5
    good = next(letter for letter, text in item.options.items() if text in ("正确", "对", "√"))
    gold = [good] if value else [letter for letter in item.letters if letter != good]
    said = rng.choice(
        ["正确", "对", "对的", "√", "正确的", "True", "是对的", "没错"]
        if value
        else ["错误", "错", "错的", "×", "不正确", "不对", "False", "有误"]
    )
    fixed = "正确" if value else rng.choice(["错误", "不正确", "有误"])
    form = rng.choice(
        [
            said, said + "。", f"答案：{said}", f"**{said}**", f"判断结果：{said}", f"这种说法是{fixed}的。" if fixed != "有误" else "这种说法有误。", f"{said}。理由是题干所述与实践{'相符' if value else '不符'}。",
            f"首先看题干。施肥要看苗、看天、看地，不能一概而论。因此，该表述{fixed}。", f"我认为本题的说法{fixed}。", f"{said}\n\n解析：不少人对此有不同看法，有的说对，有的说错。" if said in ("正确", "错误") else said,
            f"<think>可能{'错误' if value else '正确'}吧？再想想。</think>\n{said}", f"综上，题目中的观点{fixed}，选{gold[0]}。", f"{gold[0]}. {item.options[gold[0]]}", f"选{gold[0]}", f"（{said}）",
        ]
    )  # fmt: skip
    return item, form, gold


def in_english(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = english(rng, rng.choice(["single", "single", "multiple"]))
    gold = draw(rng, item)
    before = "".join(misleading(rng, item, gold) for _ in range(rng.randint(0, 2)))
    return item, before + stated(rng, item, gold), gold


def in_traditional(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    return item, (misleading(rng, item, gold) + stated(rng, item, gold)).translate(TRADITIONAL), gold


def spaced_or_repeated(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = single(rng)
    letter = rng.choice(item.letters)
    form = rng.choice(
        ["{0}\n{0}\n{0}", "答 案 ： {0}", "答案：{0}\n答案：{0}\n答案：{0}", "  {0}  ", "\n\n{0}\n\n", "{0}。{0}。", "Assistant: {0}", "答案：{0}<|endoftext|>", "{0}</s>", "{0}😊", "选{0}！！！", "答案是……{0}！", "嗯……{0}", "“{0}”。",
         "{0}\n\nHuman: 下一个问题：哪一种更耐旱？\nAssistant: 甘薯", "ANSWER：{0}", "{0} ", "就是{0}", "{0}吧"]
    )  # fmt: skip
    return item, form.format(letter), [letter]


def cut_off(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    """No answer yet."""
    item = rng.choice([single, multiple])(rng)
    gold = draw(rng, item)
    text = (
        rng.choice(["本题考查基础知识。", ""])
        + misleading(rng, item, gold)
        + rng.choice(
            [
                "综上所述，本题应选",
                "因此，正确答案是",
                "所以答案为：",
                "接下来看其他选项，",
                "下面继续分析",
                "那么，哪一个更合适呢",
            ]
        )
    )
    return item, text, None


def no_answer(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple, truth])(rng)
    form = rng.choice(
        [
            "很抱歉，我无法确定。",
            "请提供完整的题目。",
            "这个问题需要更多信息才能回答。",
            "我不是农业专家，不便作答。",
            "",
            "……",
            "答案：",
            "题目不完整，无法作答。",
            "Sorry, I cannot answer this question.",
            "请问您想了解哪方面的内容？",
            "无",
        ]
    )
    text = "".join(rng.sample(DOMAIN, rng.randint(0, 3))) + form
    return item, text, None


def not_offered(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = rng.choice([single, multiple, truth])(rng)
    letter = chr(ord(item.letters[-1]) + rng.randint(1, 2))
    form = rng.choice(["{}", "答案：{}", "选{}。", "正确答案是{}。", "应选{}", "**{}**", "\\boxed{{{}}}", "故选{}。"])
    return item, form.format(letter), None


def at_odds(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    """Two answers of a single-choice question, and nothing to choose between them."""
    item = single(rng)
    one, two = rng.sample(item.letters, 2)
    form = rng.choice(
        [
            "答案：{0}\n解析：略。\n故选{1}。",
            "选{0}或{1}",
            "{0}、{1}",
            "{0}或者{1}都可以",
            "正确答案是{0}。\n\n正确答案是{1}。",
            "{0}\n\n因此本题选{1}。",
            "应选{0}和{1}两项。",
            "在{0}和{1}之间难以取舍。",
            "答案：{0}/{1}",
            "\\boxed{{{0}}}\n\n\\boxed{{{1}}}",
        ]
    )
    return item, form.format(one, two), None


def only_excluded(rng: random.Random) -> tuple[Item, str, list[str] | None]:
    item = single(rng)
    one, two = rng.sample(item.letters, 2)
    form = rng.choice(
        [
            "{0}不对。",
            "首先排除{0}和{1}。",
            "不是{0}，也不是{1}。",
            "{0}、{1}都不正确。",
            "不能选{0}。",
            "肯定不是{1}",
            "{0}显然错误，{1}也不合适。",
        ]
    )
    return item, form.format(one, two), None


CLASSES: dict[str, Callable[[random.Random], tuple[Item, str, list[str] | None]]] = {
    "a statement": a_statement,
    "misled first": misled_first,
    "explained after": explained_after,
    "walked through": walked_through,
    "walked without end": walked_without_end,
    "thought first": thought_first,
    "among domain words": among_domain_words,
    "taken back": taken_back,
    "in words": in_words,
    "filled in": filled_in,
    "boxed or keyed": boxed_or_keyed,
    "listed in lines": listed_in_lines,
    "by exclusion": by_exclusion,
    "all at once": all_at_once,
    "true or false": true_or_false,
    "in English": in_english,
    "in traditional characters": in_traditional,
    "spaced or repeated": spaced_or_repeated,
    "cut off": cut_off,
    "no answer": no_answer,
    "not offered": not_offered,
    "at odds": at_odds,
    "only excluded": only_excluded,
}
