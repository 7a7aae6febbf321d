"""Flip two bytes of a file of a collection, or delete a file that can be made again, and look whether that is found.

Run ``python -m bench.byte_flips`` (needs the ``search`` extra). Each trial damages the database or a vector file of a
copy of a small collection with pictures, captions and two retrievers, and asks: does ``verify`` name it? Does
everything that is asked afterwards give the right answer or one clear error? What does ``repair`` make whole again?
Damage that is not found is harmless where all answers stay right: a third of a database is room without content. The
command exits with 1 where an answer was wrong without a word; ``campaign.py`` has its options.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from bench.campaign import campaign
from diptych.collection.root import trust_root
from diptych.collection.store.sqlite import DATABASE
from tests.doubles.damaged_collection import answers, damage_trial, make_collection

_DATABASE_SHARE = 0.8


def damage(path: Path, dice: random.Random) -> str:
    """Flip two bytes beside each other at a random place, or delete the file."""
    content = bytearray(path.read_bytes())
    if not content or (path.name != DATABASE and dice.random() < 0.15):
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
        whole = Path(base) / "whole"
        whole.mkdir()
        expected = answers(make_collection(whole))
        found = sorted(path.relative_to(whole / ".diptych") for path in (whole / ".diptych").rglob("*"))
        derived = [path for path in found if path.parent.name.startswith("points-")]
        for number in range(trials):
            folder = Path(base) / "damaged"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(whole, folder)
            trust_root(folder / ".diptych", folder)
            path = Path(DATABASE) if dice.random() < _DATABASE_SHARE else dice.choice(derived)
            done = f"trial {number}, {path}, {damage(folder / '.diptych' / path, dice)}"
            for problem in damage_trial(folder / ".diptych", expected, counts):
                wrong.append(f"{done}: {problem}")
    counted = {name: counts[name] for name in ("found", "harmless", "recovered", "named as lost")}
    return {"trials": trials, **counted, "silent": len({problem.partition(",")[0] for problem in wrong})}, wrong


if __name__ == "__main__":
    sys.exit(campaign(__doc__, "two bytes flipped, or a file deleted", run_trials, trials=500, at_once=50))
