"""AgriEval's taxonomy: 6 domains with 29 fields, 4 cognitive levels with 15 tasks, and how files and paper name them.

English names, abbreviations and numbers of questions are those of the paper (arXiv 2507.21773): section 3.1 for the
domains, Table 1 for levels and tasks, Table 5 for fields. In our text of Table 5 the name of a domain stands on the
last row of its fields; that the rows above belong to it is confirmed by the published file for 28 of the 29. Table 5
counts choice and open questions together.

Chinese names are those of the published file of open questions (``domain.type``, ``domain.subtype``, ``class.class``,
``class.task``). It holds no choice question and none on landscape architecture, so the names of three levels, of the
twelve tasks of choice questions and of that field are not known: what stands here is our translation of the English
name, marked ``inferred``, and may not be what the file of choice questions says when it is published.

Every lookup takes a name in Chinese, in English, as an abbreviation or as our id, and finds None where it knows none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class TaxonomyEntry:
    """A name of the taxonomy."""

    id: str
    """Ours: never changes."""
    english: str
    """As the paper has it."""
    chinese: str
    inferred: bool = False
    """True if the Chinese name is our translation, as no published file has it."""
    others: tuple[str, ...] = ()
    """Further spellings."""
    code: str = ""
    """The paper's abbreviation, empty where it has none."""


@dataclass(frozen=True, slots=True)
class Domain(TaxonomyEntry):
    """One of the six domains."""

    types: tuple[str, ...] = ()
    """Its name in the older label ``type`` of the published files."""


@dataclass(frozen=True, slots=True)
class Field(TaxonomyEntry):
    """One of the 29 fields of the domains. ``questions``: choice and open ones in Table 5."""

    domain: str = ""
    questions: int = 0


@dataclass(frozen=True, slots=True)
class Level(TaxonomyEntry):
    """One of the four cognitive levels."""


@dataclass(frozen=True, slots=True)
class Task(TaxonomyEntry):
    """One of the 15 tasks. ``questions``: in Table 1; those of the level of generation are open, all others choice."""

    level: str = ""
    questions: int = 0

    @property
    def is_open(self) -> bool:
        """True if its questions ask for a text."""
        return self.level == "generation"


_Entry = TypeVar("_Entry", bound=TaxonomyEntry)

DOMAINS = (
    Domain("plant_production", "Plant Production", "植物生产类", code="PP", types=("植物生产类",)),
    Domain("aquaculture", "Aquaculture", "水产类", code="Aqua", types=("水产类",)),
    Domain("grass_science", "Grass Science", "草学类", code="GS", types=("草学类",)),
    Domain("herbology", "Traditional Chinese Herbology", "中草药类", code="TCH", types=("中药类",)),
    Domain("forestry", "Forestry", "林学类", code="Fore", types=("林学类",)),
    Domain("animals", "Animal Science and Technology", "动物科学与技术类", code="AST", types=("动物类",)),
)
"""In the order of the columns of Tables 3 and 8."""

FIELDS = (
    Field("plant_science", "Plant Science and Technology", "植物科学与技术", domain="plant_production", questions=2523),
    Field("seed_science", "Seed Science and Engineering", "种子科学与工程", domain="plant_production", questions=820),
    Field("cultivation", "Cultivation and Tillage", "栽培耕作", domain="plant_production", questions=2392),
    Field("plant_diseases", "Plant Diseases", "病害", domain="plant_production", questions=2183),
    Field("weeds", "Weed Management", "草害", domain="plant_production", questions=382),
    Field("pests", "Pest Management", "虫害", domain="plant_production", questions=1757),
    Field("smart_agriculture", "Smart Agriculture", "智慧农业", domain="plant_production", questions=752),
    Field("vegetables", "Vegetables", "蔬菜", domain="plant_production", questions=249),
    Field("fruit_trees", "Fruiter", "果树", domain="plant_production", questions=137),
    Field("ecological_agriculture", "Ecological Agriculture", "生态农业", domain="plant_production", questions=335),
    Field("cereals", "Cereal Crops", "粮食作物", domain="plant_production", questions=419),
    Field("pesticides", "Pesticides", "农药", domain="plant_production", questions=224),
    Field("oil_crops", "Oil Crops", "油料作物", domain="plant_production", questions=157),
    Field("cash_crops", "Cash Crops", "经济作物", domain="plant_production", questions=147),
    Field("tobacco", "Tobacco", "烟草", domain="plant_production", questions=149),
    Field("tea", "Tea Science", "茶学", domain="plant_production", questions=204),
    Field("aquaculture_science", "Aquaculture Science", "水产养殖学", domain="aquaculture", questions=341),
    Field("marine_science", "Marine Science and Technology", "海洋科学与技术", domain="aquaculture", questions=114),
    Field("aquatic_medicine", "Aquatic Animal Medicine", "水生动物医学", domain="aquaculture", questions=191),
    Field("aquarium_science", "Aquarium Science and Technology", "水族科学与技术", domain="aquaculture", questions=140),
    Field("grassland_science", "Grassland Science", "草业科学", domain="grass_science", questions=218),
    Field(
        "herbs",
        "Cultivation and Identification of Chinese Herbs",
        "中草药栽培与鉴定",
        domain="herbology",
        questions=388,
    ),
    Field("forest_protection", "Forest Protection", "森林保护", domain="forestry", questions=268),
    Field(
        "landscape_architecture",
        "Landscape Architecture",
        "园林",
        inferred=True,
        others=("风景园林",),
        domain="forestry",
        questions=107,
    ),
    Field("forestry_science", "Forestry Science", "林学", domain="forestry", questions=181),
    Field("feed_engineering", "Feed Engineering", "饲料工程", domain="animals", questions=130),
    Field("husbandry", "Husbandry Science", "畜业科学", others=("畜牧科学",), domain="animals", questions=580),
    Field("veterinary_medicine", "Veterinary Medicine", "动物医学", domain="animals", questions=774),
    Field("animal_science", "Animal Science", "动物科学", domain="animals", questions=602),
)
"""In the order of Table 5."""

