"""The crops and host plants that an entry may name: plain English, in lower case, singular but for groups."""

from agrotools.knowledge.entry import Entry

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


def known_crops(entries: tuple[Entry, ...] = ()) -> frozenset[str]:
    """The names above and the English names of the crops among ``entries``, in lower case."""
    own = {name.lower() for entry in entries if entry.kind == "crop" for name in (entry.names.en, *entry.names.aliases)}
    return CROP_NAMES | own
