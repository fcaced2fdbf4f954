"""The model card: what a net is, what it learnt from, how well it does, and where it fails."""

from collections.abc import Sequence
from typing import Any


def share(value: float) -> str:
    return f"{value:.3f}"


def class_table(found: dict[str, dict[str, float]]) -> list[str]:
    lines = ["| class | n | precision | recall | F1 |", "|---|---|---|---|---|"]
    for name, one in found.items():
        numbers = " | ".join(share(one[key]) for key in ("precision", "recall", "f1"))
        lines.append(f"| {name.replace('_', ' ')} | {int(one['n'])} | {numbers} |")
    return lines


def figure_rows(figures: dict[str, dict[str, Any]]) -> list[str]:
    lines = [
        "| pictures | n | top-1 (95 %) | macro F1 | calibration error | before |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in figures.items():
        low, high = one["top1_95"]
        lines.append(
            f"| {name} | {one['n']} | {share(one['top1'])} ({share(low)} to {share(high)}) | {share(one['macro_f1'])} "
            f"| {share(one['ece'])} | {share(one['ece_uncalibrated'])} |"
        )
    return lines


def overlap_lines(overlap: dict[str, int]) -> list[str]:
    """What the guard against test pictures compared."""
    return [
        f"- **Overlap**: {overlap['pool_pictures']} pictures of the pool were compared with",
        f"  {overlap['test_pictures']} test pictures in eight orientations; none shares a",
        f"  photograph or lies within {overlap['hash_distance_over']} bits of a perceptual hash.",
    ]


def model_card(
    description: dict[str, Any], *, what: str, data: str, failures: Sequence[str]
) -> str:
    figures: dict[str, dict[str, Any]] = description["figures"]
    abstention = description["abstention"]
    main = next(iter(figures.values()))
    refused = [
        f"| {kind} | {one['n']} | {share(one['share'])} |"
        for kind, one in (abstention["refused"] | description.get("refused_beside", {})).items()
        if one["n"]
    ]
    lines = [
        f"# Model card: {description['name']}",
        "",
        f"{what} Written by `{description['recipe']}`.",
        "",
        f"- **What it is**: a residual network, {description['parameters']:,} parameters,",
        f"  trained from scratch for {description['epochs']} epochs (seed {description['seed']});",
        f"  {description['bytes']:,} bytes as ONNX, {description['latency_ms']} ms of one core for a picture.",
        f"- **Input**: RGB squeezed to {description['input']['shape'][3]} x {description['input']['shape'][2]} pixels;"
        " the graph looks at it, its two mirror",
        f"  images and the picture upside down, and gives the mean (one view alone: top-1"
        f" {share(description['top1_of_one_view'])}).",
        f"- **Data**: {data}",
        f"- **Licence of the data**: {description['licence']}",
        f"- **Split**: {description['split']}",
        *overlap_lines(description["overlap"]),
        f"- **Calibration**: logits are divided by {description['temperature']:.3f} ({description['calibrated_on']}).",
        *(
            f"- **No probabilities** of {crop}: {why}."
            for crop, why in description.get("uncalibrated", {}).items()
        ),
        *(
            [
                "- **Likeness**: the mean cosine of a picture's embedding with the nearest ten of those learnt from."
            ]
            if abstention["score"] == "likeness"
            else []
        ),
        f"- **Abstention**: an answer is given where {abstention['score'].replace('_', ' ')} is at least"
        f"  {abstention['threshold']:.4f}, which keeps {share(abstention['kept_of_known'])} of the pictures it was",
        f"  chosen on and {share(abstention['kept'])} of those reported below.",
        *(
            [
                f"- **No weed**: a weed is named where the probability of `negative` is at most {most:g}."
            ]
            if (most := abstention.get("most_negative", 1.0)) < 1
            else []
        ),
        "",
        "## Figures",
        "",
        *figure_rows(figures),
        "",
        f"By class, {next(iter(figures))}:",
        "",
        *class_table(main["by_class"]),
        "",
        "Pictures of none of the classes that the threshold refuses:",
        "",
        "| kind | n | refused |",
        "|---|---|---|",
        *refused,
        "",
        "## Where it fails",
        "",
        *(f"- {failure}" for failure in failures),
        "",
    ]
    return "\n".join(lines)
