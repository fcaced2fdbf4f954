"""Words to cite a run: a paragraph with its scores between floor and ceiling, and an entry for a bibliography."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agrotools.core import FrozenModel, Mode
from agrotools.core.texts import benchmark_title, count_text
from agrotools.formats.manifest import Manifest
from agrotools.report.ladder import TITLES, rungs, values_by_role
from agrotools.report.layout import fields_text, interval_text, percent
from agrotools.report.screen import headline
from agrotools.runner.policies import is_agent
from agrotools.runner.records import last_record_at
from agrotools.runner.rescore import Rescored
from agrotools.runner.yardsticks import Yardsticks
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.statistics import Interval
from agrotools.scoring.summary import Summary

TITLE = "agrotools: tool use of multimodal models in agriculture, measured"
AUTHORS = "The agrotools maintainers"
_HASH_DIGITS = 12
_Share = Annotated[float, Field(ge=-1, le=1)]


class ModeScore(FrozenModel):
    """Score of a run in one mode, as a fraction, between the floor and the ceiling of the same samples."""

    metric: str
    score: _Share
    interval: Interval | None
    """95 % interval over clusters; null with fewer than 10 clusters."""
    n: Annotated[int, Field(ge=1)]
    """Number of samples in the mean."""
    clusters: Annotated[int, Field(ge=1)]
    """Number of groups of samples that share a file."""
    floor: _Share | None
    """Score of a guess or of the best constant answer, whichever is higher; null if the metric has none."""
    ceiling: _Share | None
    """Score of the reference calls; null in a mode without calls, or if they decide only some of the answers."""
    invalid: Annotated[int, Field(ge=0)] = 0
    """Number of records without a reply of the model, which are left out."""
    missing: Annotated[int, Field(ge=0)] = 0
    """Number of planned records that were not run."""


def mode_scores(scored: Rescored, yardsticks: Mapping[Mode, Yardsticks]) -> dict[Mode, ModeScore]:
    """Return the headline score of each mode whose score may be shown.

    ``yardsticks``: baselines on the samples of a mode; a mode without any has no floor and no ceiling.
    """
    summary = scored.summary
    scores: dict[Mode, ModeScore] = {}
    for mode, part in summary.modes.items():
        measure = headline([summary], [mode])
        if measure is None or measure[0].mode != mode or not part.headline:
            continue
        estimate = (measure[0].of(summary) or {})[measure[1]].overall
        limits = values_by_role(rungs([scored], yardsticks.get(mode, Yardsticks()), measure))
        scores[mode] = ModeScore(
            metric=measure[1],
            score=estimate.value,
            interval=estimate.interval,
            n=estimate.n,
            clusters=estimate.n_clusters,
            floor=limits.get("floor"),
            ceiling=limits.get("ceiling"),
            invalid=part.invalid.n,
            missing=summary.missing.get(mode, 0),
        )
    return scores


def cited_model(manifest: Manifest) -> str:
    """Return the model as it is shown; of a file the name alone, as its folder is of no use to others."""
    label = manifest.labelled_model
    if manifest.name or not manifest.model.endswith(".gguf"):
        return label
    return label.replace(manifest.model, Path(manifest.model).stem)


def citation(
    run: Path, manifest: Manifest, summary: Summary, scores: Mapping[Mode, ModeScore]
) -> str:
    """Return a paragraph about a run and an entry in BibTeX, divided by an empty line."""
    date = f"{last_record_at(run):%Y-%m-%d}"
    part = "the quick part of " if manifest.quick else ""
    benchmark = benchmark_title(manifest.benchmark, manifest.benchmark_version)
    if manifest.task_types:
        benchmark += f", {manifest.task_types}"
    if manifest.limit:
        part = f"{manifest.limit} of {part}"
    sentences = [
        f"{cited_model(manifest)} on {part}{benchmark}{' (drawn pictures)' if manifest.synthetic else ''}.",
        *(_sentence(mode, score) for mode, score in scores.items()),
        f"Measured on {date} with agrotools {manifest.agrotools} (scoring {summary.scoring}; {_settings(manifest)}).",
        f"Hashes: {_hashes(manifest)}.",
    ]
    if not scores:
        sentences.insert(1, "No score may be shown.")
    entry = [
        "@software{agrotools,",
        f"  title = {{{TITLE}}},",
        f"  author = {{{{{AUTHORS}}}}},",
        f"  version = {{{manifest.agrotools}}},",
        f"  year = {{{date[:4]}}}",
        "}",
    ]
    return " ".join(sentences) + "\n\n" + "\n".join(entry)


def _sentence(mode: Mode, score: ModeScore) -> str:
    metric = METRICS[score.metric]
    interval = ""
    if score.interval:
        interval = f", 95 % interval {interval_text(score.interval)}"
    text = f"{TITLES[mode]}: {metric.label} {percent(score.score)} of 100{interval}"
    unit = "step" if mode == "step-by-step" else "question"
    text += f", {count_text(score.n, unit)} in {count_text(score.clusters, 'cluster')}"
    if score.floor is not None:
        text += f"; floor {percent(score.floor)}"
    if score.ceiling is not None:
        text += f"; ceiling {percent(score.ceiling)}"
    if score.missing:
        text += f"; {count_text(score.missing, 'record')} not run"
    return f"{text}."


def _settings(manifest: Manifest) -> str:
    """Return the protocol and the settings of a run that its scores depend on, in words."""
    # An agent of its own has no protocol of ours, and takes the seed from us, if it uses one at all.
    # An agent at an address is neither sealed nor unsealed: its name tells that it is one.
    has_agent = is_agent(manifest.model) or manifest.sealed is not None
    agent = f"an agent of its own, seed {manifest.seed}"
    words = [agent if has_agent else f"protocol {manifest.protocol}"]
    if not manifest.images:
        words.append("pictures not shown")
    if manifest.tools != "all":
        words.append(f"tools {manifest.tools}")
    if manifest.tool_servers:
        servers = " and ".join(
            f"{each.name} {each.version}".strip() for each in manifest.tool_servers
        )
        is_one = len(manifest.tool_servers) == 1
        words.append(f"{'tool server' if is_one else 'tool servers'} {servers}")
    sampling = {name: value for name, value in manifest.settings.items() if value not in ({}, None)}
    if not has_agent:
        words.append(fields_text(sampling) or "sampling as the endpoint does")
    if manifest.epochs > 1:
        words.append(count_text(manifest.epochs, "epoch"))
    words.append(f"at most {count_text(manifest.max_steps, 'turn')}")
    return ", ".join(words)


def _hashes(manifest: Manifest) -> str:
    named = {
        "benchmark": manifest.benchmark_hash,
        "tools": manifest.toolset_hash,
        "prompts": manifest.prompt_hash,
    }
    return ", ".join(f"{name} {text[:_HASH_DIGITS]}" for name, text in named.items() if text)
