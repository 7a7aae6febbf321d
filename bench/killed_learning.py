"""Kill a process while it learns a retriever, from captions or from clicks, or goes back, and look for anything lost.

    python -m bench.killed_learning [--trials 60]

Each trial has a copy of a small collection of painted scenes. A child does what `diptych train`, `diptych learn` and
`diptych rollback` do, and says when it begins to store what it has learned and when it is done. The parent kills it
(SIGKILL): at a random moment of the whole, or right after it has begun to store, where there is something to break.
Then the collection must open and be whole, hold the items that it held, use the retriever from before or the new one,
the new one if that was acknowledged, answer searches with it, say in its history what is in force, and take further
changes. The command exits with 1 when a trial fails.
"""

from __future__ import annotations

import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

from bench.campaign import Outcome, campaign, processor_seconds_of, wait_until
from diptych.collection import Collection, Record
from diptych.collection.learning import Learning, SearchLog, Training, rollback
from diptych.data import load_dataset
from diptych.data.datasets.scenes import BACKGROUNDS, CLASS_NAMES, COLOURS
from tests.doubles.visitors import Truth, Visitors, Wish, scenes_collection, scenes_world, weak_retriever

PROGRAM = (sys.executable, "-m", "bench.killed_learning")

FAULT = "a killed process that learns"
N_SCENES, N_SEARCHES = 250, 12_000
MAX_WAIT_S = 300.0
KINDS = ("train", "rollback", "learn")
Say = Callable[[str], None]


def make_templates(folder: Path, n_scenes: int, *, with_clicks: bool) -> None:
    """Make a collection with a weak retriever and a log of clicks, and a copy that has learned from captions."""
    with scenes_collection(folder / "weak", n_scenes, weak_retriever(6, size=32), size=32) as collection:
        if with_clicks:
            write_clicks(collection)
    shutil.copytree(folder / "weak", folder / "trained")
    with Collection.open(folder / "trained" / "collection", root=folder / "trained") as collection:
        learn_from_captions(collection, lambda _: None)


def write_clicks(collection: Collection) -> None:
    """Write a log of clicks from which there is something to learn."""
    wishes = [Wish(place=place) for place in BACKGROUNDS]
    wishes += [Wish(kind=kind, place=place) for kind in CLASS_NAMES for place in BACKGROUNDS]
    wishes += [Wish(colour=colour, place=place) for colour in COLOURS for place in BACKGROUNDS]
    world = scenes_world(collection, wishes).dealt(0)
    log = Visitors(world, 0, eta=1.0).log(Truth(collection, world).scores(collection.retriever), N_SEARCHES)
    (collection.root / "log").write_bytes(pickle.dumps(log))


def learn_from_captions(collection: Collection, say: Say) -> None:
    """Do what `diptych train --force` does."""
    pairs = load_dataset("scenes", n_train=80, n_test=1, size=32).train
    training = Training(collection, method="CCA", parameters={"n_components": 8})
    training.run(pairs, force=True, reencoding=lambda _: say("storing"))


def learn_from_clicks(collection: Collection, say: Say) -> None:
    """Do what `diptych learn` does."""
    log: SearchLog = pickle.loads((collection.root / "log").read_bytes())
    Learning(collection).run(log, progress=lambda doing, _, __: say("storing") if "new search" in doing else None)


def go_back(collection: Collection, say: Say) -> None:
    """Do what `diptych rollback` does."""
    say("storing")
    rollback(collection)


def child(kind: str, folder: Path) -> None:
    """Change a collection, and wait for the end."""
    steps = {"train": learn_from_captions, "learn": learn_from_clicks, "rollback": go_back}
    with Collection.open(folder / "collection") as collection:
        _say("opened")
        steps[kind](collection, _say)
        _say(f"done {collection.retriever.fingerprint}")
        time.sleep(3600)


def _say(what: str) -> None:
    print(what, flush=True)


