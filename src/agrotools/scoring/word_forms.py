"""Forms of a word of a label in a sentence: endings, families (deep, depth), opposites, Chinese translations."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from agrotools.core import Slot
from agrotools.text.clauses import Negations
from agrotools.text.normalise import CJK, WORD, normalise
from agrotools.text.statement_words import stemmer

_TRANSLATION_TABLE = """
wheat 小麦 麦田; maize corn 玉米; rice paddy 水稻 稻; soybean 大豆; cotton 棉; canola rapeseed rape 油菜
potato 马铃薯 土豆; barley 大麦; sugarcane cane 甘蔗; tomato 番茄 西红柿; apple 苹果; grape 葡萄
citrus orange 柑橘 橙; tea 茶; grass 草; tree 树; plant 株 苗 植物; seedling 苗; weed 杂草; crop 作物 庄稼
leaf leave 叶; fruit 果; flower 花; ear head spike 穗; shoot 芽 梢; bud 芽; boll 铃; tuber 块茎 薯; root 根
stem stalk 茎 秆; branch 枝; canopy crown 冠; panicle 穗; grain 籽粒 粮食; pod 荚; tiller 分蘖; hive 蜂箱
insect 昆虫 虫; pest 虫; larva larvae caterpillar 幼虫; moth 蛾; beetle 甲虫; aphid 蚜; planthopper 飞虱
whitefly 粉虱; egg 卵; lesion spot 病斑 斑; disease diseased 病; trap 诱 板; cow cattle 牛; sheep 羊; pig 猪
goat 羊; chicken 鸡; animal 动物; bird 鸟; bee 蜂; pond 池塘 塘 坑塘; lake 湖; reservoir 水库; river 河
ditch canal 渠 沟; dam 坝; well 井; water 水; field 田 地块; plot 地块 小区
farmland cropland arable 耕地 农田; orchard 果园; forest woodland 林; greenhouse 温室 大棚
building house 房 建筑; shed barn 棚 仓; road 路; bale 草捆 捆; row 行; gap missing 缺; bed 畦; tractor 拖拉机
trailer 拖车 挂车; silo 筒仓 仓; solar 光伏; tank 罐; turbine 风机; pivot 喷灌机; machine machinery 机
spacing distance interval 距; height tall high 高; length long 长; width wide 宽; diameter 径 冠幅
radius 半径; depth deep 深; mass weight 重; yield 产; volume 体积 方量; density 密度; cover coverage 覆盖 盖度
canopy 冠层; temperature 温; humidity 湿度; moisture 含水 湿; rainfall precipitation rain 雨 降水
evapotranspiration 蒸散; reference 参考; irrigation irrigated irrigate 灌溉 浇; nitrogen 氮; phosphorus 磷
potassium 钾; biomass 生物量; carbon 碳; ph 酸碱度; soil 土; organic 有机; dose rate 用量 施
fertilizer fertiliser 肥; seed 播种 种子; slope 坡; elevation 高程 海拔; cost price 元 成本; profit 利润
demand requirement 需; rate 率; speed 速; flooded flood 淹 涝; burnt burned fire 烧 火
damaged damage 受害 受损; infected infested 发病 染病 受害; affected 受; dead 死; severity severe 严重 严重度
incidence 发病率; ripe ripened mature 熟; healthy 健康; unripe 未熟; harvest harvested 收
ready 达到 可以 适合; plucking picking 采; sown planted planting 种; irrigated 灌溉; empty 空; new 新
visible 可见 看到; loss lost 减少 损失; growth 生长 增长; growing 生长
short deficient deficiency lacking 缺 不足; nutrient 养分; lodged lodging 倒伏; leaking leak leakage 漏
lying lie 卧 躺; standing 站; grazing graze 吃草; blooming bloom flowering 开花 花; drinking 饮; wet wetter 湿
dry drier drought 干 旱; open 开; closed 关 闭; broken 破 断; fallen 倒; crossing cross 穿 横; bare 裸
stressed stress 胁迫; level 位; bulb 鳞茎 球; sample 样; total 总 共; pollen 花粉; nest 巢; fence 围栏 栅栏
bag 袋; box crate 箱; barrel 桶; drone 无人机; sprinkler 喷头; pipe 管; pump 泵; worker person people 人
vehicle car truck 车; boat ship 船; fish 鱼; shrimp 虾; duck 鸭; goose 鹅; horse 马; calf calves 犊; lamb 羔
snail 螺 蜗牛; locust grasshopper 蝗; mite 螨; thrip 蓟马; borer 螟; lime 石灰; manure dung 粪; compost 堆肥
straw 秸秆 草; stubble 茬; mulch film 膜 地膜; plastic 塑料; used use 使用 采用
drip 滴灌; mastitis 乳房炎; pan 池; salt 盐; protein 蛋白; oil 油; sugar 糖; starch 淀粉
sand 砂 沙; clay 黏 粘; silt 粉; salinity saline 盐; bank 岸; embankment 堤; terrace 梯田; village 村; town 镇
windmill 风车; panel 板; tyre tire 轮胎; sack 袋; carrot 胡萝卜; onion 洋葱; cabbage 甘蓝 白菜; lettuce 生菜
pepper 椒; cucumber 黄瓜; melon 瓜; pumpkin 南瓜; strawberry 草莓; banana 香蕉; mango 芒果; pear 梨; peach 桃
cherry 樱桃; olive 橄榄; coffee 咖啡; cocoa 可可; peanut groundnut 花生; bean 豆; pea 豌豆; sunflower 向日葵
sorghum 高粱; millet 谷子 粟; oat 燕麦; rye 黑麦; meadow pasture grassland 草地 牧; palm 棕榈; poplar 杨
pine 松; oak 栎; area 面积; parasitised parasitized 寄生; needed need necessary 需 应; spray spraying 喷 施药
treatment 防治; threshold 阈值 指标; stage 期; photo image picture 照片 图; left 左; right 右; upper top 上
lower bottom 下; north northern 北; south southern 南; east eastern 东; west western 西; red 红; green 绿
yellow 黄; white 白; black 黑; young 幼; old 老; cloud 云; shadow shade 阴影; stored storage 储; removed 移
can 罐; mown mowed mow cut 刈 割; ploughed plowed tilled 耕 犁; sprayed 喷; harvested 收; pruned 剪; planted 种
hedge 树篱 绿篱 篱; breed breeding 繁殖 筑巢; dune 沙丘; advance 推进 前移; certified certify 认证; frost 霜 冻
haze 霾; mask 口罩; shade 荫; stripe 条; wire 铁丝 线; post 桩 柱; gate 门; roof 顶; door 门; window 窗
feed fodder 饲料; trough 槽; straw 秸秆; heap pile 堆; mud 泥; ice 冰; snow 雪; wind 风; hail 冰雹 雹; storm 暴风
erosion 侵蚀; landslide 滑坡; bridge 桥; insurance 保险; market 市场; variety cultivar 品种; colour color 颜色 色
shape 形; size 大小; smell 气味; mould mold 霉; fungus fungal 真菌 菌; virus viral 病毒; bacteria bacterial 细菌
nematode 线虫; rat mouse mice rodent 鼠; predator 天敌; ladybird ladybug 瓢虫; spider 蜘蛛; ant 蚂蚁; worm 虫
earthworm 蚯蚓; limit 限 标准; standard 标准; quota 配额; rule 规定 要求; range 范围; recommended 推荐; season 季
sowing 播种; date 日期; spot 斑; curl 卷; rolled 卷; yellowing 黄; burn 灼 焦; herd 群; udder 乳房; hoof 蹄; lame 跛
calving 产犊; pregnant 孕; milk 奶 乳; egg 蛋 卵; feather 羽; comb 冠; litter 垫料; vent 通风; ventilation 通风
fan 风扇 风机; lamp light 灯 光; sensor 传感器; battery 电池; camera 相机; signal 信号; map 图
"""


def _read_translations() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for entry in _TRANSLATION_TABLE.replace("\n", ";").split(";"):
        words = entry.split()
        chinese = tuple(word for word in words if word > "\u2e80")
        for word in words:
            if word < "\u2e80":
                found[word] = found.get(word, ()) + chinese
    return found


_TRANSLATIONS = _read_translations()


def translated(word: str) -> tuple[str, ...]:
    """Chinese words, or parts of them, for the stem of an English word."""
    return next((_TRANSLATIONS[form] for form in (word, f"{word}e", f"{word}y") if form in _TRANSLATIONS), ())


_ROOT_FORMS = {
    "grew": "grow", "grown": "grow", "fell": "fall", "fallen": "fall", "bred": "breed", "hid": "hide", "hidden": "hide",
    "lay": "lie", "lain": "lie", "lying": "lie", "stood": "stand", "risen": "rise", "rose": "rise", "shrank": "shrink",
    "shrunk": "shrink", "cut": "cut", "dug": "dig", "built": "build", "laid": "lay", "left": "leave", "leaves": "leaf",
    "lost": "lose", "kept": "keep", "fed": "feed", "drank": "drink", "dead": "die", "died": "die", "dying": "die",
    "calves": "calf", "geese": "goose", "mice": "mouse", "larvae": "larva", "broken": "break", "broke": "break",
    "ate": "eat", "eaten": "eat", "sown": "sow", "shown": "show", "flew": "fly", "ran": "run", "drawn": "draw",
    "torn": "tear", "worn": "wear", "frozen": "freeze", "froze": "freeze", "burnt": "burn", "dried": "dry",
}  # fmt: skip
_FORMS = {root: [form for form, of in _ROOT_FORMS.items() if of == root] for root in _ROOT_FORMS.values()}
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ations?|ings?|ied|ies|edly|ed|es|e?s|ers?|ly|ment|e|y|ion|ions|al|age)$")


def _root(word: str) -> str:
    word = _ROOT_FORMS.get(word, word)
    root = _ENDING.sub("", word) if len(word) > 3 else word
    if len(root) > 3 and root[-1] == root[-2] and root[-1] in "bdglmnprt":
        root = root[:-1]
    return root


@lru_cache(maxsize=4_000)
def word_pattern(word: str, min_chinese: int = 1) -> re.Pattern[str]:
    """Any form of an English word, or its Chinese (of so many characters at least); a Chinese chunk as it is."""
    if word > "\u2e80":
        return re.compile(re.escape(word))
    root = _root(word)
    forms = [re.escape(form) for form in (word, *_FORMS.get(_ROOT_FORMS.get(word, word), ()))]
    ending = "[a-z]*" if len(root) > 3 else rf"(?:{re.escape(root[-1])}?(?:e?s|e?d|ing|e|y|ies|ied|en|e?ness))?"
    chinese = dict.fromkeys(each for each in (*translated(word), *translated(root)) if len(each) >= min_chinese)
    return re.compile("|".join([rf"(?<![a-z\d])(?:{'|'.join(forms)}|{re.escape(root)}{ending})(?![a-z\d])", *chinese]))


_FAMILIES = """
deep depth; wide width broad breadth; long length; high height tall; thick thickness; heavy weigh weight mass
warm hot temperature degree; old age; fast speed; dense density; moist moisture humid humidity wet
slope gradient steep; dead die death mortal; infect disease diseased sick infest; miss gap absent; cost price
rain rainfall precipitation; emerge emergence; cow cattle; sow seed; harvest yield pick; grow growth
lose loss disappear vanish gone; big large size; sheep ewe; circumference girth
share percentage fraction percent proportion
"""
_LATIN = re.compile(rf"{WORD}{{3,}}|\bph\b")


@cache
def _family_heads() -> dict[str, str]:
    lines = (line.split() for line in _FAMILIES.replace("\n", ";").split(";"))
    return {stemmer().stemWord(word): words[0] for words in lines for word in words}


@lru_cache(maxsize=4_000)
def _stem_root(word: str) -> str:
    stemmed: str = stemmer().stemWord(word)
    return _family_heads().get(stemmed, stemmed)


@lru_cache(maxsize=8_000)
def roots(text: str) -> frozenset[str]:
    """Roots of the words of ``text``: words of one family share one."""
    return frozenset(_stem_root(word) for word in _LATIN.findall(text))


def says(word: str, said: frozenset[str], text: str) -> bool:
    """True if ``text``, of which ``said`` are the :func:`roots`, has a form of ``word`` or a Chinese word for it."""
    if word > "\u2e80":
        return word in text
    if _stem_root(word) in said:
        return True
    return not text.isascii() and any(chinese in text for chinese in translated(word))


_COMPARE = frozenset("多大高宽长重密快好深厚少小低矮窄短轻稀慢差浅薄")
_OPPOSITES_FILE = Path(__file__).parents[1] / "data" / "opposites.txt"


class Family(NamedTuple):
    """Words of one meaning and of its opposite: the pattern that finds either, and the one of the opposites alone."""

    either: re.Pattern[str]
    opposite: re.Pattern[str]
    own: re.Pattern[str]

    def find(self, text: str, *, in_label: bool = False) -> list[tuple[int, int, bool]]:
        """Start, end and whether it asserts, of each word of the family in ``text``.

        ``in_label``: only words that make a label one of this family: "exceeds" denies "within", but asks for no range.
        """
        return [
            (found.start(), found.end(), self.opposite.fullmatch(found[0]) is None)
            for found in (self.own if in_label else self.either).finditer(text)
        ]


def _pattern(words: list[str]) -> re.Pattern[str]:
    latin = [word for word in words if word < "\u2e80"]
    chinese = [word for word in words if word > "\u2e80"]
    parts = "|".join(
        re.escape(word).replace(r"\*", "[a-z]*").replace("_", " ") for word in sorted(latin, key=len, reverse=True)
    )
    return re.compile(
        "|".join(
            [rf"(?<![a-z\d])(?<![a-z\d]-)(?:{parts})(?![a-z\d])", *map(_alone, sorted(chinese, key=len, reverse=True))]
        )
    )


def _alone(word: str) -> str:
    """A Chinese word; one of comparison of a single character is none inside another word, as in 大棚 and 长势."""
    return rf"(?:(?<=[更较最偏很]){word}|{word}(?![{CJK}])|{word}(?=[的于得出些]))" if word in _COMPARE else word


def _read_family(line: str) -> Family:
    yes, _, no = line.partition("/")
    # A stem with an ending would take "unchanged" for "chang*" only at a word's beginning: no overlap to be sorted out.
    own = [word for word in (yes + no).split() if word[0] != "~"]
    yes, no = yes.replace("~", ""), no.replace("~", "")
    return Family(_pattern(yes.split() + no.split()), _pattern(no.split()), _pattern(own))


@lru_cache(maxsize=1)
def _all_families() -> tuple[Family, ...]:
    lines = _OPPOSITES_FILE.read_text("utf-8").splitlines()
    return tuple(_read_family(line) for line in lines if line and not line.startswith("#"))


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """All families but that of comparatives."""
    return _all_families()[1:]


@lru_cache(maxsize=1)
def presence() -> Family:
    """The family of "present" and "visible": what is there is also said by naming it."""
    return next(family for family in families() if family.either.fullmatch("present"))


def comparatives() -> Family:
    """More and less: which of two things has more of something."""
    return _all_families()[0]


def senses(slot: Slot) -> tuple[tuple[Family, bool], ...]:
    """The families of which a slot's label has a word, and whether it has it in the asserting sense."""
    return _senses(normalise(slot.label))


@lru_cache(maxsize=1_000)
def _senses(label: str) -> tuple[tuple[Family, bool], ...]:
    more = comparatives().find(label, in_label=True)[-1:]
    found = [
        (family, hits[-1])
        for family in families()
        if family is not presence() and (hits := family.find(label, in_label=True))
    ]
    # "fewer clouds" asks for the opposite of clouds; "wetter" is of both families.
    less = [hit for hit in more if not hit[2]]
    flipped = [(family, hit[2] != any(word[1] <= hit[0] for word in less)) for family, hit in found]
    return (*((comparatives(), hit[2]) for hit in more), *flipped)


def sense_of(text: str, asked: Sequence[tuple[Family, bool]]) -> int:
    """True if ``text`` says what is asked (1), the opposite (-1), or neither of them, or both (0)."""
    if not asked or not text.strip():
        return 0
    negations = Negations(text)
    for family, own in asked:
        said = {
            (asserts == own) != ((negations.count_before(start) + text.startswith(" no ", end)) % 2 == 1)
            for start, end, asserts in family.find(text)
        }
        if len(said) == 1:
            return 1 if said.pop() else -1
    return 0
