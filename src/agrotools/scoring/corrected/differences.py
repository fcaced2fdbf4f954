"""What each corrected metric does otherwise than the published one, in a few words: for tables.

docs/reference-scorers.md says it at length, with a worked number each.
"""

from collections.abc import Mapping

_CALLS_ONCE = "each call counts once, failed ones never"
_ANSWERS = "signs, decimals and thousands are read"
_OBJECTIVE = "the same, objective answers alone"
_IMAGES = "all image calls count, and none is free"
_READ = "missing or unreadable is 0"

_STEPS = {
    "inst_acc": "over all gold steps, missing ones wrong",
    "tool_acc": "missing steps are wrong",
    "arg_acc": "defaults, folders, blanks aside; true is not 1",
    "arg_acc_agreement": "sums by value, boxes by overlap, texts by words",
    "summ_acc": _ANSWERS,
    "summ_acc_objective": _OBJECTIVE,
}
_END = {
    "ans_acc": _ANSWERS,
    "ans_acc_objective": _OBJECTIVE,
    "p_f1": _CALLS_ONCE,
    "o_f1": _CALLS_ONCE,
    "l_f1": _CALLS_ONCE,
}
_GTA = _STEPS | _END | {"ans_acc_imggen": _IMAGES, "c_f1": _CALLS_ONCE}
_THINKGEO = _STEPS | _END | {"ans_i": _IMAGES, "llm_score": "a reply may say more than yes"}
_JUDGED = ("ground_s", "tool_p", "tool_acc", "faith_acc", "context_s", "fact_p", "sem_acc", "step_s", "clarity")
_AGENT_X = {
    **dict.fromkeys((*_JUDGED, "reward"), _READ),
    "goal_acc": f"generative tasks by their type; {_READ}",
    "goal_acc_imggen": f"generative tasks by their type, tool sets by code; {_READ}",
    "toolset_acc": "replaced by toolset_f1",
    "toolset_f1": "tool sets are compared by code",
}

_AGRIEVAL = {
    "accuracy": "no lots; what the reply settles on is read",
    "partial": "share of the right options, 0 with a wrong one",
    "accuracy_lexeval": "read by the rule of LexEval",
    "rouge_l": "by characters, as the paper has it",
    "rouge_l_normalised": "the same without punctuation, spaces and case",
    "rouge_1": "words between spaces: a Chinese text is one",
    "rouge_2": "the same, pairs of words",
    "hf_rouge1": "words of a to z and digits: Chinese has none",
    "hf_rouge2": "the same, pairs of words",
    "hf_rougel": "the same, in order",
    "hf_rougelsum": "the same, line by line",
}

DIFFERENCES: Mapping[str, str] = {
    f"{family}.{name}": said
    for family, metrics in (("gta", _GTA), ("thinkgeo", _THINKGEO), ("agent_x", _AGENT_X), ("agrieval", _AGRIEVAL))
    for name, said in metrics.items()
}
"""By the published id of a metric: a corrected one has ``_corrected`` behind it."""