LEVELS = (
    Level("memorization", "Memorization", "记忆", inferred=True, others=("概念",)),  # 概念: the README of the files
    Level("understanding", "Understanding", "理解", inferred=True),
    Level("inference", "Inference", "推理", inferred=True),
    Level("generation", "Generation", "生成"),
)

TASKS = (
    Task("terminology", "Terminology Explanation", "术语解释", True, (), "M-T", "memorization", 125),
    Task("principles", "Fundamental Principles", "基本原理", True, (), "M-P", "memorization", 6077),
    Task("operating_rules", "Operational Rules", "操作规程", True, ("操作规则",), "M-R", "memorization", 116),
    Task(
        "production_essentials",
        "Production Management Essentials",
        "生产管理要点",
        True,
        (),
        "M-E",
        "memorization",
        880,
    ),
    Task("verification", "Knowledge Verification", "知识验证", True, ("知识判断",), "U-V", "understanding", 1961),
    Task("identification", "Type Identification", "类型识别", True, (), "U-I", "understanding", 2253),
    Task("summarization", "Key-Point Summarization", "要点总结", True, ("要点归纳",), "U-S", "understanding", 1324),
    Task("planning", "Production Planning", "生产规划", True, (), "I-P", "inference", 471),
    Task("numerical_reasoning", "Numerical Reasoning", "数值推理", True, ("数值计算",), "I-N", "inference", 707),
    Task("disease_diagnosis", "Disease Diagnosis", "病害诊断", True, ("疾病诊断",), "I-D", "inference", 403),
    Task("growth_status", "Growth Status Analysis", "生长状态分析", True, (), "I-S", "inference", 273),
    Task("genetic_inference", "Genetic Inference", "遗传推理", True, ("遗传推断",), "I-G", "inference", 107),
    Task("knowledge_qa", "Knowledge-based Q&A", "知识问答", False, (), "G-QA", "generation", 1700),
    Task("strategy", "Production Strategy Formulation", "策略制定", False, (), "G-PS", "generation", 325),
    Task("causal_analysis", "Causal Analysis", "归因分析", False, (), "G-CA", "generation", 142),
)
"""In the order of Table 1."""

TYPE_AGREEMENT = (2016, 2104)
"""Of the open questions that have both, how many have a ``type`` that is the one of their ``domain.type``."""


def domain_of(name: str) -> Domain | None:
    """The domain of that name."""
    return _DOMAINS.get(_key(name))


def domain_of_type(label: str) -> Domain | None:
    """The domain that the older label ``type`` means. The authors call it deprecated; see :data:`TYPE_AGREEMENT`."""
    return _DOMAINS_BY_TYPE.get(label.strip())


def field_of(name: str) -> Field | None:
    """The field of that name."""
    return _FIELDS.get(_key(name))


def level_of(name: str) -> Level | None:
    """The cognitive level of that name."""
    return _LEVELS.get(_key(name))


def task_of(name: str) -> Task | None:
    """The task of that name."""
    return _TASKS.get(_key(name))


def _key(name: str) -> str:
    return " ".join(name.replace("_", " ").replace("-", " ").casefold().split())


def _by_name(all_named: Sequence[_Entry]) -> Mapping[str, _Entry]:
    return {
        _key(name): one
        for one in all_named
        for name in (one.id, one.english, one.chinese, one.code, *one.others)
        if name
    }


_DOMAINS = _by_name(DOMAINS)
_DOMAINS_BY_TYPE = {label: domain for domain in DOMAINS for label in domain.types}
_FIELDS = _by_name(FIELDS)
_LEVELS = _by_name(LEVELS)
_TASKS = _by_name(TASKS)
