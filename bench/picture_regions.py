"""What regions of pictures find that whole pictures do not, and what they cost.

    python -m bench.picture_regions [--pasted 80] [--photographs 200] [--folder FOLDER]

Two collections of the default retriever (``DIPTYCH_DATA``). In the first, test photos of Flickr8k are pasted onto
others at random places, a third of the side, and are asked for by two of their captions each; the photos below are
asked for by a caption, too. The second has test photos of COCO, asked for by their captions and by the names of things
that are in them: small ones (a clock, a fork) and large ones (a train, a bed). Both are asked for 200 things that they
do not show. Prints all that without and with regions, and what these cost. Exits with an error where fewer than 0.2
more of the pasted photos are among the first ten, or more than 0.03 of the others' captions are lost. FOLDER keeps the
collections, and a run that was interrupted goes on there.
"""

from __future__ import annotations

import argparse
import random
import sys
import tarfile
import tempfile
import time
from collections.abc import Collection as Group
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from diptych.collection import Answers, Collection
from diptych.data import load_dataset
from diptych.data.folders import data_folder
from diptych.encoders import read_picture
from diptych.retriever import Retriever

LEAST_GAINED, MOST_LOST = 0.2, 0.03
WIDE = 768
# Of the test photos, the first are the small ones, and these follow below them.
FIRST_BELOW = 160
ABSENT = Path(__file__).with_name("absent_queries.txt")
# Names of things, and their columns among the labels.
SMALL = {"bottle": 74, "cup": 47, "wine glass": 66, "fork": 41, "knife": 39, "spoon": 52, "backpack": 26, "tie": 37}
SMALL |= {"umbrella": 44, "frisbee": 43, "kite": 3, "baseball glove": 18, "cell phone": 46, "remote": 61, "mouse": 17}
SMALL |= {"book": 32, "clock": 65, "vase": 50, "potted plant": 13, "traffic light": 29, "bird": 56}
LARGE = {"train": 53, "bus": 6, "bed": 68, "elephant": 78, "pizza": 40, "airplane": 19, "couch": 31, "toilet": 0}
LARGE |= {"zebra": 48, "giraffe": 72, "horse": 22, "cat": 69, "motorcycle": 10, "truck": 73}


class Question(NamedTuple):
    """A query, the names of the files that answer it, and where the answer is in them."""

    words: str
    right: frozenset[str]
    spot: tuple[float, float] | None = None


Questions = Mapping[str, Sequence[Question]]


def paste(folder: Path, count: int) -> Questions:
    """Write photos with smaller ones on them; return what to ask for."""
    draw, test = random.Random(0), load_dataset("flickr8k").test
    captions: dict[int, list[str]] = {}
    for owner, text in zip(test.owners.tolist(), test.texts, strict=True):
        captions.setdefault(owner, []).append(str(text))
    small_ones, large_ones = [], []
    for number in range(count):
        wide, small = (Image.fromarray(read_picture(test.images[place])) for place in (FIRST_BELOW + number, number))
        scale = WIDE / min(wide.size)
        wide = wide.resize((round(wide.width * scale), round(wide.height * scale)), Image.Resampling.BICUBIC)
        scale = min(wide.width / small.width, wide.height / small.height) / 3
        small = small.resize((round(small.width * scale), round(small.height * scale)), Image.Resampling.BICUBIC)
        corner = draw.randint(0, wide.width - small.width), draw.randint(0, wide.height - small.height)
        wide.paste(small, corner)
        name = f"{number:04}.png"
        wide.save(folder / name)
        spot = (corner[0] + small.width / 2) / wide.width, (corner[1] + small.height / 2) / wide.height
        small_ones += [Question(text, frozenset({name}), spot) for text in captions[number][:2]]
        large_ones.append(Question(captions[FIRST_BELOW + number][0], frozenset({name})))
    return {"pasted photo": small_ones, "photo below": large_ones}


def link(folder: Path, count: int) -> Questions:
    """Link photos of COCO; return what to ask for."""
    labels = _labels()
    test, chosen = load_dataset("coco_pairs").test, {}
    for path, text in zip(test.images, test.texts, strict=True):
        if len(chosen) < count and int(Path(path).stem) in labels:
            chosen[Path(path).name] = str(text)
            if not (folder / Path(path).name).exists():
                (folder / Path(path).name).symlink_to(path)

    def named(things: Mapping[str, int]) -> list[Question]:
        holding = {thing: [name for name in chosen if labels[int(name[:12])][place]] for thing, place in things.items()}
        return [Question(f"a {thing}", frozenset(names)) for thing, names in holding.items() if names]

    captions = [Question(text, frozenset({name})) for name, text in chosen.items()]
    return {"caption": captions, "small thing": named(SMALL), "large thing": named(LARGE)}


