"""The vocabulary of captions: names, looks, actions and places."""

from __future__ import annotations

NOUNS: dict[str, tuple[tuple[str, str], ...]] = {
    "ball": (("ball", "balls"), ("toy ball", "toy balls")),
    "balloon": (("balloon", "balloons"), ("hot-air balloon", "hot-air balloons")),
    "boat": (("boat", "boats"), ("sailing boat", "sailing boats"), ("sailboat", "sailboats")),
    "butterfly": (("butterfly", "butterflies"),),
    "car": (("car", "cars"), ("automobile", "automobiles")),
    "fish": (("fish", "fish"),),
    "flower": (("flower", "flowers"), ("blossom", "blossoms")),
    "house": (("house", "houses"), ("cottage", "cottages")),
    "kite": (("kite", "kites"),),
    "mushroom": (("mushroom", "mushrooms"), ("toadstool", "toadstools")),
    "rocket": (("rocket", "rockets"), ("spaceship", "spaceships")),
    "umbrella": (("umbrella", "umbrellas"), ("parasol", "parasols")),
}

COLOUR_WORDS: dict[str, tuple[str, ...]] = {
    "red": ("red", "red", "scarlet"),
    "orange": ("orange",),
    "yellow": ("yellow", "yellow", "golden"),
    "green": ("green",),
    "turquoise": ("turquoise", "teal"),
    "blue": ("blue",),
    "purple": ("purple", "purple", "violet"),
    "pink": ("pink", "pink", "rosy"),
    "brown": ("brown",),
    "white": ("white",),
}

SIZE_WORDS: dict[str, tuple[str, ...]] = {
    "small": ("small", "little", "tiny"),
    "medium": ("medium-sized",),
    "large": ("large", "big"),
}

TEXTURE_WORDS: dict[str, tuple[str, ...]] = {
    "plain": ("plain",),
    "striped": ("striped", "stripy"),
    "dotted": ("dotted", "spotted", "polka-dot"),
    "checked": ("checked", "chequered"),
}

TEXTURE_TAILS: dict[str, tuple[str, ...]] = {
    "striped": ("with stripes", "with broad stripes"),
    "dotted": ("with dots", "with pale spots"),
    "checked": ("with a checked pattern", "with a chequered pattern"),
}

# (it …, they …, …ing) for each kind in the settings where it can be.
ACTIONS: dict[str, dict[str, tuple[tuple[str, str, str], ...]]] = {
    "ball": {"ground": (("lies", "lie", "lying"), ("rests", "rest", "resting"))},
    "balloon": {"air": (("floats", "float", "floating"), ("drifts", "drift", "drifting"))},
    "boat": {
        "water": (("sails", "sail", "sailing"), ("floats", "float", "floating")),
        "ground": (("lies", "lie", "lying"),),
    },
    "butterfly": {"air": (("flutters", "flutter", "fluttering"), ("flies", "fly", "flying"))},
    "car": {"ground": (("stands", "stand", "standing"), ("is parked", "are parked", "parked"))},
    "fish": {"water": (("swims", "swim", "swimming"),)},
    "flower": {"ground": (("grows", "grow", "growing"), ("blooms", "bloom", "blooming"))},
    "house": {"ground": (("stands", "stand", "standing"),)},
    "kite": {"air": (("flies", "fly", "flying"), ("soars", "soar", "soaring"))},
    "mushroom": {"ground": (("grows", "grow", "growing"), ("stands", "stand", "standing"))},
    "rocket": {"air": (("flies", "fly", "flying"), ("zooms", "zoom", "zooming"))},
    "umbrella": {"ground": (("stands", "stand", "standing"), ("stands open", "stand open", "standing open"))},
}

PAGE_ACTIONS = (("is drawn", "are drawn", "drawn"), ("is painted", "are painted", "painted"))

# Where something is, by background and setting; each phrase follows a verb or a noun.
WHERE: dict[str, dict[str, tuple[str, ...]]] = {
    "meadow": {
        "ground": ("in a sunny meadow", "on the green grass", "in a green field"),
        "air": ("over a sunny meadow", "above the green hills", "in the blue sky above a meadow"),
    },
    "seaside": {
        "ground": ("on a sandy beach", "on the sand by the sea", "at the seaside"),
        "air": ("over a sandy beach", "above the sea", "in the sky at the seaside"),
        "water": ("off a sandy beach", "near the beach", "at the seaside"),
    },
    "night": {
        "ground": ("under a starry sky", "in the moonlight", "on a dark hill at night"),
        "air": ("in the night sky", "among the stars", "below the moon and the stars"),
    },
    "desert": {
        "ground": ("in the desert", "on a sand dune", "among the dunes of a hot desert"),
        "air": ("over the desert", "above the sand dunes", "in the hot desert sky"),
    },
    "snow": {
        "ground": ("in the snow", "on a snowy hill", "in a winter landscape"),
        "air": ("over snowy hills", "above a winter landscape", "in a snowy sky"),
    },
    "sunset": {
        "ground": ("on the shore at sunset", "by a lake in the evening", "under an orange evening sky"),
        "air": ("in an orange evening sky", "over a lake at sunset", "in the glow of the setting sun"),
        "water": ("at sunset", "in the evening light", "under an orange evening sky"),
    },
    "forest": {
        "ground": ("in a forest clearing", "in the woods", "in front of tall trees"),
        "air": ("in a forest clearing", "between the trees", "in the woods"),
    },
    "city": {
        "ground": ("in a city street", "on the road in town", "in front of tall buildings"),
        "air": ("over the city", "above a busy town", "in front of the skyline"),
    },
    "underwater": {
        "ground": ("at the bottom of the sea", "on the seabed", "among the seaweed"),
        "water": ("under water", "in the deep blue sea", "among bubbles and seaweed"),
    },
    "paper": {"page": ("on a sheet of paper", "on a plain page", "on paper")},
}

VIEWS: dict[str, tuple[str, ...]] = {
    "meadow": ("a sunny meadow", "a green meadow", "rolling green hills"),
    "seaside": ("a sandy beach", "the seaside", "a beach by the blue sea"),
    "night": ("a starry night", "a night sky full of stars", "a moonlit night"),
    "desert": ("a hot desert", "a desert with sand dunes", "a sandy desert"),
    "snow": ("a snowy landscape", "a winter landscape", "snowy hills"),
    "sunset": ("a lake at sunset", "an orange sunset", "a glowing evening sky"),
    "forest": ("a forest clearing", "a green forest", "the woods"),
    "city": ("a city street", "a city skyline", "a town with tall buildings"),
    "underwater": ("the bottom of the sea", "an underwater world", "the deep blue sea"),
    "paper": ("a sheet of paper", "a plain page"),
}

MOODS: dict[str, tuple[str, ...]] = {
    "meadow": ("The sun shines on the meadow", "It is a bright day in the fields"),
    "seaside": ("It is a fine day at the beach", "The sea is calm and blue"),
    "night": ("It is a starry night", "The moon is out"),
    "desert": ("The desert is hot and dry", "There is sand as far as the eye can see"),
    "snow": ("It is snowing", "It is a cold winter day"),
    "sunset": ("The sun is going down", "The evening sky glows"),
    "forest": ("The forest is quiet", "Light falls through the trees"),
    "city": ("The lights of the city are on", "Tall buildings line the street"),
    "underwater": ("Bubbles rise through the water", "Light falls deep into the sea"),
    "paper": ("It is a page from a sketchbook", "The colours are still fresh"),
}

NUMBERS: tuple[str, ...] = ("no", "one", "two", "three", "four")
