"""Fill in the key facts of open questions again, in the packs of benchmarks in the package, without running a tool.

    python training/refresh_open_text.py embedded frontier

Run it when key facts or what is derived from them change (``build/templates/facts``, ``key_facts.py``). A question with
a branch (``'management' if @0.value > 8 else 'causes'``) also gets the facts of the branch that does not apply.
"""

import ast
import sys
from typing import Any

from agrotools.benchmarks.pack import pack_path, read_pack, write_pack
from agrotools.build.templates.key_facts import facts_about, open_gold
from agrotools.core import AbstainSlot, OpenTextSlot, Sample, Slot
from agrotools.core.record import literal_value, update_literals


def main(names: list[str]) -> None:
    for name in names:
        pack = read_pack(name)
        samples = [refreshed(sample) for sample in pack.samples]
        changed = sum(new != old for new, old in zip(samples, pack.samples, strict=True))
        write_pack(pack_path(name), pack.header, pack.files, samples)
        print(f"{name}: {changed} of {len(samples)} samples changed")


def refreshed(sample: Sample) -> Sample:
    """Return a sample with today's key facts in its open-text slots, also in those of an unanswerable question."""
    answer = [
        slot.model_copy(update={"asks": tuple(_refreshed(asked, sample) for asked in slot.asks)})
        if isinstance(slot, AbstainSlot)
        else _refreshed(slot, sample)
        for slot in sample.answer
    ]
    return sample.model_copy(update={"answer": tuple(answer)})


def _refreshed(slot: Slot, sample: Sample) -> Slot:
    if not isinstance(slot, OpenTextSlot):
        return slot
    assert sample.reference is not None
    steps = sample.reference.steps
    arguments = next(step.arguments for step in reversed(steps) if step.tool == "lookup_agronomy")
    # Where a tool errs, what is asked goes by the truth, not by what it returned.
    true = [step.truth or (step.observation.result if step.observation else None) for step in steps]
    entry, topic = (str(literal_value(update_literals(arguments[name], true))) for name in ("kb_id", "topic"))
    expressions = [step.arguments["expression"] for step in steps if step.tool == "calculate"]
    texts = [text for each in expressions for text in _texts_of(str(literal_value(each)))]
    branches = tuple(text for text in dict.fromkeys(texts) if facts_about(entry, text))
    gold = open_gold(entry, topic, branches if topic in branches else ())
    if gold is None or [fact.phrases[0] for fact in gold.facts] != [fact.phrases[0] for fact in slot.facts]:
        raise SystemExit(f"{sample.id}: its facts are not those on {topic} of {entry}")
    return slot.model_copy(update=gold._asdict())


def _texts_of(expression: str) -> list[Any]:
    constants = (node for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Constant))
    return [node.value for node in constants if isinstance(node.value, str)]


if __name__ == "__main__":
    main(sys.argv[1:])
