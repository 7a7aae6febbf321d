from __future__ import annotations

import re
from collections import Counter
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
    "toy ball": "ball",
    "ball": "ball",
    "hot-air balloon": "balloon",
    "balloon": "balloon",
    "sailing boat": "boat",
    "sailboat": "boat",
    "boat": "boat",
    "butterfly": "butterfly",
    "automobile": "car",
    "car": "car",
    "fish": "fish",
    "flower": "flower",
    "blossom": "flower",
    "house": "house",
    "cottage": "house",
    "kite": "kite",
    "mushroom": "mushroom",
    "toadstool": "mushroom",
    "rocket": "rocket",
    "spaceship": "rocket",
    "umbrella": "umbrella",
    "parasol": "umbrella",
}
PLURALS = {
    noun.replace("butterfly", "butterflie") + ("" if noun == "fish" else "s"): SINGULARS[noun] for noun in SINGULARS
}
ADJECTIVES = {
    **dict.fromkeys(("red", "scarlet"), ("colour", "red")),
    "orange": ("colour", "orange"),
    **dict.fromkeys(("yellow", "golden"), ("colour", "yellow")),
    "green": ("colour", "green"),
    **dict.fromkeys(("turquoise", "teal"), ("colour", "turquoise")),
    "blue": ("colour", "blue"),
    **dict.fromkeys(("purple", "violet"), ("colour", "purple")),
    **dict.fromkeys(("pink", "rosy"), ("colour", "pink")),
    "brown": ("colour", "brown"),
    "white": ("colour", "white"),
    **dict.fromkeys(("small", "little", "tiny"), ("size", "small")),
    "medium-sized": ("size", "medium"),
    **dict.fromkeys(("large", "big"), ("size", "large")),
    "plain": ("texture", "plain"),
    **dict.fromkeys(("striped", "stripy"), ("texture", "striped")),
    **dict.fromkeys(("dotted", "spotted", "polka-dot"), ("texture", "dotted")),
    **dict.fromkeys(("checked", "chequered"), ("texture", "checked")),
}
COUNTS = {"two": 2, "three": 3, "four": 4}


def words_pattern(words: dict) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


ONE = rf"(?:an?|the|another) ((?:(?:{words_pattern(ADJECTIVES)}) )*)({words_pattern(SINGULARS)})(?![\w-])"
SOME = rf"({'|'.join(COUNTS)}) ((?:(?:{words_pattern(ADJECTIVES)}) )*)({words_pattern(PLURALS)})(?![\w-])"
PLACE = r"(?:at the (?:top|bottom)(?: left| right)?|on the (?:left|right)|in the middle)"
RELATION = r"to the left of|to the right of|next to|beside|above|below|in front of|behind"

UNMISTAKABLE = {
    "meadow": ("meadow", "grass", "field", "fields", "green hills"),
    "seaside": ("beach", "seaside", "sea is calm"),
    "night": ("stars", "starry", "moon", "moonlit", "moonlight", "night"),
    "desert": ("desert", "dune", "dunes"),
    "snow": ("snow", "snowy", "snowing", "winter"),
    "sunset": ("sunset", "evening", "lake", "setting sun", "sun is going down"),
    "forest": ("forest", "woods", "trees"),
    "city": ("city", "town", "buildings", "skyline", "street"),
    "underwater": ("seabed", "seaweed", "underwater", "under water", "bubbles", "deep"),
    "paper": ("paper", "page", "sketch", "drawing", "sketchbook", "drawn", "painted"),
}


def matching(scene: Scene, adjectives: str, noun: str) -> list[SceneObject]:
    """Return the things of a scene that fit the words."""
    wanted = [ADJECTIVES[word] for word in adjectives.split()]
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
        total = re.search(r"with (three|four) things, one of them", caption)
        assert total is None or COUNTS[total[1]] == len(scene.objects)
    assert found > 200


def test_the_colours_of_a_group_are_right() -> None:
    pattern = re.compile(rf"^(Two|Three|Four) ({words_pattern(PLURALS)}), ((?:one|two|three) .*)\.$")
    found = 0
    for scene, caption in described():
        match = pattern.match(caption)
        if match is None:
            continue
        said: Counter[str] = Counter()
        for count, word in re.findall(r"(one|two|three) ([\w-]+)", match[3]):
            said[ADJECTIVES[word][1]] += {"one": 1, "two": 2, "three": 3}[count]
        assert said == Counter(thing.colour for thing in matching(scene, "", match[2])), (scene, caption)
        found += 1
    assert found > 50


def test_statements_about_the_main_thing_are_true() -> None:
    pattern = re.compile(rf"^The ({words_pattern(SINGULARS)}) .*?\bis ([\w -]+?)(?: (with .*))?\.$")
    found = 0
    for scene, caption in described():
        match = pattern.match(caption)
        if match is None:
            continue
        said = [word for word in match[2].split() if word != "and"]
        if all(word in ADJECTIVES for word in said):
            assert matching(scene, " ".join(said), match[1]), (scene, caption)
            found += 1
    assert found > 100


def test_a_pattern_told_after_the_noun_is_the_pattern_of_the_thing() -> None:
    tails = {"stripes": "striped", "dots": "dotted", "spots": "dotted", "checked": "checked", "chequered": "checked"}
    found = 0
    for scene, caption in described():
        tail = re.search(r"with (?:a |broad |pale )?(stripes|dots|spots|checked|chequered)(?: pattern)?\.", caption)
        if tail is not None:
            assert scene.objects[0].texture == tails[tail[1]], (scene, caption)
            found += 1
    assert found > 50


