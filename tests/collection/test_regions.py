"""Regions of pictures: small things are found and said where, once asked for, and kept with their pictures."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.collection import AddProgress, Answers, Collection, Record, backup_collection, restore_collection
from diptych.collection.indexing.content_reading import KEPT_SCORE, WHOLE_SHARE
from diptych.data.sample_photographs import PHOTOGRAPHS_FOLDER
from diptych.encoders.image.picture_parts import REGIONS, read_regions
from diptych.errors import InvalidInputError
from tests.collection.colour_retriever import COLOURS, ColourRetriever

SIDE = 100


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A small red square, thin red lines all over, and nothing red at all, on grey."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name in ("corner", "lines", "plain"):
        pixels = np.full((SIDE, SIDE, 3), 128, dtype=np.uint8)
        if name == "corner":
            pixels[80:92, 70:82] = COLOURS["red"]
        if name == "lines":
            pixels[10::33, :] = COLOURS["red"]
        Image.fromarray(pixels).save(folder / f"{name}.png")
    return folder


@pytest.fixture
def collection(pictures: Path) -> Iterator[Collection]:
    with Collection.create(
        pictures / ".diptych", ColourRetriever(), load_retriever=ColourRetriever.load, write_wait=30
    ) as made:
        made.add(pictures)
        yield made


def names(answers: Answers) -> list[str]:
    return [answer.path.stem for answer in answers if answer.path is not None]


def reopened(collection: Collection) -> Collection:
    return Collection.open(collection.folder, load_retriever=ColourRetriever.load, write_wait=30)


def test_a_small_thing_is_found_where_it_is(collection: Collection) -> None:
    assert names(collection.search("red")) == ["lines", "corner", "plain"]
    other = reopened(collection)
    assert other.search("red")[0].region is None
    steps: list[AddProgress] = []
    report = collection.add_regions(progress=steps.append)
    assert (report.read, report.known, report.skipped) == (3, 0, {})
    assert [(step.done, step.total) for step in steps] == [(1, 3), (2, 3), (3, 3)]
    # A process that had the collection open sees them, too.
    for searched in (collection, other):
        found = searched.search("red")
        assert names(found) == ["corner", "lines", "plain"]
        region = found[0].region
        assert region is not None
        assert region.place == "lower right"
        assert region.left <= 0.7 <= 0.82 <= region.right
        assert region.top <= 0.8 <= 0.92 <= region.bottom
        # Where the whole is as good, it answers.
        assert found[1].region is None
        assert names(searched.search("red", regions=False)) == ["lines", "corner", "plain"]
        assert names(searched.search("red", k=1, offset=1)) == ["lines"]
        assert (found.considered, found.exact) == (3, True)
    assert other.status().with_regions == 3
    assert collection.add_regions().known == 3


def test_pictures_rank_by_the_better_of_whole_and_regions(
    tmp_path: Path, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory and by an index, as by comparing everything by hand."""
    rng, retriever = np.random.default_rng(0), ColourRetriever()
    shades = np.array(list(COLOURS.values()), dtype=np.uint8)
    for number in range(90):
        kinds = np.minimum(rng.geometric(0.6, size=(10, 10)) - 1, 3)[..., None]
        Image.fromarray(shades[(kinds[..., 0] + number) % 4]).save(tmp_path / f"{number:02}.png")
    paths = sorted(tmp_path.glob("*.png"))
    collection.add([Record(path, labels=["even"] if int(path.stem) % 2 == 0 else []) for path in paths])
    collection.add_regions()
    query = retriever.encode_texts(["red blue"])

    def score(path: Path) -> float:
        points = retriever.encode_images([path, *read_regions(path)])
        whole, *parts = retriever.space.compare(query, points)[0].tolist()
        return max(whole, KEPT_SCORE * (WHOLE_SHARE * whole + (1 - WHOLE_SHARE) * max(parts)))

    scores = {path.stem: score(path) for path in paths}
    even = sorted(scores[name] for name in scores if int(name) % 2 == 0)[::-1]

    def check(opened: Collection, exact: bool | None) -> None:
        found = opened.search("red blue", 20, exact=exact)
        assert [answer.score for answer in found] == pytest.approx(sorted(scores.values())[::-1][:20], abs=1e-3)
        assert all(answer.score == pytest.approx(scores[answer.path.stem], abs=1e-3) for answer in found)
        some = opened.search("red blue", 12, filter="label:even", exact=exact)
        assert [answer.score for answer in some] == pytest.approx(even[:12], abs=1e-3)

    check(collection, None)
    monkeypatch.setattr("diptych.collection.vectors.vector_index.MAX_FLAT", 1000)
    collection.build_index()
    assert not collection.search("red").exact
    check(collection, None)
    check(reopened(collection), True)


