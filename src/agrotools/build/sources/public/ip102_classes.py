"""IP102's classes: their published names, the crops they belong to, and what the knowledge base knows them as.

Names keep the authors' spelling, by which the knowledge base finds them; what people call a pest is the base's own
name. About one in five names stands for more than a species, such as "aphids": whoever names a member of it is right
too, and the two are never offered side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from agrotools.knowledge.entry import Entry
from agrotools.tools.lookup.kb_names import kb_names

_NAMES = """
rice leaf roller; rice leaf caterpillar; paddy stem maggot; asiatic rice borer; yellow rice borer; rice gall
midge; Rice Stemfly; brown plant hopper; white backed plant hopper; small brown plant hopper; rice water weevil;
rice leafhopper; grain spreader thrips; rice shell pest; grub; mole cricket; wireworm; white margined moth;
black cutworm; large cutworm; yellow cutworm; red spider; corn borer; army worm; aphids; Potosiabre vitarsis;
peach borer; english grain aphid; green bug; bird cherry-oataphid; wheat blossom midge; penthaleus major;
longlegged spider mite; wheat phloeothrips; wheat sawfly; cerodonta denticornis; beet fly; flea beetle; cabbage
army worm; beet army worm; Beet spot flies; meadow moth; beet weevil; sericaorient alismots chulsky; alfalfa
weevil; flax budworm; alfalfa plant bug; tarnished plant bug; Locustoidea; lytta polita; legume blister beetle;
blister beetle; therioaphis maculata Buckton; odontothrips loti; Thrips; alfalfa seed chalcid; Pieris canidia;
Apolygus lucorum; Limacodidae; Viteus vitifoliae; Colomerus vitis; Brevipoalpus lewisi McGregor; oides
decempunctata; Polyphagotars onemus latus; Pseudococcus comstocki Kuwana; parathrene regalis; Ampelophaga;
Lycorma delicatula; Xylotrechus; Cicadella viridis; Miridae; Trialeurodes vaporariorum; Erythroneura apicalis;
Papilio xuthus; Panonchus citri McGregor; Phyllocoptes oleiverus ashmead; Icerya purchasi Maskell; Unaspis
yanonensis; Ceroplastes rubens; Chrysomphalus aonidum; Parlatoria zizyphus Lucus; Nipaecoccus vastalor;
Aleurocanthus spiniferus; Tetradacus c Bactrocera minax; Dacus dorsalis(Hendel); Bactrocera tsuneonis; Prodenia
litura; Adristyrannus; Phyllocnistis citrella Stainton; Toxoptera citricidus; Toxoptera aurantii; Aphis
citricola Vander Goot; Scirtothrips dorsalis Hood; Dasineura sp; Lawana imitata Melichar; Salurnis marginella
Guerr; Deporaus marginatus Pascoe; Chlumetia transversa; Mango flat beak leafhopper; Rhytidodera bowrinii white;
Sternochetus frigidus; Cicadellidae
"""
CLASSES: tuple[str, ...] = tuple(name.strip() for name in " ".join(_NAMES.split()).split(";"))
"""By label, 0 to 101; the id in classes.txt is one more."""
_CROPS = (
    ("rice", 14), ("maize", 13), ("wheat", 9), ("sugar beet", 8), ("alfalfa", 13), ("grape", 16), ("citrus", 19),
    ("mango", 10),
)  # fmt: skip
"""In the order of classes, with how many each has (the paper's table)."""
CROPS: tuple[str, ...] = tuple(crop for crop, count in _CROPS for _ in range(count))
"""The crop of each label, as the knowledge base calls it."""
UNKNOWN = ("pest.rice_shell_pest",)
"""Names that stand for no insect that anybody could tell."""
_KEY = "ip102"


@dataclass(frozen=True)
class Pest:
    """A class: ``label`` as published, ``crop`` whose pictures it comes from, and its entry."""

    label: str
    crop: str
    entry: Entry

    @property
    def name(self) -> str:
        return self.entry.names.en

    @property
    def species(self) -> str | None:
        """Scientific name of a single species; None where the class is wider."""
        sci = self.entry.names.sci
        return None if sci is None or sci.endswith((" sp.", " spp.")) else sci

    def covers(self, other: "Pest") -> bool:
        """Whether whoever says ``other`` has named this too, or may have: it is this, or one of this group."""
        if self.entry.id == other.entry.id:
            return True
        if self.species is not None:
            return False
        mine, theirs = self.entry.names.sci, other.entry.names.sci
        if mine is not None:
            return theirs is not None and theirs.split()[0] == mine.split()[0]
        family, order = self.entry.taxonomy.family, self.entry.taxonomy.order
        if family is not None:
            return other.entry.taxonomy.family == family
        return order is not None and other.entry.taxonomy.order == order

    def like(self, other: "Pest") -> bool:
        """Whether one name might be right for both."""
        return self.covers(other) or other.covers(self)


@cache
def pests() -> dict[int, Pest]:
    """The classes by label; without those that the knowledge base has no entry for, or cannot tell what they are."""
    by_label = {label: entry for entry in kb_names().entries for label in entry.names.datasets.get(_KEY, ())}
    found = {number: by_label.get(name) for number, name in enumerate(CLASSES)}
    return {
        number: Pest(CLASSES[number], CROPS[number], entry)
        for number, entry in found.items()
        if entry is not None and entry.id not in UNKNOWN
    }


def known_as(pest: Pest) -> tuple[str, ...]:
    """Every name by which a pest is rightly called, its own first; those of its members where it is a group."""
    members = [one for one in pests().values() if one is not pest and pest.covers(one)]
    return tuple(dict.fromkeys(name for one in (pest, *members) for name in one.entry.names.all()))


def others_on(pest: Pest) -> Sequence[Pest]:
    """The other classes of its crop that it cannot be taken for, in the order of classes."""
    on_crop = [one for one in pests().values() if one.crop == pest.crop and not pest.like(one)]
    return list({one.entry.id: one for one in on_crop}.values())
