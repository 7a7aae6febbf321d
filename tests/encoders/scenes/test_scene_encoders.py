"""What pictures of scenes show and what words ask for: the same coordinates, read from pixels and from words alone."""

from __future__ import annotations

import numpy as np
import pytest

from diptych import Retriever
from diptych.data.datasets.scenes import Scene, make_scene
from diptych.encoders import SceneThings, SceneWords
from diptych.encoders.scenes.scene_things import FACTS, LENGTH, WIDTH, fact, place_fact
from diptych.encoders.scenes.scene_words import read_text

UNSEEN = [make_scene(number, seed=3) for number in range(24)]


def asked(text: str) -> set[str]:
    row = SceneWords().transform([text])[0]
    return {name for name, share in zip(FACTS, row, strict=False) if share > 0 and not name.startswith("mostly")}


def true_facts(scene: Scene) -> set[str]:
    found = {place_fact(scene.background), fact(number=str(len(scene.objects)))}
    for thing in scene.objects:
        alike = [other for other in scene.objects if other.kind == thing.kind]
        found |= {fact(thing.kind, thing.colour), fact(thing.kind, thing.texture), fact(thing.kind, thing.size)}
        found |= {fact(thing.kind, number=str(len(alike))), fact(thing.colour)}
    return found


@pytest.fixture(scope="module")
def shown() -> np.ndarray:
    return SceneThings().transform([scene.render(160) for scene in UNSEEN])


def test_pictures_show_what_was_painted(shown: np.ndarray) -> None:
    names = np.array(FACTS)
    missing = [
        true_facts(scene) - set(names[row[:-1] > 0.5 / LENGTH]) for scene, row in zip(UNSEEN, shown, strict=True)
    ]
    # Things hide one another now and then.
    assert sum(map(bool, missing)) <= 2, missing


def test_all_pictures_are_of_unit_length_so_that_two_compare_by_the_cosine(shown: np.ndarray) -> None:
    assert shown.shape == (len(UNSEEN), WIDTH)
    assert np.allclose(np.linalg.norm(shown, axis=1), 1, atol=1e-6)
    assert ((shown @ shown.T).argmax(axis=1) == np.arange(len(UNSEEN))).all()


def test_a_score_is_the_share_of_what_is_asked_for_that_is_shown() -> None:
    scene = make_scene(69)
    assert [(thing.colour, thing.kind) for thing in scene.objects if thing.kind in ("car", "boat")] == [("red", "car")]
    assert scene.background == "city"
    retriever = Retriever.scenes().set_params(cache=False)
    texts = ["a red car in the city", "a red car at night", "a green car in the city", "a green boat at night"]
    scores = retriever.similarity([scene.render(128)], texts)[0]
    assert (np.diff(scores) < 0).all()
    assert scores[-1] < 1e-3
    probabilities = retriever.probability(scores, "text_to_image")
    assert probabilities[0] > 0.9
    assert probabilities[1] < 0.3


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("A red car in the city", {"a car", "a red car", "at: city"}),
        ("a scarlet automobile in town", {"a car", "a red car", "at: city"}),
        ("2 boats", {"a boat", "2 × boat"}),
        ("a pair of ships", {"a boat", "2 × boat"}),
        ("boats", {"a boat", "several × boat"}),
        ("the house in the snow is white", {"a house", "a white house", "at: snow"}),
        ("a ball with stripes next to a kite", {"a ball", "a striped ball", "a kite"}),
        ("a red and a blue ball", {"a ball", "a red ball", "a blue ball"}),
        ("something red", {"a red"}),
        ("two balls, one red", {"a ball", "2 × ball", "a red ball", "1 × red ball"}),
        ("a kite to the left of a house", {"a kite", "a house"}),
        ("a kite at the top left", {"a kite", "a top kite", "a left kite"}),
        ("The desert with four things, one of them a fish.", {"at: desert", "4 × thing", "a fish"}),
        ("a boat in the deep blue sea", {"a boat", "at: underwater"}),
        ("snow", {"at: snow"}),
        ("", set()),
        ("dogs", set()),
    ],
)  # fmt: skip
def test_words_ask_for_facts(text: str, facts: set[str]) -> None:
    assert asked(text) == facts


def test_what_is_never_painted_keeps_its_share() -> None:
    assert read_text("a dog in the snow").unknown == {"dog"}
    snow, dog_in_snow = SceneWords().transform(["snow", "a dog in the snow"]).max(axis=1)
    assert dog_in_snow < 0.6 * snow


def test_captions_are_understood_to_the_last_word() -> None:
    unknown = {word for scene in UNSEEN for caption in scene.captions for word in read_text(caption).unknown}
    assert unknown == set()
    rows = SceneWords().transform([caption for scene in UNSEEN for caption in scene.captions])
    assert rows.any(axis=1).all()
