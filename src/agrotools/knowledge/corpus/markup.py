"""Wiki markup to plain text, good enough to be searched: what is read stays, what builds the page goes.

Templates, tables, files, categories, references, formulas and galleries are left out; of a link its wording stays, of
a conversion between Chinese variants (``-{zh-hans:...; zh-hant:...}-``) the simplified wording. Every step goes over
the text once, so that no page, whatever it holds, takes longer than its length.
"""

import html
import re

_DROPPED_TAGS = (
    "ref|math|chem|ce|gallery|timeline|syntaxhighlight|source|score|imagemap|templatedata|graph|mapframe|maplink|hiero"
)
"""Tags that go with what they enclose."""
_BREAKING_TAGS = "br|p|div|li|ul|ol|dl|dt|dd|tr|td|th|table|h[1-6]|hr|blockquote|center|poem"
_OTHER_TAGS = (
    "references|nowiki|noinclude|includeonly|onlyinclude|span|small|big|sub|sup|b|i|u|s|em|strong|del|ins|tt|code|pre|"
    "font|abbr|cite|var|kbd|samp|q|bdi|bdo|ruby|rb|rt|rp|rtc|wbr|section|indicator|data|time|dfn|mark|caption|tbody|"
    "thead|tfoot|col|colgroup|strike|langconvert|templatestyles|inputbox|categorytree|ol|phonos"
)
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>(?P<dropped>{_DROPPED_TAGS})|(?P<breaking>{_BREAKING_TAGS})|{_OTHER_TAGS})"
    r"(?=[\s/>])[^<>]*>",
    re.IGNORECASE,
)
_MARK = re.compile(r"\{\{|\}\}|\[\[|\]\]|-\{(?!\{(?!\{))|\}-|^[ \t:]*\{\||^[ \t]*\|\}(?!\})", re.MULTILINE)
_CLOSES = {"}}": "{{", "]]": "[[", "}-": "-{", "|}": "{|"}
_DEEPEST = 40
"""Links and conversions inside one another; deeper ones are taken as text, or the work would grow with the depth."""
_NAMESPACES = frozenset(
    (
        "file image media category template portal wikipedia wp help draft module special user mediawiki talk "
        "文件 檔案 档案 图像 圖像 图片 圖片 媒体 媒體 分类 分類 模板 维基百科 維基百科 主题 主題 帮助 "
        "幫助 草稿 用户 使用者 特殊 模块 模組"
    ).split()
)
_LANGUAGE = re.compile(r"(?:[a-z]{2,3}|simple|zh-[a-z-]+|[a-z]{2,3}-[a-z]+):")
_EXTERNAL = re.compile(r"\[(?:(?:https?|ftp):)?//[^\s\[\]]++[ \t]*+([^\[\]\n]*)\]")
_SWITCH = re.compile(r"__[^\W_]{1,30}__")
_QUOTES = re.compile(r"'{2,}")
_LINE_START = re.compile(r"^[ \t]*[*#:;]+[ \t]*|^-{4,}[ \t]*", re.MULTILINE)
_HEADING = re.compile(r"^[ \t]*={1,6}([^=\n]*)={1,6}[ \t]*$", re.MULTILINE)
_EMPTY_BRACKETS = re.compile(r"[（(][ \t,，;；、:：]*[)）]")
_EMPTY_PLACES = re.compile(r"([（(])[ \t]*[,，;；、][ \t,，;；、]*")
_SPACE = re.compile(r"[ \t\u00a0\u3000]+")


def plain_text(wikitext: str) -> str:
    """What a reader of the page would read, a paragraph a line."""
    text = _without_marks(_without_tags(_without_comments(wikitext)))
    text = _EXTERNAL.sub(r"\1", text)
    text = _LINE_START.sub("", _SWITCH.sub("", text))
    text = _QUOTES.sub("", _HEADING.sub(r"\1", text))
    text = _EMPTY_PLACES.sub(r"\1", _EMPTY_BRACKETS.sub("", html.unescape(text)))
    lines = (line.strip() for line in _SPACE.sub(" ", text).split("\n"))
    return "\n".join(line for line in lines if line)


def _without_comments(text: str) -> str:
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0:
        parts.append(text[at:start])
        end = text.find("-->", start + 4)
        if end < 0:
            return "".join(parts)
        at = end + 3
    return "".join((*parts, text[at:]))


def _without_tags(text: str) -> str:
    parts: list[str] = []
    at = 0
    unclosed: set[str] = set()
    for tag in _TAG.finditer(text):
        if tag.start() < at:
            continue
        parts.append(text[at : tag.start()])
        at = tag.end()
        if tag["breaking"]:
            parts.append("\n")
        name = tag["name"].lower()
        if tag["dropped"] and not tag["close"] and not tag[0].endswith("/>") and name not in unclosed:
            end = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, at)
            if end is None:
                unclosed.add(name)  # nor will another be closed further on
            else:
                at = end.end()
    return "".join((*parts, text[at:]))


def _without_marks(text: str) -> str:
    """Templates and tables go, links and conversions become their wording; a mark without its partner goes alone."""
    out: list[str] = []
    opened: list[tuple[str, int]] = []  # the mark, and where in the output what it encloses begins
    depth = dict.fromkeys(_CLOSES.values(), 0)
    at = 0
    for found in _MARK.finditer(text):
        mark = found[0].strip(" \t:")
        if (rest := found.start()) > at:
            out.append(text[at:rest])
        at = found.end()
        if mark in depth:
            if mark in ("{{", "{|") or depth["[["] + depth["-{"] < _DEEPEST:
                opened.append((mark, len(out)))
                depth[mark] += 1
            continue
        partner = _CLOSES[mark]
        if not depth[partner]:
            continue
        while True:
            last, start = opened.pop()
            depth[last] -= 1
            if last == partner:
                break
        inside = "" if partner in ("{{", "{|") else "".join(out[start:])
        del out[start:]
        out.append(_link(inside) if partner == "[[" else _conversion(inside) if partner == "-{" else "")
    out.append(text[at:])
    return "".join(out)


def _link(inside: str) -> str:
    target, _, wording = inside.partition("|")
    target = target.strip()
    namespace, colon, _ = target.partition(":")
    if colon and (namespace.strip().lower() in _NAMESPACES or _LANGUAGE.match(target)):
        return ""
    return wording.strip() if wording.strip(" '\t\n") else target.lstrip(":").partition("#")[0]


def _conversion(inside: str) -> str:
    """What is shown of a conversion in simplified characters. (mediawiki.org/wiki/Writing_systems/Syntax)"""
    flags, bar, rules = inside.rpartition("|")
    hidden = bar and not {"H", "T", "D", "N", "-"}.isdisjoint(flag.strip() for flag in flags.split(";"))
    if hidden or "=>" in rules:
        return ""
    variants: dict[str, str] = {}
    for rule in rules.split(";"):
        variant, colon, wording = rule.partition(":")
        if colon and (key := variant.strip().lower()).startswith("zh"):
            variants[key] = wording.strip()
    for key in ("zh-hans", "zh-cn", "zh-sg", "zh-my", "zh", *variants):
        if key in variants:
            return variants[key]
    return rules
