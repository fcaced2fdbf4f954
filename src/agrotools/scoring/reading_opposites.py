"""Families of words that say one thing of a subject, with the words that say the opposite (English and Chinese)."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from agrotools.core import Slot
from agrotools.text.negation import Negations
from agrotools.text.normalise import normalise

# One family a line: what asserts / what denies. ``*``: any ending; ``_``: a space. The longest match counts.
_TABLE = """
open opened opens gaping 开着 敞开 打开 开放 张开 开启 / close closed closes shut 关闭 关着 关上 关好 闭合 合上 紧闭
wet wetter damp moist soaked soggy saturated 潮湿 湿润 过湿 偏湿 很湿 / dry drier dried arid parched 干燥 干旱 干涸 干透 偏干 很干 干裂
flood* inundat* submerg* under_water underwater waterlogged standing_water ponding 淹没 淹 积水 受淹 渍水 内涝 洪水 水淹 / dry drained dried_out 干燥 无积水 排干
advance* advancing moved_forward encroach* gained_ground 前移 推进 前进 扩展 / retreat* reced* shrunk 后退 退缩 缩小
exceed* surpass* above over higher_than greater_than more_than in_excess overshoot* reached reaches 超过 超出 高于 大于 超标 达到 突破 多于 以上 高出 超了 / below under beneath lower_than less_than fewer_than short_of within underneath compl* 低于 未达 不到 小于 以下 少于 不足 以内 之内 未超
within inside in_range between 之内 以内 范围内 内侧 介于 圈内 内 / outside beyond out_of_range out_of_the got_out out_there escaped above below exceed* 超出 之外 以外 范围外 外面 外侧 跑出 逃出 外 高于 低于 超过 偏高 偏低
increas* grew grown grow grows growing rose risen rise rises rising expand* larger bigger enlarg* gained higher climbed doubled up_from widened 增加 增长 扩大 上升 变大 增多 提高 上涨 升高 增大 扩张 / decreas* declin* shrank shrunk shrink* fell fallen falls falling reduc* smaller drop* diminish* lower less fewer down_from narrowed 减少 下降 缩小 变小 降低 下跌 萎缩 减小
healthy sound disease-free symptom-free in_good_health vigorous free_of_disease no_symptoms 健康 长势良好 无病 生长正常 / unhealthy diseased sick ill infect* infest* ailing affected wilting stunted 患病 生病 感染 染病 发病 病害 不良
infect* infest* diseased attacked affected colonised colonized afflicted suffers suffering 感染 侵染 染病 发病 患病 受害 为害 危害 / healthy clean uninfected uninfested unaffected free_of free_from disease-free 健康 无病 未受
present visible found detect* exist* contain* occur* seen evident presence discern* showing spotted 存在 发现 出现 检测到 可见 看到 看见 见到 见有 检出 / absent absence missing lacking free_of free_from devoid invisible nowhere_to_be_seen bare_of 缺失 不存在 未见 未发现 未检出 看不到 不见
ripe ripen* mature matured ready 成熟 熟透 完熟 转熟 达到 可以 / unripe immature unready green underripe too_early premature 未成熟 未熟 生的 青涩 过早 尚青
same identical equal alike match matches matched agree agrees agreed coincide* tallies consistent unchanged 相同 一样 一致 相等 同一 吻合 相符 没变 不变 没有变 / different differ* unlike mismatch* disagree* unequal distinct dissimilar diverge* 不同 不一样 不一致 相异 有别 差异 不等 不符 不相符
differ* different unequal dissimilar distinct disagree* diverge* 不同 差异 不一样 相异 有别 差别 / same identical alike equal similar indistinguishable 相同 一样 一致 相近 无差异 相似
irrigated irrigat* watered 灌溉 浇水 / rain-fed rainfed unirrigated dryland 雨养 旱作
chang* alter* convert* transform* modif* turned_into became replaced built_over difference* 变化 改变 变更 转变 变动 变了 变为 变成 改为 转为 / unchanged same stable unaltered identical remained stayed 不变 没变 没变化 未变 未变化 无变化 一致 保持原 如初
enough sufficient sufficiently adequate adequately ample meets meet met satisf* compl* fulfil* suffice* conform* lives_up in_line passes at_least 足够 充足 满足 符合 达到 达标 合格 够用 够 合规 充分 过线 至少 / insufficient insufficiently inadequate inadequately too_little too_few too_low too_short too_narrow too_small too_wide too_wet too_thin too_dry too_shallow short_of falls_short fall_short fails fail violat* lacks lacking breach* deficient below 不足 不够 不符 未达 不达标 欠缺 不合格 不满足 过低 过窄 太少 太窄 违反 偏少
intact undamaged unbroken unharmed in_good_order in_good_condition in_good_repair complete sound whole unscathed no_gaps 完好 完整 无损 无破损 / broken break* damage* torn tear* loose hole holes gap gaps gaping collapsed missing cut_through crack* rupture* ripped breach* sagging fallen 破损 损坏 断裂 缺口 破洞 受损 破裂 倒塌 断开 破坏
damage* broken injur* harmed torn hurt scorched 受损 损伤 损坏 受害 破损 冻害 伤害 / undamaged intact unharmed unhurt sound healthy unscathed 完好 无损 正常
need needs needed necessary required require requires advis* recommend* should must justified warranted due called_for indicated worthwhile worth urgent ought advisable essential called 需要 应当 应该 必须 有必要 建议 须 需 应 值得 / unnecessary superfluous needless unwarranted unjustified dispensable redundant can_wait inadvisable wait 不必 无需 不用 无须 不需 没必要 暂缓 不建议 暂不 不宜 推迟 不应
may can allowed permitted permissible suitable eligible fit qualif* possible acceptable permits allows able 可以 允许 适合 适宜 能够 准许 可行 有资格 能 可 / cannot can't forbidden prohibited unsuitable ineligible not_permitted banned barred impossible unfit unable disqualif* unacceptable 不可 不能 不宜 禁止 不适合 不适宜 不得 无法 不允许
suitable appropriate fit favourable favorable good ideal right 适合 适宜 合适 有利 适于 / unsuitable inappropriate unfit unfavourable unfavorable bad poor wrong 不适 不宜 不利
full filled brim* topped_up 满 装满 充满 蓄满 / empty vacant half_full half-full half-empty half_empty hollow 空 空置
empty vacant unoccupied deserted 空着 空的 空置 无人 空 / full occupied filled stocked 有人 装满 满
hid* cover* obscur* mask* block* 遮挡 遮住 覆盖 遮盖 挡住 / clear cloud-free cloudless unobstructed unobscured visible_throughout open_sky 无云 晴朗 清晰 无遮挡
clear clearer clearest sharp sharper sharpest in_focus unobstructed 清晰 清楚 / blurr* fuzzy cloudy hazy obscured out_of_focus turbid murky 模糊 浑浊 不清
blurr* fuzzy out_of_focus unsharp 模糊 不清 失焦 / sharp clear crisp in_focus 清晰 清楚
upright standing erect stand stands stood vertical straight 直立 挺立 / lodged lodg* fallen flattened leaning lean tilted lying bent 倒伏 倾斜 歪 倒
lodg* fallen flattened laid_flat lying leaning knocked_down 倒伏 倒下 / upright erect standing stand stands unlodged vertical 直立 挺立
alive living survived live 存活 活着 成活 / dead died dying killed perished 死亡 枯死 死了 已死
dead died killed dying withered perished 死亡 枯死 死 / alive living survived vigorous 存活 活着 成活
uniform* even evenly homogeneous consistent regular regularly equal 均匀 一致 整齐 均一 / uneven unevenly patchy irregular* heterogeneous non-uniform inhomogeneous variable varies clumped ragged 不均 不齐 不一 斑驳 参差
safe harmless secure 安全 无害 / unsafe risk* danger* dangerous harmful risky hazardous 危险 不安全 有害
clean pure unpolluted uncontaminated 干净 清洁 洁净 / dirty contaminated polluted soiled fouled 脏 污染 不净
contaminat* pollut* fouled 污染 / clean pure uncontaminated unpolluted 干净 清洁
bare exposed uncovered unprotected naked 裸露 裸地 光秃 / cover* vegetated mulched protected 覆盖 植被
harvested cut mown mowed reaped gathered picked lifted threshed stubble 收割 收获 采收 刈割 割过 已收 收完 / uncut unharvested unmown unpicked standing_crop still_standing 未收 未割 尚未收 未刈
leak* drip* seep* escaping losing_water 漏水 泄漏 渗漏 渗水 漏 / watertight tight sealed leakproof leak-free 不漏 密封 无漏
block* clog* obstruct* plugged choked silted 堵塞 阻塞 淤塞 堵 / unblocked unobstructed clear free_flow* passable 畅通 通畅
dense thick crowded heavy closely_spaced 密集 茂密 浓密 稠密 过密 / sparse thin open light scattered 稀疏 稀少 稀
acid* 酸性 偏酸 / alkalin* neutral basic 碱性 中性 偏碱
saline salty salinised salinized 盐渍 盐碱 含盐 / non-saline salt-free fresh 非盐 淡水
flat level even 平坦 平整 / sloping steep hilly uneven slanted undulating 倾斜 坡 不平 陡
finished complete* done over ended closed concluded 完成 结束 完毕 做完 / unfinished incomplete ongoing under_way in_progress continues partial* 未完成 进行中 未结束 仍在
running working operat* in_use functioning functional switched_on active rotating 运行 运转 工作 启用 使用中 / idle stopped stands_still standing_still out_of_order broken_down switched_off parked defective faulty inactive disused 停止 停机 闲置 故障 停用 停转
warm* hot heated 温暖 偏热 偏高 / cold* cool* chilly 寒冷 偏低 冷
early ahead premature 提前 偏早 早 / late delayed behind overdue 推迟 偏晚 晚 延迟
late delayed behind overdue 推迟 偏晚 晚 延迟 滞后 / early ahead on_time timely punctual 提前 按时 准时 及时
overlap* 重叠 / separate disjoint apart 分开 不重叠
symmetric* 对称 / asymmetric* lopsided 不对称
straight 笔直 直 / curved crooked bent winding 弯曲 弯
connected joined linked adjoin* touch* adjacent 相连 连接 相邻 接壤 连通 / disconnected separate* detached apart isolated 断开 分离 不相连 不连
shaded shady shadow* 遮阴 阴影 荫 / sunny sunlit unshaded full_sun 向阳 全光照 阳光
sunny sunlit clear_sky 晴 阳光 / overcast cloudy dull rainy shaded 阴天 多云 雨
young juvenile immature 幼 年轻 / old adult mature full-grown 成年 老
fresh 新鲜 / stale rotten wilted spoiled old mouldy moldy 腐烂 变质 陈旧
normal usual ordinary regular 正常 常态 / abnormal unusual deviat* anomal* 异常 反常 不正常
abnormal* anomal* unusual 异常 反常 / normal usual 正常
deficien* lack* short shortage starv* 缺乏 缺 不足 亏缺 / sufficien* adequate* ample well_supplied surplus excess 充足 足够 充分 丰富 不缺
stress* suffer* 胁迫 / unstressed relaxed well_watered well_supplied 无胁迫 水分充足
stable steady constant unchanged 稳定 平稳 不变 / unstable chang* fluctuat* vari* rising falling 不稳 波动 变化
moving moves moved drift* shift* migrat* displaced 移动 迁移 位移 / stationary still fixed motionless standing_still stayed in_place 静止 固定 不动
occupied inhabited settled in_use 占用 入住 有人 / empty vacant unoccupied deserted abandoned 空置 空着 废弃
abandon* derelict fallow disused neglected 撂荒 废弃 弃耕 荒废 闲置 / cultivated in_use farmed tended maintained 耕种 在用 种植
cultivat* farmed tilled cropped 耕种 种植 / fallow abandoned idle uncultivated 撂荒 休耕 闲置 弃耕
erod* erosion washed_away gully 侵蚀 冲刷 / stable protected uneroded 未侵蚀 稳定
disappear* vanish* gone lost removed filled_in 消失 不见 填埋 填平 / still_there remain* still_exist* survive* persist* preserved 仍在 还在 保留 依然存在 仍然存在
profitable pays worthwhile lucrative 盈利 划算 有利可图 合算 / unprofitable loss-making uneconomic loss 亏损 不划算 亏本
legal lawful permitted 合法 / illegal unlawful forbidden 违法 非法
correct right accurate true valid 正确 准确 无误 属实 / incorrect wrong inaccurate false invalid mistaken erroneous 错误 有误 不准 不正确 不实
reliable trustworthy dependable 可靠 可信 / unreliable doubtful untrustworthy 不可靠 存疑 不可信
deep* 深 / shallow* 浅
separat* apart isolated 分开 分离 隔离 / mixed together joined adjacent touching 混 一起 相邻
edible 可食 / inedible poisonous toxic 有毒 不可食
poison* toxic 有毒 毒 / harmless edible non-toxic 无毒 无害
native indigenous local 本地 本土 / alien invasive exotic introduced foreign 外来 入侵
invasive alien exotic introduced 外来 入侵 / native indigenous local harmless 本地 本土
flower* bloom* blossom* in_bloom 开花 花期 盛开 / bud_stage budding over faded withered 未开花 谢花 花蕾
sown seeded drilled 播种 已播 种下 / unsown unplanted unseeded 未播 未种
emerged emerg* germinat* sprouted 出苗 发芽 萌发 / failed_to_emerge ungerminated 未出苗 未发芽
wilt* limp droop* flaccid 萎蔫 凋萎 打蔫 / turgid crisp fresh erect 挺拔 饱满
natural wild 天然 自然 / artificial man-made 人工 人造
paved asphalt* sealed concrete surfaced 铺装 硬化 沥青 水泥 / unpaved dirt gravel earth unsealed 土路 未铺 砂石 泥土
"""

_MORE_OF = """
more larger greater higher bigger taller wider longer heavier denser faster better deeper thicker older warmer stronger
richer weedier greener wetter brighter further farther outnumber* exceed* outweigh* most highest largest tallest widest
longest heaviest densest greatest biggest deepest above dominat* dominant main prevail* 主要 优势 更多 更大 更高 更宽 更长 更重 更密 更快 更好 更深 更厚 较多 较大 较高
较宽 较长 较重 较密 较深 最多 最大 最高 最长 多于 大于 高于 超过 优于 长于 重于 多 大 高 宽 长 重 密 快 好 深 厚
/ fewer less lower smaller shorter narrower lighter sparser slower worse shallower thinner younger cooler weaker poorer drier
darker least lowest fewest smallest shortest below 更少 更小 更低 更矮 更窄 更短 更轻 更稀 更慢 更差 更浅 更薄 较少 较小 较低 较矮 较窄
较短 较轻 较稀 较浅 最少 最小 最低 最短 少于 小于 低于 不如 不及 差于 短于 轻于 少 小 低 矮 窄 短 轻 稀 慢 差 浅 薄
"""


class Family(NamedTuple):
    """Words of one meaning and of its opposite: the pattern that finds either, and the one of the opposites alone."""

    either: re.Pattern[str]
    opposite: re.Pattern[str]

    def find(self, text: str) -> list[tuple[int, int, bool]]:
        """Start, end and whether it asserts, of each word of the family in ``text``."""
        return [
            (found.start(), found.end(), self.opposite.fullmatch(found[0]) is None)
            for found in self.either.finditer(text)
        ]


def _pattern(words: list[str]) -> re.Pattern[str]:
    latin = [word for word in words if word < "\u2e80"]
    chinese = [word for word in words if word > "\u2e80"]
    parts = "|".join(
        re.escape(word).replace(r"\*", "[a-z]*").replace("_", " ") for word in sorted(latin, key=len, reverse=True)
    )
    return re.compile(
        "|".join([rf"(?<![a-z\d])(?<![a-z\d]-)(?:{parts})(?![a-z\d])", *sorted(chinese, key=len, reverse=True)])
    )


def _family(line: str) -> Family:
    yes, _, no = line.partition("/")
    # A stem with an ending would take "unchanged" for "chang*" only at a word's beginning: no overlap to be sorted out.
    return Family(_pattern(yes.split() + no.split()), _pattern(no.split()))


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """All families but that of comparatives."""
    return tuple(_family(line) for line in _TABLE.strip().splitlines())


@lru_cache(maxsize=1)
def presence() -> Family:
    """The family of "present" and "visible": what is there is also said by naming it."""
    return next(family for family in families() if family.either.fullmatch("present"))


@lru_cache(maxsize=1)
def comparatives() -> Family:
    """More and less: which of two things has more of something."""
    return _family(_MORE_OF.replace("\n", " "))


def senses(slot: Slot) -> tuple[tuple[Family, bool], ...]:
    """The families of which a slot's label has a word, and whether it has it in the asserting sense."""
    return _senses(normalise(slot.label))


@lru_cache(maxsize=1_000)
def _senses(label: str) -> tuple[tuple[Family, bool], ...]:
    return tuple(
        (family, found[-1][2])
        for family in (*families(), comparatives())
        if family is not presence() and (found := family.find(label))
    )


def sense_of(text: str, asked: Sequence[tuple[Family, bool]]) -> int:
    """Whether ``text`` says what is asked (1), the opposite (-1), or neither of them, or both (0)."""
    if not asked or not text.strip():
        return 0
    negations = Negations(text)
    said = {
        (asserts == own) != (negations.count_before(start) % 2 == 1)
        for family, own in asked
        for start, _, asserts in family.find(text)
    }
    return 0 if len(said) != 1 else 1 if said.pop() else -1
