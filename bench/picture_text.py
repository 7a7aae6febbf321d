"""How many words of painted pictures are read, how many of the pictures their words find first, and how fast.

    python -m bench.picture_text [--pictures 200] [--photographs FOLDER]

Paints pictures with words in eight fonts, five sizes, all colours, turned and not, on plain, noisy and photographed
grounds (``painted_words.py``), puts them into a collection, reads their text, and asks for the words of each. Exits
with an error when fewer than 0.95 of the words are read, or fewer than 0.9 of the pictures come first. Photographs of a
folder are read besides, to say how many have text; some of it is printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from bench.painted_words import paint, words_of
from diptych.collection import Collection
from diptych.collection.search.sought_words import folded_words
from tests.doubles import ToyRetriever

LEAST_READ, LEAST_FIRST = 0.95, 0.9
SHOWN = 20


def read_folder(folder: Path) -> tuple[Collection, float]:
    """Return a collection of the pictures of a folder with their text, and the processor seconds of each."""
    # What is similar does not matter here, so nothing is encoded.
    collection = Collection.create(folder / ".diptych", ToyRetriever(), load_retriever=ToyRetriever.load)
    collection.add(folder)
    started = time.process_time()
    report = collection.read_text()
    return collection, (time.process_time() - started) / max(1, report.read)


def measure(n_pictures: int) -> tuple[float, float, float]:
    """Return the share of words that are read, the share of pictures that come first, and the seconds of each."""
    n_words = n_read = n_first = 0
    with tempfile.TemporaryDirectory() as name:
        for seed in range(n_pictures):
            paint(seed).save(Path(name) / f"{seed:04}.png")
        collection, seconds = read_folder(Path(name))
        for seed in range(n_pictures):
            wanted = [word.lower() for word in words_of(seed).words]
            found = collection.picture_text(f"{seed:04}.png")
            read = set(folded_words(found.text if found is not None else ""))
            n_words += len(wanted)
            n_read += sum(word in read for word in wanted)
            best = collection.search(" ".join(wanted), 1)[0]
            n_first += best.path is not None and best.path.stem == f"{seed:04}"
        collection.close()
    return n_read / n_words, n_first / n_pictures, seconds


def look_at(photographs: Path) -> None:
    """Say how many photographs have text, and print some of it."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "photographs").symlink_to(photographs.resolve(), target_is_directory=True)
        collection, seconds = read_folder(Path(name))
        texts = {item.path: collection.picture_text(item.id) for item in collection}
        collection.close()
    found = {path: text.text for path, text in texts.items() if text is not None and text.words}
    print(f"photographs: {len(found)} of {len(texts)} have text, {1 / seconds:.2f} per processor second")
    for path, text in list(found.items())[:SHOWN]:
        print(f"  {path}: {' | '.join(text.splitlines())[:100]}")


def main() -> int:
    """Measure, print, and compare with the bars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--photographs", type=Path)
    options = parser.parse_args()
    read, first, seconds = measure(options.pictures)
    print(f"words read {read:.3f} (at least {LEAST_READ}), found first {first:.3f} (at least {LEAST_FIRST})")
    print(f"{1 / seconds:.2f} pictures of 640 × 480 per processor second")
    if options.photographs is not None:
        look_at(options.photographs)
    return int(read < LEAST_READ or first < LEAST_FIRST)


if __name__ == "__main__":
    sys.exit(main())
