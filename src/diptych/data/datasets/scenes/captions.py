"""Captions: five ways to say what is in a scene, each true and none complete, overlapping as those of people do."""

from __future__ import annotations

from collections.abc import Callable

from diptych.data.datasets.scenes.canvas import PortableRandom
from diptych.data.datasets.scenes.composition import SceneObject, depth, overlap

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

CAPTIONS_PER_SCENE = 5
Things = tuple[SceneObject, ...]
Style = Callable[[str, Things, PortableRandom], str | None]


def write_captions(background: str, objects: Things, rng: PortableRandom) -> tuple[str, ...]:
    """Return five distinct captions, the first of which always names the main thing."""
    opening = rng.choice(_ABOUT_THE_MAIN_THING)
    captions = [_sentence(opening(background, objects, rng))]
    styles = rng.shuffled([style for style in _STYLES if style is not opening])
    while len(captions) < CAPTIONS_PER_SCENE:
        # A style that has nothing to say or repeats a sentence goes to the end of the queue.
        style = styles.pop(0)
        text = style(background, objects, rng)
        if text is None or _sentence(text) in captions:
            styles.append(style)
        else:
            captions.append(_sentence(text))
    return tuple(captions)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text[-1] in "!?." else ".")


def _with_article(phrase: str) -> str:
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def _adjectives(thing: SceneObject, rng: PortableRandom, detail: float) -> list[str]:
    words = []
    if rng.bernoulli(detail * (0.12 if thing.size == "medium" else 0.75)):
        words.append(rng.choice(SIZE_WORDS[thing.size]))
    looks = []
    if rng.bernoulli(detail * (0.15 if thing.texture == "plain" else 0.7)):
        looks.append(rng.choice(TEXTURE_WORDS[thing.texture]))
    if rng.bernoulli(detail * 1.3):
        looks.append(rng.choice(COLOUR_WORDS[thing.colour]))
    return words + (looks[::-1] if thing.texture != "plain" and rng.bernoulli(0.4) else looks)


def _described(thing: SceneObject, rng: PortableRandom, detail: float = 0.6) -> str:
    noun = rng.choice(NOUNS[thing.kind])[0]
    return " ".join([*_adjectives(thing, rng, detail), noun])


def _one(thing: SceneObject, rng: PortableRandom, detail: float = 0.6) -> str:
    return _with_article(_described(thing, rng, detail))


def _action(thing: SceneObject, rng: PortableRandom) -> tuple[str, str, str]:
    return rng.choice(PAGE_ACTIONS if thing.setting == "page" else ACTIONS[thing.kind][thing.setting])


def _where(background: str, thing: SceneObject, rng: PortableRandom) -> str:
    return rng.choice(WHERE[background][thing.setting])


def _groups(objects: Things) -> list[Things]:
    """Return the things grouped by kind, the main kind first."""
    kinds = dict.fromkeys(thing.kind for thing in objects)
    return [tuple(thing for thing in objects if thing.kind == kind) for kind in kinds]


def _group(things: Things, rng: PortableRandom, detail: float = 0.5) -> str:
    """Return "a red ball", "two balls" or "two red balls", whichever holds for all of them."""
    if len(things) == 1:
        return _one(things[0], rng, detail)
    words = [NUMBERS[len(things)]]
    if len({thing.size for thing in things}) == 1 and things[0].size != "medium" and rng.bernoulli(detail):
        words.append(rng.choice(SIZE_WORDS[things[0].size]))
    if len({thing.colour for thing in things}) == 1:
        words.append(rng.choice(COLOUR_WORDS[things[0].colour]))
    return " ".join([*words, rng.choice(NOUNS[things[0].kind])[1]])


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _relation(first: SceneObject, second: SceneObject, rng: PortableRandom) -> str | None:
    """Return words that lead from the first thing to the second, or None when no simple ones fit."""
    across, down = first.x - second.x, first.y - second.y
    if overlap(first, second) > 0.1:
        return "in front of" if depth(first) > depth(second) else "behind"
    if abs(down) > 0.2 and abs(down) > 1.3 * abs(across):
        return "above" if down < 0 else "below"
    if abs(across) > 0.2 and abs(across) > 1.3 * abs(down):
        side = "left" if across < 0 else "right"
        near = abs(across) < first.extent + second.extent + 0.1 and abs(down) < 0.12
        return rng.choice(("next to", "beside")) if near and rng.bernoulli(0.5) else f"to the {side} of"
    return None


def _portrait(background: str, objects: Things, rng: PortableRandom) -> str:
    thing = objects[0]
    tail = ""
    if thing.texture != "plain" and rng.bernoulli(0.3):
        noun = rng.choice(NOUNS[thing.kind])[0]
        colour = rng.choice(COLOUR_WORDS[thing.colour])
        phrase, tail = _with_article(f"{colour} {noun}"), f" {rng.choice(TEXTURE_TAILS[thing.texture])}"
    else:
        phrase = _one(thing, rng, 0.75)
    opening = rng.choice(("{}", "{}", "this is {}", "here is {}", "a picture of {}"))
    if background == "paper" and rng.bernoulli(0.5):
        opening = rng.choice(("a drawing of {}", "a sketch of {}"))
    return opening.format(phrase + tail)


def _main_in_place(background: str, objects: Things, rng: PortableRandom) -> str:
    thing = objects[0]
    verb, _, doing = _action(thing, rng)
    shape = rng.choice(("{one} {verb} {where}", "{one} {doing} {where}", "{one} {where}", "there is {one} {where}"))
    return shape.format(one=_one(thing, rng), verb=verb, doing=doing, where=_where(background, thing, rng))


def _place_first(background: str, objects: Things, rng: PortableRandom) -> str:
    thing = objects[0]
    verb = _action(thing, rng)[0]
    return f"{_where(background, thing, rng)}, {_one(thing, rng)} {verb}"


