"""Flip two bytes of a file of a collection, or delete it, again and again, and look whether that is found.

Run ``python -m bench.byte_flips`` (needs the ``search`` extra). Each trial damages one file of a copy
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
from pathlib import Path

from bench.campaign import campaign
from diptych.collection.trusted_root import trust_root
from tests.doubles.damaged_collection import answers, damage_trial, make_collection

# Nothing is kept in these: locks, and what a look at the status remembers.
_UNKEPT = ("reserve", "write.lock", "fold.lock", "outputs.lock", "last_status.json")


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
        whole = Path(base) / "whole"
        whole.mkdir()
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
            trust_root(folder / ".diptych", folder)
            path = dice.choice(kinds[dice.choice(sorted(kinds))])
            done = f"trial {number}, {path}, {damage(folder / '.diptych' / path, dice)}"
            for problem in damage_trial(folder / ".diptych", expected, counts):
                wrong.append(f"{done}: {problem}")
    counted = {name: counts[name] for name in ("found", "recovered", "named as lost")}
    return {"trials": trials, **counted, "silent": len({problem.partition(",")[0] for problem in wrong})}, wrong


if __name__ == "__main__":
    sys.exit(campaign(__doc__, "two bytes flipped, or a file deleted", run_trials, trials=500, at_once=50))
