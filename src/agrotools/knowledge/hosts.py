"""Crops and other hosts: the names that entries may use, and those that a question names."""

from functools import cache, lru_cache

from agrotools.knowledge.entry import Entry
from agrotools.knowledge.words import folded, stem

CROP_NAMES = frozenset(
    " ".join(name.split())
    for name in """
    alfalfa, almond, amaranth, apple, apricot, artichoke, asparagus, aubergine, avocado, bamboo, banana, barley,
    basil, bean, beet, bell pepper, bermudagrass, betel, black gram, black pepper, blackberry, blueberry,
    brassica, broad bean, broccoli, broccoli rabe, brussels sprout, buckwheat, cabbage, cacao, canola, cardamom,
    carrot, cashew, cassava, castor, cauliflower, celery, cereal, cherry, chestnut, chickpea, chilli, chinese
    cabbage, chive, cinnamon, citrus, clove, clover, cocoa, coconut, coffee, collard, common bean, conifer,
    coriander, cotton, cover crop, cowpea, cranberry, cucumber, cucurbit, currant, date palm, dragon fruit,
    durian, eggplant, elm, endive, eucalyptus, faba bean, fallow, fescue, fig, finger millet, flax, flowers,
    forage grass, forest tree, foxtail millet, fruit, fruit tree, fruit trees, garlic, garlic chive, ginger,
    gooseberry, grape, grapefruit, grass, grassland, green gram, groundnut, guava, hay, hazelnut, hemp, hop,
    jackfruit, jujube, jute, kale, kiwifruit, lawn, leek, legume, lemon, lentil, lettuce, lime, linseed, litchi,
    longan, loquat, lucerne, lupin, lychee, macadamia, maize, mandarin, mango, maple, maple tree, melon, millet,
    mint, mulberry, mung bean, mushroom, mustard, nectarine, nursery, oak, oat, oats, oil palm, okra, olive,
    onion, orange, orchard, ornamental, ornamentals, palm, papaya, parsley, passion fruit, pasture, pea, peach,
    peanut, pear, pearl millet, pecan, pepper, persimmon, pigeon pea, pine, pineapple, pistachio, pittosporum,
    plum, pomegranate, poplar, potato, prickly ash, pumpkin, quince, quinoa, radish, rangeland, rapeseed,
    raspberry, rice, rose, rubber, rutabaga, rye, ryegrass, safflower, sesame, shallot, shrub, sorghum, soybean,
    spinach, squash, strawberry, sugar beet, sugarcane, sunflower, swede, sweet corn, sweet pepper, sweet
    potato, sweetpotato, swiss chard, switchgrass, tangerine, taro, tea, timothy, tobacco, tomato, tree, tree of
    heaven, triticale, turf, turfgrass, turmeric, turnip, vanilla, vegetable, vegetables, vetch, vineyard,
    walnut, watermelon, wheat, willow, yam, zucchini
    """.split(",")
)
"""Names that an entry may use: plain English, in lower case, singular but for groups."""
_NO_HOST = frozenset(
    "cereal fallow flowers fruit grass grassland hay lawn legume nursery orchard ornamental ornamentals pasture "
    "rangeland shrub tree turf turfgrass vegetable vegetables vineyard hop orange chestnut castor amaranth "
    "rubber palm".split()
)
"""Names of crops that a question uses for a place, a part, a colour, a weed or a thing too."""
OTHER_HOSTS = frozenset(
    "azalea begonia birch boxwood buxus cactus camellia carnation chrysanthemum clematis cypress daffodil dahlia fern "
    "fir geranium gladiolus hibiscus holly hosta houseplant hydrangea iris ivy larch lavender lilac lily magnolia "
    "orchid pelargonium peony petunia primrose rhododendron rosemary snapdragon spruce thyme tulip wisteria yew "
    "rhubarb tomatillo cat dog goat hen chicken human bee horse".split()
)
"""Hosts that a question may name and that no entry concerns."""
_SAME = {
    "oranges": "citrus", "lemon": "citrus", "lime": "citrus", "mandarin": "citrus", "grapefruit": "citrus",
    "tangerine": "citrus", "orange tree": "citrus", "orange fruit": "citrus", "orange leaf": "citrus",
    "orange leaves": "citrus", "orange rind": "citrus", "orange skin": "citrus", "orange grove": "citrus",
    "satsuma": "citrus", "pomelo": "citrus", "corn": "maize", "sweet corn": "maize", "sweetcorn": "maize",
    "canola": "rapeseed", "rape": "rapeseed", "aubergine": "eggplant", "brinjal": "eggplant", "lucerne": "alfalfa",
    "groundnut": "peanut", "urad": "black gram", "urd": "black gram", "urdbean": "black gram",
    "bell pepper": "pepper", "sweet pepper": "pepper", "chilli": "pepper", "chili": "pepper", "chile": "pepper",
    "capsicum": "pepper", "courgette": "squash", "zucchini": "squash", "pumpkin": "squash", "marrow": "squash",
    "gourd": "squash", "common bean": "bean", "paddy": "rice", "lychee": "litchi", "cocoa": "cacao", "linseed": "flax",
    "beetroot": "sugar beet", "beet": "sugar beet", "grapevine": "grape", "vines": "grape", "vine leaf": "grape",
    "vine leaves": "grape", "soya": "soybean", "soy": "soybean", "soyabean": "soybean", "cane": "sugarcane",
    "soya bean": "soybean", "soy bean": "soybean",
    "sugar cane": "sugarcane", "chard": "swiss chard", "manioc": "cassava", "oats": "oat", "maple tree": "maple",
    "nectarine": "peach", "chinese cabbage": "cabbage", "sweet potato": "sweetpotato", "faba bean": "broad bean",
    "kiwi": "kiwifruit", "coconut palm": "coconut", "box hedge": "boxwood",
}  # fmt: skip
"""Surface -> the host as it is counted. A vine in the singular may be any climber."""
_MEMBERS: dict[str, tuple[str, ...]] = {
    "cucurbit": ("cucumber", "squash", "melon", "watermelon"),
    "brassica": ("cabbage", "broccoli", "cauliflower", "kale", "rapeseed", "mustard", "radish", "turnip", "collard"),
    "fruit": ("apple", "pear", "peach", "plum", "cherry", "apricot"),
    "fruit tree": ("apple", "pear", "peach", "plum", "cherry", "apricot"),
    "vegetable": (
        "tomato",
        "cabbage",
        "bean",
        "cucumber",
        "pepper",
        "lettuce",
        "onion",
        "potato",
        "radish",
        "eggplant",
    ),
    "cereal": ("wheat", "barley", "oat", "rye"),
    "orange": ("citrus",),
    "vineyard": ("grape",),
    "palm": ("coconut", "date palm", "oil palm"),
}


