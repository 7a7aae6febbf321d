"""Captions: five ways to say what is in a scene, each true and none complete, overlapping as those of people do."""

from __future__ import annotations

from collections.abc import Callable

from diptych.data.datasets.scenes.canvas import PortableRandom
from diptych.data.datasets.scenes.composition import SceneObject

NOUNS: dict[str, tuple[tuple[str, str], ...]] = {
    "ball": (("ball", "balls"), ("toy ball", "toy balls")),
    "boat": (("boat", "boats"), ("sailing boat", "sailing boats"), ("sailboat", "sailboats")),
    "car": (("car", "cars"), ("automobile", "automobiles")),
    "fish": (("fish", "fish"),),
    "house": (("house", "houses"), ("cottage", "cottages")),
    "kite": (("kite", "kites"),),
    "mushroom": (("mushroom", "mushrooms"), ("toadstool", "toadstools")),
    "rocket": (("rocket", "rockets"), ("spaceship", "spaceships")),
}
# Other words for colours and sizes; without any, the name is the word.
LOOK_WORDS: dict[str, tuple[str, ...]] = {
    "red": ("red", "red", "scarlet"),
    "yellow": ("yellow", "yellow", "golden"),
    "turquoise": ("turquoise", "teal"),
    "purple": ("purple", "purple", "violet"),
    "pink": ("pink", "pink", "rosy"),
    "small": ("small", "little", "tiny"),
    "medium": ("medium-sized",),
    "large": ("large", "big"),
}
ACTIONS: dict[str, tuple[str, ...]] = {
    "ball": ("lies", "rests"),
    "boat": ("lies", "rests"),
    "car": ("stands", "is parked"),
    "fish": ("swims",),
    "house": ("stands",),
    "kite": ("flies", "soars"),
    "mushroom": ("grows", "stands"),
    "rocket": ("flies", "zooms"),
}
_SAILING = ("sails", "floats")
# Where something is, by background and setting; each phrase follows a verb or a noun.
WHERE: dict[tuple[str, str], tuple[str, ...]] = {
    ("meadow", "ground"): ("in a sunny meadow", "on the green grass", "in a green field"),
    ("meadow", "air"): ("over a sunny meadow", "above the green hills", "in the blue sky above a meadow"),
    ("seaside", "ground"): ("on a sandy beach", "on the sand by the sea", "at the seaside"),
    ("seaside", "air"): ("over a sandy beach", "above the sea", "in the sky at the seaside"),
    ("seaside", "water"): ("off a sandy beach", "near the beach", "at the seaside"),
    ("night", "ground"): ("under a starry sky", "in the moonlight", "on a dark hill at night"),
    ("night", "air"): ("in the night sky", "among the stars", "below the moon and the stars"),
    ("snow", "ground"): ("in the snow", "on a snowy hill", "in a winter landscape"),
    ("snow", "air"): ("over snowy hills", "above a winter landscape", "in a snowy sky"),
    ("city", "ground"): ("in a city street", "on the road in town", "in front of tall buildings"),
    ("city", "air"): ("over the city", "above a busy town", "in front of the skyline"),
    ("underwater", "ground"): ("at the bottom of the sea", "on the seabed", "among the seaweed"),
    ("underwater", "water"): ("under water", "in the deep blue sea", "among bubbles and seaweed"),
}
NUMBERS: tuple[str, ...] = ("no", "one", "two", "three", "four")
Things = tuple[SceneObject, ...]
Style = Callable[[str, Things, PortableRandom], str]


def write_captions(background: str, objects: Things, rng: PortableRandom) -> tuple[str, ...]:
    """Return five distinct captions, the first of which always names the main thing."""
    opening = rng.choice(_ABOUT_THE_MAIN_THING)
    captions = [_sentence(opening(background, objects, rng))]
    styles = rng.shuffled([style for style in _STYLES if style is not opening])
    while styles:
        caption = _sentence(styles[0](background, objects, rng))
        if caption not in captions:
            captions.append(caption)
            styles.pop(0)
    return tuple(captions)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _look(name: str, rng: PortableRandom) -> str:
    return rng.choice(LOOK_WORDS.get(name, (name,)))


def _one(thing: SceneObject, rng: PortableRandom, detail: float = 0.6) -> str:
    """Return "a large red ball" with some of these words, more of them with more ``detail``."""
    words = []
    if rng.bernoulli(detail * (0.12 if thing.size == "medium" else 0.75)):
        words.append(_look(thing.size, rng))
    if rng.bernoulli(detail * 1.3):
        words.append(_look(thing.colour, rng))
    phrase = " ".join([*words, rng.choice(NOUNS[thing.kind])[0]])
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def _action(thing: SceneObject, rng: PortableRandom) -> str:
    return rng.choice(_SAILING if (thing.kind, thing.setting) == ("boat", "water") else ACTIONS[thing.kind])


def _where(background: str, thing: SceneObject, rng: PortableRandom) -> str:
    return rng.choice(WHERE[background, thing.setting])


def _group(things: Things, rng: PortableRandom) -> str:
    """Return "a red ball", "two balls" or "two red balls", whichever holds for all of them."""
    if len(things) == 1:
        return _one(things[0], rng, 0.4)
    words = [NUMBERS[len(things)]]
    if len({thing.colour for thing in things}) == 1:
        words.append(_look(things[0].colour, rng))
    return " ".join([*words, rng.choice(NOUNS[things[0].kind])[1]])


def _portrait(background: str, objects: Things, rng: PortableRandom) -> str:
    del background
    return rng.choice(("{}", "this is {}", "here is {}", "a picture of {}")).format(_one(objects[0], rng, 0.75))


def _main_in_place(background: str, objects: Things, rng: PortableRandom) -> str:
    thing = objects[0]
    shape = rng.choice(("{one} {verb} {where}", "{one} {where}", "there is {one} {where}"))
    return shape.format(one=_one(thing, rng), verb=_action(thing, rng), where=_where(background, thing, rng))


def _place_first(background: str, objects: Things, rng: PortableRandom) -> str:
    thing = objects[0]
    return f"{_where(background, thing, rng)}, {_one(thing, rng)} {_action(thing, rng)}"


def _inventory(background: str, objects: Things, rng: PortableRandom) -> str:
    del background
    kinds = rng.shuffled(tuple(dict.fromkeys(thing.kind for thing in objects)))
    parts = [_group(tuple(thing for thing in objects if thing.kind == kind), rng) for kind in kinds]
    return rng.choice(("", "I can see ")) + " and ".join(parts)


def _positions(background: str, objects: Things, rng: PortableRandom) -> str:
    del background
    first = objects[0]
    elsewhere = [thing for thing in objects[1:] if thing.place != first.place]
    if not elsewhere or rng.bernoulli(0.3):
        shape = rng.choice(("{place} there is {one}", "{one} {place} of the picture"))
        return shape.format(place=first.place, one=_one(first, rng))
    other = rng.choice(elsewhere)
    return f"{_one(first, rng)} {first.place} and {_one(other, rng)} {other.place}"


_ABOUT_THE_MAIN_THING = (_portrait, _main_in_place, _place_first)
_STYLES: tuple[Style, ...] = (*_ABOUT_THE_MAIN_THING, _inventory, _positions)
