"""A small collection with something in every kind of file, and what it answers before and after damage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from diptych.collection import Collection, Record
from diptych.errors import DiptychError
from tests.doubles.toy_retriever import ToyRetriever


def make_collection(folder: Path) -> Path:
    """Make a collection with something in every kind of file."""
    for number in range(6):
        pixels = np.random.default_rng(number).integers(0, 255, (40, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    with Collection.create(folder / ".diptych", ToyRetriever(), load_retriever=ToyRetriever.load) as collection:
        records = [Record(captions=[f"text {number}"], labels=["t"], id=str(number)) for number in range(30)]
        collection.add([*sorted(folder.glob("*.png")), *records])
        collection.add_retriever(ToyRetriever(1))
        collection.update("3", captions=["changed", "twice"], metadata={"size": 3})
        collection.remove("4")
        collection.activate_retriever("toy 1")
        collection.activate_retriever("toy 0")
        collection.search("text", target="texts")
        collection.build_index()
        # Later than what is in files.
        collection.add([Record(captions=["the last"], id="last")])
        collection.search("text", target="texts")
        return collection.folder


def said(question: Callable[[], Any]) -> Any:
    """Return an answer, or the error that refuses it in a sentence; any other error becomes a ``RuntimeError``."""
    try:
        return question()
    except DiptychError as refused:
        return refused if "\n" not in str(refused) else RuntimeError(f"more than a sentence: {refused}")
    except BaseException as raw:
        return RuntimeError(f"{type(raw).__name__}: {raw}")


def answers(folder: Path) -> dict[str, Any]:
    """Return what a collection says, for each kind of question the answer or that it was refused in words."""
    one = said(lambda: Collection.open(folder, load_retriever=ToyRetriever.load))
    names = [(target, name) for target in ("texts", "images") for name in ("toy 0", "toy 1")]
    questions: dict[str, Callable[[], Any]] = {
        "items": lambda: [(item.id, item.path, item.captions, item.labels, item.metadata) for item in one],
        "words": lambda: [hit.id for hit in one.search("twice", 3, target="texts", hybrid=True)],
        "thumbnails": lambda: one.thumbnails([item.id for item in one if item.path]),
        "features": lambda: {key: row.tolist() for key, row in zip(*one.features("image"), strict=True)},
        **{f"{target} {name}": partial(_hits, one, target, name) for target, name in names},
    }
    if not isinstance(one, Collection):
        return dict.fromkeys(questions, one)
    with one:
        return {name: said(question) for name, question in questions.items()}


def _hits(collection: Collection, target: Any, retriever: str) -> list[tuple[str, float]]:
    found = collection.search("text 7", 9, target=target, retriever=retriever)
    return [(hit.id, round(hit.score, 4)) for hit in found]


def damage_trial(folder: Path, expected: dict[str, Any], counts: Counter[str]) -> list[str]:
    """Check and repair a damaged collection, and return what is wrong with that.

    Until repair, what is damaged may be answered, for verify has named it; never with anything but a clear error.
    """
    problems, found, named = [], True, ""
    try:
        with Collection.open(folder, load_retriever=ToyRetriever.load) as collection:
            named = " ".join(collection.verify().damaged)
            found = bool(named)
    except DiptychError:
        pass
    except BaseException as raw:
        problems.append(f"verify raises {type(raw).__name__}: {raw}")
    # Bytes that nothing reads may be others: then all answers are the right ones.
    counts["found" if found else "harmless"] += 1
    before = answers(folder)
    wrong = (
        _unlike(before, expected) if not found else [str(one) for one in before.values() if type(one) is RuntimeError]
    )
    problems += [f"after verify, {problem}" for problem in wrong]
    try:
        with Collection.open(folder, load_retriever=ToyRetriever.load) as collection:
            is_whole = collection.repair().is_whole
    except DiptychError:
        is_whole = False
    except BaseException as raw:
        is_whole = False
        problems.append(f"repair raises {type(raw).__name__}: {raw}")
    # Features come with the next encoding of their pictures.
    lost = {"features"} if "feature " in named else set()
    counts["recovered" if is_whole and not lost else "named as lost"] += 1
    after = {} if not is_whole else {name: answer for name, answer in expected.items() if name not in lost}
    return problems + [f"after repair, {problem}" for problem in _unlike(answers(folder), after)]


def _unlike(got: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    return [
        f"{name} is {str(got[name])[:200]}, not {str(expected[name])[:200]}"
        for name in expected
        if got[name] != expected[name]
    ]
