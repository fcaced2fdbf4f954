"""The species that are drawn, by the slug of their entry in the knowledge base."""

from collections.abc import Mapping
from dataclasses import dataclass

from agrotools.build.scenes.insects import builds as b
from agrotools.build.scenes.insects import winged as w
from agrotools.build.scenes.insects.builds import Build


@dataclass(frozen=True)
class Insect:
    """``slug``: of its entry (``pest.<slug>``); ``size``: its length beside the others', 0.5 small to 1 large;
    ``compact``: about as wide as long and of one tone, as something that can be counted on a sticky trap."""

    slug: str
    draw: Build
    size: float = 0.8
    compact: bool = False


_WHITE_FLECKS = (
    (0.02, 0.55, 0.022),
    (-0.10, 0.30, 0.018),
    (-0.18, 0.72, 0.024),
    (-0.30, 0.40, 0.022),
    (0.06, 0.2, 0.014),
)

SPECIES: tuple[Insect, ...] = (
    Insect(
        "flea_beetle",
        b.beetle(wide=0.27, wings=(34, 40, 58), collar=(30, 34, 48), head=(28, 28, 34), thick_thigh=True, gloss=0.9),
        0.65,
        compact=True,
    ),
    Insect(
        "blister_beetle",
        b.beetle(
            wide=0.155,
            wings=(66, 64, 66),
            collar=(52, 50, 52),
            head=(64, 56, 52),
            feeler=0.42,
            neck=0.45,
            stripe=(176, 166, 138),
            gloss=0.25,
        ),
    ),
    Insect(
        "potosia_brevitarsis",
        b.beetle(
            wide=0.29,
            wings=(92, 74, 38),
            collar=(82, 68, 36),
            head=(70, 58, 34),
            feeler=0.12,
            spots=_WHITE_FLECKS,
            spot=(232, 226, 208),
            gloss=0.7,
        ),
        0.9,
    ),
    Insect(
        "xylotrechus",
        b.beetle(
            wide=0.15,
            wings=(30, 27, 26),
            collar=(150, 52, 34),
            head=(36, 30, 28),
            feeler=0.50,
            bands=(0.02, -0.14, -0.32),
            spot=(226, 192, 70),
        ),
        0.9,
    ),
    Insect(
        "alfalfa_weevil",
        b.beetle(
            wide=0.20,
            wings=(150, 118, 76),
            collar=(112, 84, 56),
            head=(84, 62, 44),
            feeler=0.16,
            snout=0.16,
            stripe=(88, 62, 40),
            gloss=0.2,
        ),
        0.65,
    ),
    Insect(
        "grub", b.larva(wide=0.125, skin=(232, 222, 196), head=(150, 84, 38), curl=0.92, rings=0.35, stumps=False), 0.85
    ),
    Insect(
        "wireworm",
        b.larva(
            wide=0.042, skin=(196, 132, 52), head=(110, 64, 26), curl=0.14, rings=0.6, count=13, hard=True, stumps=False
        ),
        0.9,
    ),
    Insect(
        "army_worm",
        b.larva(
            wide=0.070,
            skin=(150, 132, 84),
            head=(168, 120, 62),
            stripes=(
                (0.0, (232, 220, 176)),
                (0.5, (70, 58, 42)),
                (-0.5, (70, 58, 42)),
                (0.85, (206, 148, 96)),
                (-0.85, (206, 148, 96)),
            ),
        ),
    ),
    Insect(
        "prodenia_litura",
        b.larva(
            wide=0.082, skin=(86, 84, 62), head=(38, 32, 28), stripes=((0.0, (214, 150, 48)),), triangles=(18, 16, 14)
        ),
    ),
    Insect("corn_borer", b.larva(wide=0.068, skin=(226, 192, 172), head=(60, 34, 26), dots=(120, 76, 62))),
    Insect(
        "striped_rice_borer",
        b.larva(
            wide=0.052,
            skin=(232, 218, 182),
            head=(172, 112, 56),
            curl=0.18,
            stripes=(
                (0.0, (146, 86, 54)),
                (0.45, (158, 96, 62)),
                (-0.45, (158, 96, 62)),
                (0.85, (158, 96, 62)),
                (-0.85, (158, 96, 62)),
            ),
        ),
    ),
    Insect("yellow_rice_borer", w.moth(fore=(236, 208, 112), trunk=(240, 222, 160), dot=(-0.16, 0.25, 0.040)), 0.75),
    Insect(
        "rice_leaf_roller",
        w.moth(
            fore=(200, 154, 82),
            trunk=(190, 150, 92),
            spread=0.9,
            lines=(0.08, -0.14),
            mark=(86, 56, 34),
            rim=(92, 66, 46),
        ),
        0.75,
    ),
    Insect(
        "papilio_xuthus", w.butterfly(wing=(238, 226, 160), mark=(30, 28, 30), tails=True, veins=True, tip=False), 1.0
    ),
    Insect("pieris_canidia", w.butterfly(wing=(244, 244, 236), mark=(52, 48, 50), spots=2), 0.95),
    Insect("english_grain_aphid", b.aphid(skin=(136, 178, 74), tubes=(34, 30, 28)), 0.55, compact=True),
    Insect("brown_planthopper", w.wedge(wings=(170, 128, 80), trunk=(118, 76, 44), clear=0.7), 0.6),
    Insect("rice_leafhopper", w.wedge(wings=(120, 188, 66), trunk=(150, 204, 92), tips=(32, 30, 34), wide=0.15), 0.6),
    Insect(
        "spotted_lanternfly",
        w.wedge(wings=(190, 172, 158), trunk=(96, 82, 72), wide=0.26, spots=5, tips=(120, 108, 104)),
        0.95,
    ),
    Insect("greenhouse_whitefly", w.whitefly(wings=(246, 246, 242), trunk=(238, 222, 142)), 0.5, compact=True),
    Insect("tarnished_plant_bug", b.plant_bug(back=(132, 96, 58), mark=(228, 202, 96), membrane=(96, 84, 70)), 0.65),
    Insect("thrips", b.thrips(skin=(206, 164, 76), fringe=(150, 128, 96)), 0.55),
    Insect("red_spider", b.mite(skin=(186, 48, 36), blotch=(86, 26, 24)), 0.5, compact=True),
    Insect(
        "oriental_fruit_fly",
        w.fly(trunk=(48, 38, 32), belly=(196, 130, 56), bands=(48, 34, 28), marks=(238, 208, 78)),
        0.65,
    ),
    Insect("rice_gall_midge", w.fly(trunk=(120, 66, 52), belly=(206, 92, 64), slim=0.5, leg_reach=0.62, wing=0.3), 0.5),
    Insect("locustoidea", b.grasshopper(skin=(134, 158, 70), wing=(150, 128, 84)), 1.0),
    Insect("mole_cricket", b.mole_cricket(skin=(142, 104, 66)), 1.0),
)
"""The proportions and colours are those of a sketch: what sets a species apart is drawn, sizes are not to scale."""

_BY_SLUG: Mapping[str, Insect] = {insect.slug: insect for insect in SPECIES}


def insect_named(slug: str) -> Insect:
    """The species of that slug.

    Raises:
        KeyError: it is not drawn.
    """
    return _BY_SLUG[slug]
