"""What captions of scenes say is true of their scenes, and they are sentences."""

from __future__ import annotations

import re
from functools import cache

import pytest

from diptych.data.datasets.scenes import CLASS_NAMES, Scene, SceneObject, make_scene


@cache
def scenes() -> list[Scene]:
    return [make_scene(index, seed=11) for index in range(1200)]


@cache
def described() -> list[tuple[Scene, str]]:
    return [(scene, caption) for scene in scenes() for caption in scene.captions]


SINGULARS = {
    **{kind: kind for kind in CLASS_NAMES},
    "toy ball": "ball",
    "sailing boat": "boat",
    "sailboat": "boat",
    "automobile": "car",
    "cottage": "house",
    "toadstool": "mushroom",
    "spaceship": "rocket",
}
PLURALS = {noun + ("" if noun == "fish" else "s"): SINGULARS[noun] for noun in SINGULARS}
ADJECTIVES = {
    **{colour: ("colour", colour) for colour in ("orange", "green", "blue", "brown", "white")},
    **dict.fromkeys(("red", "scarlet"), ("colour", "red")),
    **dict.fromkeys(("yellow", "golden"), ("colour", "yellow")),
    **dict.fromkeys(("turquoise", "teal"), ("colour", "turquoise")),
    **dict.fromkeys(("purple", "violet"), ("colour", "purple")),
    **dict.fromkeys(("pink", "rosy"), ("colour", "pink")),
    **dict.fromkeys(("small", "little", "tiny"), ("size", "small")),
    "medium-sized": ("size", "medium"),
    **dict.fromkeys(("large", "big"), ("size", "large")),
}
COUNTS = {"two": 2, "three": 3, "four": 4}


def words_pattern(words: dict) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


ONE = rf"(?:an?) ((?:(?:{words_pattern(ADJECTIVES)}) )*)({words_pattern(SINGULARS)})(?![\w-])"
SOME = rf"({'|'.join(COUNTS)}) ((?:(?:{words_pattern(ADJECTIVES)}) )*)({words_pattern(PLURALS)})(?![\w-])"
PLACE = r"(?:at the (?:top|bottom)(?: left| right)?|on the (?:left|right)|in the middle)"
UNMISTAKABLE = {
    "meadow": ("meadow", "grass", "field", "green hills"),
    "seaside": ("beach", "sand", "seaside"),
    "night": ("night", "stars", "starry", "moonlight"),
    "snow": ("snow", "snowy", "winter"),
    "city": ("city", "town", "buildings", "skyline", "street"),
    "underwater": ("seabed", "seaweed", "under water", "bubbles", "deep"),
}


def matching(scene: Scene, adjectives: str, noun: str) -> list[SceneObject]:
    """Return the things of a scene that fit the words."""
    wanted = [ADJECTIVES[word.lower()] for word in adjectives.split()]
    kind = SINGULARS.get(noun) or PLURALS[noun]
    return [
        thing
        for thing in scene.objects
        if thing.kind == kind and all(getattr(thing, name) == value for name, value in wanted)
    ]


def test_every_thing_a_caption_names_is_there_as_described() -> None:
    named = 0
    for scene, caption in described():
        for adjectives, noun in re.findall(ONE, caption, re.IGNORECASE):
            assert matching(scene, adjectives, noun), (scene, caption)
            named += 1
    assert named > len(described())


def test_every_number_is_right() -> None:
    found = 0
    for scene, caption in described():
        for count, adjectives, noun in re.findall(SOME, caption, re.IGNORECASE):
            fitting = matching(scene, adjectives, noun)
            assert len(fitting) == COUNTS[count.lower()] == len(matching(scene, "", noun)), (scene, caption)
            found += 1
    assert found > 200


def test_things_are_where_captions_put_them() -> None:
    pattern = re.compile(rf"{ONE} ({PLACE})(?= of the picture|\.| and )", re.IGNORECASE)
    found = 0
    for scene, caption in described():
        for adjectives, noun, place in pattern.findall(caption):
            assert place.lower() in {thing.place for thing in matching(scene, adjectives, noun)}, (scene, caption)
            found += 1
    assert found > 500


@pytest.mark.parametrize("background", UNMISTAKABLE)
def test_a_place_is_named_only_where_it_is(background: str) -> None:
    words = re.compile(rf"\b(?:{'|'.join(UNMISTAKABLE[background])})\b", re.IGNORECASE)
    naming = [scene.background == background for scene, caption in described() if words.search(caption)]
    assert all(naming)
    own = sum(scene.background == background for scene, _ in described())
    assert 0.2 * own < len(naming) < 0.8 * own


def test_captions_are_sentences() -> None:
    for _, caption in described():
        assert not re.search(r"\ba [aeiou]", caption, re.IGNORECASE), caption
        assert not re.search(r"\ban [^aeiou]", caption, re.IGNORECASE), caption
        assert not re.search(r"\s\s|\s[,.]|\b(\w+) \1\b", caption), caption
        assert re.fullmatch(r"[A-Z][^.!?]*\.", caption), caption


def test_captions_differ_in_what_they_mention() -> None:
    def share(pattern: str) -> float:
        return sum(bool(re.search(pattern, caption, re.IGNORECASE)) for _, caption in described()) / len(described())

    colours = [word for word, (name, _) in ADJECTIVES.items() if name == "colour"]
    sizes = [word for word, (name, _) in ADJECTIVES.items() if name == "size"]
    assert 0.4 < share(rf"\b(?:{'|'.join(colours)})\b") < 0.95
    assert 0.1 < share(rf"\b(?:{'|'.join(sizes)})\b") < 0.6
    assert 0.05 < share(PLACE) < 0.5
    assert 0.02 < share(SOME) < 0.4


def test_the_first_caption_names_the_label_and_captions_rarely_repeat() -> None:
    for scene in scenes():
        nouns = [noun for noun, kind in SINGULARS.items() if kind == scene.label]
        assert re.search(rf"\b(?:{'|'.join(nouns)})\b", scene.captions[0], re.IGNORECASE)
    captions = [caption for _, caption in described()]
    assert len({word for caption in captions for word in re.findall(r"[a-z-]+", caption.lower())}) > 90
    assert len(set(captions)) > 0.5 * len(captions)