def test_things_are_where_captions_put_them() -> None:
    verbs = r"(?: (?:is |are )?\w+(?: open)?)?"
    pattern = re.compile(rf"{ONE}{verbs} ({PLACE})(?= of the picture|\.|\?| and )", re.IGNORECASE)
    found = 0
    for scene, caption in described():
        for adjectives, noun, place in pattern.findall(caption):
            assert place.lower() in {thing.place for thing in matching(scene, adjectives, noun)}, (scene, caption)
            found += 1
    assert found > 500


def test_relations_hold() -> None:
    pattern = re.compile(rf"^{ONE}(?: (?:is )?\w+(?: open)?)? ({RELATION}) {ONE}\.$", re.IGNORECASE)
    found = Counter[str]()
    for scene, caption in described():
        match = pattern.match(caption)
        if match is None:
            continue
        relation = match[3]
        pairs = [
            (first, second)
            for first in matching(scene, match[1], match[2])
            for second in matching(scene, match[4], match[5])
            if first is not second
        ]
        assert any(holds(relation, first, second) for first, second in pairs), (scene, caption)
        found[relation] += 1
    assert len(found) == 8
    assert min(found.values()) > 10


def holds(relation: str, first: SceneObject, second: SceneObject) -> bool:
    touching = (
        abs(first.x - second.x) < first.extent + second.extent
        and abs(first.y - second.y) < first.extent + second.extent
    )
    lower = first.y + first.extent - second.y - second.extent
    return {
        "to the left of": first.x < second.x - 0.2,
        "to the right of": first.x > second.x + 0.2,
        "next to": abs(first.y - second.y) < 0.12,
        "beside": abs(first.y - second.y) < 0.12,
        "above": first.y < second.y - 0.2,
        "below": first.y > second.y + 0.2,
        "in front of": touching and (lower > 0 or second.setting == "air"),
        "behind": touching and (lower < 0 or first.setting == "air"),
    }[relation]


@pytest.mark.parametrize("background", UNMISTAKABLE)
def test_a_place_is_named_only_where_it_is(background: str) -> None:
    words = re.compile(rf"\b(?:{'|'.join(UNMISTAKABLE[background])})\b", re.IGNORECASE)
    naming = [scene.background == background for scene, caption in described() if words.search(caption)]
    assert all(naming)
    own = sum(scene.background == background for scene, _ in described())
    assert 0.2 * own < len(naming) < 0.8 * own


def test_articles_spacing_and_punctuation() -> None:
    for _, caption in described():
        assert not re.search(r"\ba [aeiou]", caption, re.IGNORECASE), caption
        assert not re.search(r"\ban [^aeiou]", caption, re.IGNORECASE), caption
        assert not re.search(r"\s\s|\s[,.!?]|\b(\w+) \1\b", caption), caption
        assert re.fullmatch(r"[A-Z][^.!?]*[.!?]", caption), caption


def test_verbs_agree_with_their_subject() -> None:
    singular = r"(?:is|lies|rests|floats|drifts|sails|flutters|flies|stands|swims|grows|blooms|soars|zooms)\b"
    plural = r"(?:are|lie|rest|float|drift|sail|flutter|fly|stand|swim|grow|bloom|soar|zoom)\b"
    for _, caption in described():
        assert not re.search(rf"{SOME} {singular}", caption, re.IGNORECASE), caption
        assert not re.search(rf"{ONE} {plural}", caption, re.IGNORECASE), caption
        assert not re.search(rf"there is {SOME}|there are {ONE}", caption, re.IGNORECASE), caption


def test_captions_differ_in_what_they_mention() -> None:
    def share(pattern: str) -> float:
        return sum(bool(re.search(pattern, caption, re.IGNORECASE)) for _, caption in described()) / len(described())

    colours = [word for word, (name, _) in ADJECTIVES.items() if name == "colour"]
    textures = [word for word, (name, _) in ADJECTIVES.items() if name == "texture"]
    sizes = [word for word, (name, _) in ADJECTIVES.items() if name == "size"]
    assert 0.4 < share(rf"\b(?:{'|'.join(colours)})\b") < 0.95
    assert 0.1 < share(rf"\b(?:{'|'.join(textures)})\b") < 0.5
    assert 0.1 < share(rf"\b(?:{'|'.join(sizes)})\b") < 0.6
    assert 0.05 < share(PLACE) < 0.5
    assert 0.02 < share(rf"\b(?:{RELATION}) (?:an?|another)\b") < 0.4
    assert 0.02 < share(SOME) < 0.4


def test_the_label_is_named_often_but_not_always() -> None:
    first = [bool(mentions(scene.captions[0], scene.label)) for scene in scenes()]
    every = [bool(mentions(caption, scene.label)) for scene, caption in described()]
    assert all(first)
    assert 0.8 < sum(every) / len(every) < 0.99


def mentions(caption: str, kind: str) -> bool:
    nouns = [noun for words in (SINGULARS, PLURALS) for noun, named in words.items() if named == kind]
    return bool(re.search(rf"\b(?:{'|'.join(map(re.escape, nouns))})\b", caption, re.IGNORECASE))


def test_vocabulary_is_rich_and_captions_rarely_repeat() -> None:
    captions = [caption for _, caption in described()]
    assert len({word for caption in captions for word in re.findall(r"[a-z-]+", caption.lower())}) > 180
    assert len(set(captions)) > 0.75 * len(captions)
    assert set(SINGULARS.values()) == set(CLASS_NAMES)