def test_it_goes_on_where_it_was_interrupted(collection: Collection) -> None:
    def stop(step: AddProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collection.add_regions(progress=stop)
    # What was done is searched at once.
    assert collection.status().with_regions == 1
    assert names(collection.search("red"))[0] == "corner"
    report = reopened(collection).add_regions()
    assert (report.known, report.read) == (1, 2)
    assert collection.verify().is_whole


def test_two_processes_do_not_store_the_same_twice(collection: Collection) -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from diptych.collection import Collection\n"
        "from tests.collection.colour_retriever import ColourRetriever\n"
        "Collection.open(sys.argv[1], load_retriever=ColourRetriever.load, write_wait=60).add_regions()\n"
    )
    here = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", program, str(collection.folder), here]
    both = [subprocess.Popen(command, env=environment) for _ in range(2)]
    assert [one.wait(120) for one in both] == [0, 0]
    assert collection.status().with_regions == 3
    assert collection.verify().is_whole
    assert names(collection.search("red"))[0] == "corner"


def test_regions_go_with_their_pictures(collection: Collection, pictures: Path) -> None:
    collection.add_regions()
    collection.remove("corner.png")
    assert names(collection.search("red")) == ["lines", "plain"]
    collection.add(pictures / "corner.png")
    assert names(collection.search("red"))[0] == "lines"
    assert collection.add_regions().read == 1
    assert names(collection.search("red"))[0] == "corner"
    # So has a picture of another content none until they are asked for.
    other_picture = Image.new("RGB", (SIDE, SIDE), COLOURS["green"])
    other_picture.paste(COLOURS["blue"], (5, 5, 20, 20))
    other_picture.save(pictures / "corner.png")
    collection.refresh()
    assert names(collection.search("red"))[0] == "lines"
    report = collection.add_regions()
    assert (report.read, report.known) == (1, 2)
    other = reopened(collection)
    assert other.search("blue")[0].region is not None
    collection.remove_regions()
    assert collection.status().with_regions == 0
    assert other.search("blue")[0].region is None
    assert collection.add_regions().read == 3


def test_each_search_model_has_regions_of_its_own(collection: Collection, tmp_path: Path) -> None:
    collection.add_regions()
    collection.add_retriever(ColourRetriever(1), name="other")
    assert names(collection.search("red", retriever="other"))[0] == "lines"
    collection.add_regions("other")
    assert names(collection.search("red", retriever="other"))[0] == "corner"
    backup_collection(collection.folder, tmp_path / "backup")
    restored = restore_collection(tmp_path / "backup", tmp_path / "restored").target
    with Collection.open(restored, load_retriever=ColourRetriever.load) as opened:
        assert opened.search("red", retriever="other")[0].region == collection.search("red")[0].region is not None
    collection.remove_retriever("other")
    collection.set_retriever(ColourRetriever(space="hamming"))
    assert collection.search("red")[0].region is None
    with pytest.raises(InvalidInputError, match="not compared by inner products"):
        collection.add_regions()


def test_tiny_and_long_pictures_have_all_regions() -> None:
    for shape in ((1, 1), (1, 300), (7, 5)):
        parts = read_regions(np.zeros((*shape, 3), dtype=np.uint8))
        assert len(parts) == len(REGIONS) == 13
        assert all(part.size for part in parts)


def test_a_part_of_a_photograph_is_found(tmp_path: Path) -> None:
    """With networks: a small photograph of a panda on one of mountains."""
    from diptych import Retriever

    retriever = Retriever.ready_made("default")
    retriever.cache = False
    wide = Image.open(PHOTOGRAPHS_FOLDER / "mountains.jpg").resize((900, 600))
    wide.paste(Image.open(PHOTOGRAPHS_FOLDER / "panda.jpg").resize((250, 200)), (20, 380))
    wide.save(tmp_path / "wide.png")
    with Collection.create(tmp_path / "c", retriever, root=tmp_path) as collection:
        collection.add(tmp_path / "wide.png")
        before = collection.search("a panda")[0]
        collection.add_regions()
        after = collection.search("a panda")[0]
        assert after.region is not None
        assert after.region.place == "lower left"
        assert after.probability > 2 * before.probability