def _labels() -> dict[int, list[bool]]:
    """Return the labels of COCO's photos by their numbers."""
    with tarfile.open(data_folder() / "coco_val2014_labels" / "coco_val_file.tar.gz") as archive:
        content = archive.extractfile("coco_val_file/val_label_mat.txt")
        assert content is not None
        lines = [line.decode().split() for line in content]
    return {int(name.rpartition("_")[2][:12]): [value == "1" for value in values] for name, *values in lines}


def precision(found: Answers, right: Group[str]) -> float:
    """Return the share of the first ten that could be right and are."""
    return sum(answer.path is not None and answer.path.name in right for answer in found) / min(10, len(right))


def is_framed(found: Answers, question: Question) -> list[bool]:
    """Say whether the region of the right answer holds the middle of what was asked for; nothing where it is missed."""
    regions = [answer.region for answer in found if answer.path is not None and answer.path.name in question.right]
    if not regions or question.spot is None:
        return []
    (x, y), region = question.spot, regions[0]
    return [region is not None and region.left <= x <= region.right and region.top <= y <= region.bottom]


def measure(collection: Collection, questions: Questions, *, regions: bool) -> dict[str, float]:
    """Return how many of the questions of each kind are answered among the first ten, and how many are refused."""
    told: dict[str, float] = {}
    for kind, asked in questions.items():
        found = [collection.search(one.words, 10, hybrid=False, regions=regions) for one in asked]
        told[kind] = float(np.mean([precision(each, one.right) for each, one in zip(found, asked, strict=True)]))
        told[f"{kind}, refused"] = float(np.mean([each.no_good_match for each in found]))
        if regions and asked[0].spot is not None:
            told[f"{kind}, framed where found"] = float(np.mean(np.concatenate(list(map(is_framed, found, asked)))))
    absent = ABSENT.read_text(encoding="utf-8").splitlines()
    refused = [collection.search(words, 10, hybrid=False, regions=regions).no_good_match for words in absent]
    told["not there, refused"] = float(np.mean(refused))
    # Asked before, so that the words are encoded.
    started = time.process_time()
    for words in absent:
        collection.search(words, 10, hybrid=False, regions=regions)
    told["milliseconds of a search"] = 1000 * (time.process_time() - started) / len(absent)
    return told


def compare(folder: Path, questions: Questions) -> tuple[dict[str, float], dict[str, float]]:
    """Return what a collection of a folder answers without and with regions; print what these cost."""
    with Collection.open_or_create(folder / ".diptych", Retriever.ready_made("default")) as collection:
        collection.add(folder)
        collection.build_index()
        before = collection.status()
        started = time.process_time()
        report = collection.add_regions()
        seconds = time.process_time() - started
        collection.search("anything")
        after = collection.status()
        print(f"{after.pictures} pictures, {report.read} of them looked at in {seconds:.0f} s of processor time")
        if not before.with_regions:
            more = after.store_bytes + after.index_bytes - before.store_bytes - before.index_bytes
            print(f"{more / after.pictures / 1024:.1f} KiB more for each picture")
        return measure(collection, questions, regions=False), measure(collection, questions, regions=True)


def main() -> int:
    """Make the collections, ask, print, and compare with the bars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pasted", type=int, default=80, help=f"at most {FIRST_BELOW}")
    parser.add_argument("--photographs", type=int, default=200)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    whole: dict[str, float] = {}
    parts: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        for make, count in ((paste, options.pasted), (link, options.photographs)):
            folder = (options.folder or Path(name)) / make.__name__
            folder.mkdir(parents=True, exist_ok=True)
            without, with_regions = compare(folder, make(folder, count))
            print(f"{'':32}{'whole':>8}{'regions':>9}")
            for kind, value in with_regions.items():
                print(f"{kind:32}{without[kind]:8.3f}{value:9.3f}" if kind in without else f"{kind:40}{value:9.3f}")
            whole, parts = whole | without, parts | with_regions
    gained = parts["pasted photo"] - whole["pasted photo"]
    lost = max(whole[kind] - parts[kind] for kind in ("photo below", "caption"))
    print(f"gained {gained:.3f} (at least {LEAST_GAINED}), lost {lost:.3f} (at most {MOST_LOST})")
    return int(gained < LEAST_GAINED or lost > MOST_LOST)


if __name__ == "__main__":
    sys.exit(main())
