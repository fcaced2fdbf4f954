"""Whether a question is tool- and step-implicit: it asks for a result and names neither a tool nor the way to it."""

import re
from collections.abc import Iterable

from agrotools.construct.quality.telling import has_word, spaced
from agrotools.text.normalise import WORD

_OBJECT = r"(?:the|a|an|it|its|how|this|that|these|those|both|all|each|every|my|our|them|me)"
_AS_ORDER = r"(?:^|[.?!:;,]\s*|\b(?:to|and|then|please|you|just|now)\s+)"
_STEP_WORDS = (
    re.compile(r"\bsteps?\s*(?:\d|one|two|three|by[ -]step)", re.IGNORECASE),
    re.compile(r"\bstep-by-step\b", re.IGNORECASE),
    re.compile(r"\bfirst(?:ly)?\b[^.?!;]{0,80}\b(?:and|,|;)\s*then\b", re.IGNORECASE),
    re.compile(r"\b(?:function|tool|api)\s+calls?\b|\bcall(?:ing)? (?:the|a) (?:function|tool)\b", re.IGNORECASE),
    re.compile(r"\b(?:the|a|your|any|which) tools?\b", re.IGNORECASE),
    re.compile(rf"{_AS_ORDER}(?:detect|segment|localis[ez]|localize|binari[sz]e)\s+{_OBJECT}\b", re.IGNORECASE),
    re.compile(r"\b(?:object detection|(?:semantic|instance|image) segmentation|bounding box(?:es)?)\b", re.IGNORECASE),
    # In Chinese: a tool, a function, an interface, to call one; steps; first this, then that; what vision methods do.
    re.compile(r"调用|工具|函数|接口"),
    re.compile(r"第[一二三四五1-5]步|步骤|逐步|分步"),
    re.compile(r"(?:首先|先)[^。？！；\n]{1,40}(?:然后|接着|再|之后)"),
    re.compile(r"目标检测|(?:语义|实例|图像|影像)分割|(?:检测|识别)框|像素级"),
    re.compile(r"(?:^|[。？！；，,]|请|来|并)(?:检测|分割|计算)(?:一下|出|这|该|图|两|所有|其)"),
)


def names_tool(query: str, tool: str) -> bool:
    """Whether ``query`` names ``tool``.

    A name of several words counts wherever it stands, with underscores or spaces. A name that is also an everyday
    word (``plot``, ``calculate``) counts as an order (``plot the``, ``calculate how``) or beside ``use``, ``call``,
    ``tool``; a plot of land does not.
    """
    words = spaced(tool)
    if " " in words:
        return has_word(spaced(query), words)
    order = rf"{_AS_ORDER}{words}\s+{_OBJECT}\b"
    used = rf"\b(?:use|using|call|calling|run|invoke|with)\s+(?:the\s+)?`?{words}\b"
    beside = rf"\b{words}`?\s+(?:tool|function)\b|`{words}`|(?<!{WORD}){words}(?:工具|函数)|用{words}(?!{WORD})"
    return re.search(f"{order}|{used}|{beside}", query, re.IGNORECASE) is not None


def named_argument(query: str, arguments: Iterable[str]) -> str | None:
    """The first of ``arguments`` that ``query`` names. Only those with an underscore: nobody writes them by chance."""
    for name in sorted(arguments):
        if "_" in name and re.search(rf"(?<!{WORD}){re.escape(name)}(?!{WORD})", query):
            return name
    return None


def step_words(query: str) -> str | None:
    """The first words of ``query`` that name steps, tools or methods, in English or Chinese."""
    found = (pattern.search(query) for pattern in _STEP_WORDS)
    return next((match[0].strip() for match in found if match), None)
