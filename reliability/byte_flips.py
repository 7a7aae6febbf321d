"""Flip two bytes of a file of a collection, or delete it, again and again, and look whether that is found.

Run ``python reliability/byte_flips.py`` (needs the ``search`` extra). Each trial damages one file of a copy
of a small collection with pictures, captions, two retrievers and search files, and asks: does ``verify`` name it? Does
everything that is asked afterwards give the right answer or one clear error? What does ``repair`` make whole again? It
prints a line of JSON, and exits with 1 where damage was not found, or an answer was wrong without a word.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from diptych.collection import Collection, Record
from diptych.errors import DiptychError
from kill_trials import ToyRetriever

# Nothing is kept in these: locks, and what a look at the status remembers.
_UNKEPT = ("reserve", "write.lock", "fold.lock", "last_status.json")


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


def answers(folder: Path) -> dict[str, Any]:
    """Return what a collection says, for each kind of question the answer or that it was refused in words."""

    def ask(question: Any) -> Any:
        try:
            with Collection.open(folder, load_retriever=ToyRetriever.load) as collection:
                return question(collection)
        except DiptychError as refused:
            return refused if "\n" not in str(refused) else RuntimeError(f"more than a sentence: {refused}")
        except BaseException as raw:
            return RuntimeError(f"{type(raw).__name__}: {raw}")

    def search(name: str, target: Any) -> Any:
        return lambda one: [
            (hit.id, round(hit.score, 4)) for hit in one.search("text 7", 9, target=target, retriever=name)
        ]

    return {
        "items": ask(lambda one: [(item.id, item.path, item.captions, item.labels, item.metadata) for item in one]),
        "words": ask(lambda one: [hit.id for hit in one.search("twice", 3, target="texts", hybrid=True)]),
        "history": ask(lambda one: [(version.number, version.items) for version in one.history()]),
        "thumbnails": ask(lambda one: one.thumbnails([item.id for item in one if item.path])),
        "features": ask(lambda one: {key: row.tolist() for key, row in zip(*one.features("image"), strict=True)}),
        **{f"texts {name}": ask(search(name, "texts")) for name in ("toy 0", "toy 1")},
        **{f"images {name}": ask(search(name, "images")) for name in ("toy 0", "toy 1")},
    }


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
    return {"trials": trials, **counts}, wrong


def make_folder(folder: Path) -> Path:
    """Make a folder and return it."""
    folder.mkdir()
    return folder


def trial(folder: Path, expected: dict[str, Any], counts: Counter[str]) -> list[str]:
    """Check and repair a damaged collection, and return what is wrong with that."""
    problems = []
    try:
        with Collection.open(folder, load_retriever=ToyRetriever.load) as collection:
            found = bool(collection.verify().damaged)
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
            report = collection.repair()
        is_whole = report.is_whole
    except DiptychError:
        is_whole = False
    except BaseException as raw:
        is_whole = False
        problems.append(f"repair raises {type(raw).__name__}: {raw}")
    counts["recovered"] += is_whole
    counts["named as lost"] += not is_whole
    after = _unlike(answers(folder), expected, allow_refusal=not is_whole)
    return problems + [f"after repair, {problem}" for problem in after]


def _unlike(got: dict[str, Any], expected: dict[str, Any], *, allow_refusal: bool) -> list[str]:
    return [
        f"{name} is {str(got[name])[:200]}, not {str(expected[name])[:200]}"
        for name in expected
        if got[name] != expected[name] and not (allow_refusal and isinstance(got[name], DiptychError))
    ]


def main() -> int:
    """Run the trials, print what was found and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts, wrong = run_trials(options.trials, options.seed)
    for problem in wrong[:20]:
        print(problem, file=sys.stderr)
    print(json.dumps({"fault": "two bytes flipped, or a file deleted", **counts, "silent": len(wrong)}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