def known_crops(entries: tuple[Entry, ...] = ()) -> frozenset[str]:
    """:data:`CROP_NAMES` and the English names of the crops among ``entries``, in lower case."""
    own = {name.lower() for entry in entries if entry.kind == "crop" for name in (entry.names.en, *entry.names.aliases)}
    return CROP_NAMES | own


@cache
def _known() -> dict[str, str]:
    names = {name: name for name in (*CROP_NAMES, *OTHER_HOSTS) if name not in _NO_HOST} | _SAME
    return {" ".join(map(stem, name.split())): host for name, host in names.items() if name != "oranges"}


def hosts_named(query: str) -> tuple[frozenset[str], frozenset[int]]:
    """The hosts that a question names, and which of its words, by number, name them."""
    words = folded(query).split()
    stems = [stem(word) for word in words]
    known = _known()
    hosts: set[str] = set()
    taken: set[int] = set()
    for at in range(len(words)):
        if at in taken:
            continue
        pair = " ".join(stems[at : at + 2])
        if at + 1 < len(words) and pair in known:
            hosts.add(known[pair])
            taken |= {at, at + 1}
        elif words[at] in ("oranges", "vines"):
            hosts.add(_SAME[words[at]])
            taken.add(at)
        elif stems[at] in known and words[at] != "vine":
            hosts.add(known[stems[at]])
            taken.add(at)
    return frozenset(hosts), frozenset(taken)


@lru_cache(2_000)
def hosts_of(crop: str) -> frozenset[str]:
    """The hosts, as questions name them, that the name of a crop in an entry stands for."""
    members = _MEMBERS.get(crop)
    return frozenset(members) if members else hosts_named(crop)[0] or frozenset({crop})