def run_trial(kind: str, template: Path, dice: random.Random) -> tuple[bool, list[str]]:
    """Kill a child that changes a copy of the template; return whether it was done by then, and what is wrong."""
    with tempfile.TemporaryDirectory(prefix="diptych-learning-") as scratch:
        folder = Path(scratch) / "trial"
        shutil.copytree(template, folder)
        with Collection.open(folder / "collection", root=folder) as collection:
            items = {item.id: item for item in collection}
            before = collection.retriever.fingerprint
        said, status = _killed_at_random(kind, folder, dice)
        is_done = any(line.startswith("done") for line in said)
        if not said or status != -signal.SIGKILL:
            return False, [f"{kind}: the child ended by itself with {status}"]
        wrong = problems(folder, items, before, said[-1].removeprefix("done ") if is_done else None)
        return is_done, [f"{kind}: {problem}" for problem in wrong]


def _killed_at_random(kind: str, folder: Path, dice: random.Random) -> tuple[list[str], int]:
    """Kill a child; return what it has said by then and how it ended. Times are those of its processor."""
    is_late = kind == "rollback" or dice.random() < 0.7
    awaited, longest = ("storing", 0.4) if is_late else ("opened", 4.0)
    written = folder / "said"
    with written.open("w") as stream:
        process = Popen([*PROGRAM, "--child", kind, str(folder)], stdout=stream)

    def said() -> list[str]:
        return written.read_text().splitlines()

    def is_over() -> bool:
        return process.poll() is not None or any(line.startswith("done") for line in said())

    wait_until(lambda: awaited in said() or is_over(), MAX_WAIT_S)
    ends = processor_seconds_of(process.pid) + dice.uniform(0.0, longest)
    wait_until(lambda: processor_seconds_of(process.pid) >= ends or is_over(), MAX_WAIT_S)
    process.kill()
    return said(), process.wait()


def problems(folder: Path, items: dict[str, Any], before: str, acknowledged: str | None) -> list[str]:
    """Compare the reopened collection with what was there and what was acknowledged."""
    wrong = []
    with Collection.open(folder / "collection") as collection:
        wrong += [problem for problem in collection.verify().problems if "unfinished" not in problem]
        if {item.id: item for item in collection} != items:
            wrong.append("the items are others")
        now = collection.retriever.fingerprint
        if acknowledged is not None and now != acknowledged:
            wrong.append(f"{acknowledged} was acknowledged and {now} is in force")
        history = collection.retriever_history()
        if now != before and (not history or history[-1].after_fingerprint != now):
            wrong.append(f"the history does not say that {now} is in force")
        in_force = next(stored for stored in collection.retrievers() if stored.active)
        if in_force.missing or not in_force.ready:
            wrong.append(f"{in_force.missing} points of the retriever in force are missing")
        if len(collection.search("a red ball on grass", 5)) != 5:
            wrong.append("a search finds too little")
        collection.add([Record(captions=["written after the kill"], id="after")])
        if collection.search("written after the kill", 1, target="texts", hybrid=True)[0].id != "after":
            wrong.append("what is written afterwards is not found")
        collection.repair()
        wrong += collection.verify().problems
    return wrong


def run_trials(trials: int, seed: int) -> Outcome:
    """Run trials of all kinds in turn."""
    kinds = KINDS[:trials]
    dice, done, failed, wrong = random.Random(seed), 0, 0, list[str]()
    with tempfile.TemporaryDirectory(prefix="diptych-learning-") as name:
        make_templates(Path(name), N_SCENES, with_clicks="learn" in kinds)
        for number in range(trials):
            kind = kinds[number % len(kinds)]
            template = Path(name, "trained" if kind == "rollback" else "weak")
            is_done, problem = run_trial(kind, template, dice)
            done, failed, wrong = done + is_done, failed + bool(problem), wrong + problem
    return {"trials": trials, "acknowledged": done, "lost": failed, "recovered": trials - failed}, wrong


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(sys.argv[-2], Path(sys.argv[-1]))
    else:
        sys.exit(campaign(__doc__, FAULT, run_trials, trials=60, at_once=12))