def _mood(background: str, objects: Things, rng: PortableRandom) -> str:
    mood = rng.choice(MOODS[background])
    if rng.bernoulli(0.3):
        thing = objects[0]
        return f"{mood}, and {_one(thing, rng)} {_action(thing, rng)[0]} {thing.place}"
    group = rng.choice(_groups(objects))
    verb = _action(group[0], rng)[0 if len(group) == 1 else 1]
    return f"{mood}, and {_group(group, rng)} {verb} {rng.choice(('there', 'in view'))}"


def _related(background: str, objects: Things, rng: PortableRandom) -> str | None:
    del background
    pairs = [(first, second) for first in objects for second in objects if first is not second]
    for first, second in rng.shuffled(pairs):
        words = _relation(first, second, rng)
        if words is None:
            continue
        named, other = _one(first, rng), _one(second, rng)
        if first.kind == second.kind:
            return f"{named} {words} another {rng.choice(NOUNS[second.kind])[0]}"
        if first.setting == second.setting == "ground" and rng.bernoulli(0.4):
            return f"{named} {_action(first, rng)[0]} {words} {other}"
        return f"{named} {words} {other}"
    return None


def _inventory(background: str, objects: Things, rng: PortableRandom) -> str | None:
    groups = _groups(objects)
    if len(groups) < 2:
        return None
    parts = _listed([_group(group, rng, 0.35) for group in rng.shuffled(groups)])
    view = rng.choice(VIEWS[background])
    if background == "paper":
        return f"{parts} on {view}"
    return rng.choice((f"{view} with {parts}", f"{parts}", f"I can see {parts}", f"{parts} in one picture"))


def _counted(background: str, objects: Things, rng: PortableRandom) -> str | None:
    group = _groups(objects)[0]
    if len(group) < 2:
        return None
    _, verb, doing = _action(group[0], rng)
    where = _where(background, group[0], rng)
    shape = rng.choice(("{some} {verb} {where}", "{some} {doing} {where}", "there are {some} {where}"))
    return shape.format(some=_group(group, rng), verb=verb, doing=doing, where=where)


def _colours_of_a_group(background: str, objects: Things, rng: PortableRandom) -> str | None:
    del background
    group = _groups(objects)[0]
    if len(group) < 2 or len({thing.colour for thing in group}) == 1:
        return None
    colours = dict.fromkeys(thing.colour for thing in group)
    ones = [
        f"{NUMBERS[sum(thing.colour == colour for thing in group)]} {rng.choice(COLOUR_WORDS[colour])}"
        for colour in colours
    ]
    return f"{NUMBERS[len(group)]} {rng.choice(NOUNS[group[0].kind])[1]}, {_listed(ones)}"


def _total(background: str, objects: Things, rng: PortableRandom) -> str | None:
    if len(objects) < 3 or background == "paper":
        return None
    view = rng.choice(VIEWS[background])
    return f"{view} with {NUMBERS[len(objects)]} things, one of them {_one(objects[0], rng)}"


def _positions(background: str, objects: Things, rng: PortableRandom) -> str:
    del background
    first, rest = objects[0], objects[1:]
    elsewhere = [thing for thing in rest if thing.place != first.place]
    if not elsewhere or rng.bernoulli(0.3):
        shape = rng.choice(("{place} there is {one}", "{one} {place} of the picture"))
        return shape.format(place=first.place, one=_one(first, rng))
    other = rng.choice(elsewhere)
    return f"{_one(first, rng)} {first.place} and {_one(other, rng)} {other.place}"


def _exclaimed(background: str, objects: Things, rng: PortableRandom) -> str | None:
    if len(_groups(objects)[0]) > 1:
        return None
    thing = objects[0]
    the = f"the {_described(thing, rng, 0.8)}"
    where = _where(background, thing, rng)
    return rng.choice(
        (f"look at {the}!", f"can you see {the} {thing.place}?", f"what {_one(thing, rng, 0.8)}!", f"{the} {where}")
    )


def _stated(background: str, objects: Things, rng: PortableRandom) -> str | None:
    if len(_groups(objects)[0]) > 1:
        return None
    thing = objects[0]
    noun = rng.choice(NOUNS[thing.kind])[0]
    colour = rng.choice(COLOUR_WORDS[thing.colour])
    where = _where(background, thing, rng)
    if thing.texture == "plain":
        return rng.choice((f"the {noun} {where} is {colour}", f"the {noun} is plain {thing.colour}"))
    texture = rng.choice(TEXTURE_WORDS[thing.texture])
    if texture == "polka-dot":
        return f"the {noun} is {colour} {rng.choice(TEXTURE_TAILS[thing.texture])}"
    return rng.choice((f"the {noun} is {colour} and {texture}", f"the {noun} {where} is {texture}"))


def _companion(background: str, objects: Things, rng: PortableRandom) -> str | None:
    if len(objects) == 1 or rng.bernoulli(0.5):
        return None
    thing = rng.choice(objects[1:])
    verb, _, doing = _action(thing, rng)
    where = _where(background, thing, rng)
    return rng.choice((f"{_one(thing, rng)} {verb} {where}", f"{_one(thing, rng)} {doing} {thing.place}"))


_ABOUT_THE_MAIN_THING: tuple[Callable[[str, Things, PortableRandom], str], ...] = (
    _portrait,
    _main_in_place,
    _place_first,
)
_STYLES: tuple[Style, ...] = (
    *_ABOUT_THE_MAIN_THING,
    _mood,
    _related,
    _inventory,
    _counted,
    _colours_of_a_group,
    _total,
    _positions,
    _exclaimed,
    _stated,
    _companion,
)
