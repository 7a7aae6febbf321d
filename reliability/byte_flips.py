"""Flip two bytes of a file of a collection, or delete it, again and again, and look whether that is found.

Run ``python reliability/byte_flips.py`` (needs the ``search`` extra). Each trial damages one file of a copy
of a small collection with pictures, captions, two retrievers and search files, and asks: does ``verify`` name it? Does
everything that is asked afterwards give the right answer or one clear error? What does ``repair`` make whole again? It
exits with 1 where damage was not found, or an answer was wrong without a word; ``campaign.py`` has its options.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from campaign import campaign
from diptych.collection import Collection, Record
from diptych.errors import DiptychError
from kill_trials import ToyRetriever

# Nothing is kept in these: locks, and what a look at the status remembers.
_UNKEPT = ("reserve", "write.lock", "fold.lock", "outputs.lock", "last_status.json")


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
        collection._state.fold(everything=True)
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
        "history": lambda: [(version.number, version.items) for version in one.history()],
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


def kind_of(path: Path) -> str:
    """Return what a file belongs to, so that each kind is met equally often."""
    parts = path.parts
    if parts[0] != "store" or len(parts) == 2:
        return "/".join(parts[:1]) if len(parts) == 1 else f"{parts[0]}/{path.suffix}"
    return f"{parts[1].split('_')[0]}/{parts[2]}"


def damage(path: Path, dice: random.Random) -> str:
    """Flip two bytes beside each other at a random place, or delete the file."""
    content = bytearray(path.read_bytes())
    if not content or dice.random() < 0.15:
        path.unlink()
        return "deleted"
    start = dice.randrange(max(1, len(content) - 1))
    for place in range(start, min(start + 2, len(content))):
        content[place] ^= dice.randrange(1, 256)
    path.write_bytes(content)
    return f"flipped at {start} of {len(content)}"


def run_trials(trials: int, seed: int = 0) -> tuple[dict[str, int], list[str]]:
    """Damage copies of a collection; return what was counted, and what went wrong."""
    dice, counts, wrong = random.Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory() as base:
        whole = make_folder(Path(base) / "whole")
        expected = answers(make_collection(whole))
        files = [
            path.relative_to(whole / ".diptych") for path in sorted((whole / ".diptych").rglob("*")) if path.is_file()
        ]
        kinds: dict[str, list[Path]] = {}
        for path in files:
            if path.name not in _UNKEPT:
                kinds.setdefault(kind_of(path), []).append(path)
        for number in range(trials):
            folder = Path(base) / "damaged"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(whole, folder)
            path = dice.choice(kinds[dice.choice(sorted(kinds))])
            done = f"trial {number}, {path}, {damage(folder / '.diptych' / path, dice)}"
            for problem in trial(folder / ".diptych", expected, counts):
                wrong.append(f"{done}: {problem}")
    counted = {name: counts[name] for name in ("found", "recovered", "named as lost")}
    return {"trials": trials, **counted, "silent": len({problem.partition(",")[0] for problem in wrong})}, wrong


def make_folder(folder: Path) -> Path:
    """Make a folder and return it."""
    folder.mkdir()
    return folder


def trial(folder: Path, expected: dict[str, Any], counts: Counter[str]) -> list[str]:
    """Check and repair a damaged collection, and return what is wrong with that."""
    problems, named = [], dict[str, str]()
    try:
        with Collection.open(folder, load_retriever=ToyRetriever.load) as collection:
            named = collection.verify().damaged
            found = bool(named)
    except DiptychError:
        found = True
    except BaseException as raw:
        found, problems = True, [f"verify raises {type(raw).__name__}: {raw}"]
    counts["found"] += found
    if not found:
        problems.append("not found")
    problems += [f"after verify, {problem}" for problem in _unlike(answers(folder), expected, allow_refusal=True)]
    try:
        with Collection.open(folder, load_retriever=ToyRetriever.load) as collection:
            is_whole = collection.repair().is_whole
    except DiptychError:
        is_whole = False
    except BaseException as raw:
        is_whole = False
        problems.append(f"repair raises {type(raw).__name__}: {raw}")
    # Earlier states that the list of them has lost cannot be made again, and verify has said so.
    lost = {"history"} if "changes.jsonl" in named else set()
    counts["recovered"] += is_whole and not lost
    counts["named as lost"] += not is_whole or bool(lost)
    kept = {name: answer for name, answer in expected.items() if name not in lost}
    after = _unlike(answers(folder), kept, allow_refusal=not is_whole)
    return problems + [f"after repair, {problem}" for problem in after]


def _unlike(got: dict[str, Any], expected: dict[str, Any], *, allow_refusal: bool) -> list[str]:
    return [
        f"{name} is {str(got[name])[:200]}, not {str(expected[name])[:200]}"
        for name in expected
        if got[name] != expected[name] and not (allow_refusal and isinstance(got[name], DiptychError))
    ]


if __name__ == "__main__":
    sys.exit(campaign(__doc__, "two bytes flipped, or a file deleted", run_trials, trials=500, at_once=50))
