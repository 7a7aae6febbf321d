"""Captions: five ways to say what is in a scene, each true and none complete, overlapping as those of people do."""

from __future__ import annotations

from collections.abc import Callable

from diptych.data.datasets.scenes.caption_vocabulary import (
    ACTIONS,
    COLOUR_WORDS,
    MOODS,
    NOUNS,
    NUMBERS,
    PAGE_ACTIONS,
    SIZE_WORDS,
    TEXTURE_TAILS,
    TEXTURE_WORDS,
    VIEWS,
    WHERE,
)
from diptych.data.datasets.scenes.composition import SceneObject, depth, overlap
from diptych.data.datasets.scenes.portable_random import PortableRandom

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
