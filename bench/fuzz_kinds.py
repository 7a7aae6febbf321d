"""What ``fuzz.py`` tries: everything that reads files or texts of others, each with a few good inputs to begin with."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Input = tuple[str, bytes]
"""The ending of a file, and what is in it."""


def read_filter(folder: Path, given: Input) -> None:
    """Parse a filter, ask it of an item, and write it out again, which must mean the same."""
    from diptych.collection import Filter

    parsed = Filter.parse(given[1].decode("utf-8", "surrogateescape"))
    item = {"label": ("dog", "snow"), "year": 2012, "taken": "2012-05-01", "latitude": 38.7, "longitude": -9.1}
    if parsed.matches(item.get) != Filter.parse(str(parsed)).matches(item.get):
        raise AssertionError(f"{parsed} means something else than {given[1]!r}")


def read_query(folder: Path, given: Input) -> None:
    """Parse a query, and write it out again."""
    from diptych.collection import parse_query

    str(parse_query(given[1].decode("utf-8", "surrogateescape")))


def read_caption_file(folder: Path, given: Input) -> None:
    """Read captions of three pictures."""
    from diptych.data import read_captions

    pictures = [folder / f"{number}.jpg" for number in range(1, 4)]
    list(read_captions(_written(folder, given), folder, pictures=pictures).values())


def read_click_file(folder: Path, given: Input) -> None:
    """Read a log of clicks, whole and without its bad rows."""
    from diptych.data.clicks import read_clicks

    file = _written(folder, given)
    read_clicks(file, skip=True)
    read_clicks(file)


def read_model_folder(folder: Path, given: Input) -> None:
    """Load a model of which one file is another, and use it."""
    from diptych.models import load_model

    good = folder / "model"
    if not good.exists():
        _write_model(good)
    broken = good / ("model.json" if given[0] == ".json" else "arrays.safetensors")
    kept = broken.read_bytes()
    broken.write_bytes(given[1])
    try:
        load_model(good).encode_images(np.ones((2, 4)))
    finally:
        broken.write_bytes(kept)


def read_word_table(folder: Path, given: Input) -> None:
    """Load word vectors."""
    from diptych.encoders import load_word_vectors

    load_word_vectors(_written(folder, given))


def read_facts(folder: Path, given: Input) -> None:
    """Read what a photograph says of itself, of which nothing may be an error: XMP, EXIF."""
    from PIL import Image

    from diptych.data.photo_facts.reading import read_photo_facts

    packed = io.BytesIO()
    Image.new("RGB", (4, 3)).save(packed, "JPEG", **{given[0][1:]: given[1][:60_000]})
    with Image.open(packed) as image:
        read_photo_facts(image, packed, Path("2019-07-14.jpg"))


def read_feature_files(folder: Path, given: Input) -> None:
    """Open features, and read their first rows."""
    from diptych.data import open_features

    place = folder / "features"
    place.mkdir(exist_ok=True)
    np.save(place / "texts.npy", np.ones((3, 2), dtype=np.float32))
    (place / "images.npy").write_bytes(given[1])
    features = open_features(place)
    next(features.blocks(features.parts()[0]))


@dataclass(frozen=True)
class Kind:
    """What reads an input, and good inputs to begin with."""

    read: Callable[[Path, Input], None]
    seeds: Callable[[], list[Input]]


def _texts(*texts: str, ending: str = ".txt") -> Callable[[], list[Input]]:
    return lambda: [(ending, text.encode()) for text in texts]


def _caption_files() -> list[Input]:
    record = {"file": "1.jpg", "captions": ["a boat", "a ship"], "labels": ["sea"], "year": 2010}
    coco = {
        "images": [{"id": 1, "file_name": "1.jpg"}],
        "annotations": [{"image_id": 1, "caption": "a boat", "category_id": 2}],
        "categories": [{"id": 2, "name": "boat"}],
    }
    split = {"images": [{"filename": "2.jpg", "split": "test", "sentences": [{"raw": "a cat", "tokens": ["cat"]}]}]}
    documents = [[record], {"1.jpg": "a boat", "2.jpg": ["a cat"]}, coco, split]
    return [
        (".csv", b'file,caption,label,year\n1.jpg,a boat,sea,2010\n2.jpg,"a cat, black",pet,2011\n'),
        (".tsv", b"file\tcaption\ttags\n1.jpg\ta boat\tsea;ship\n"),
        (".txt", b"1.jpg#0\ta boat\n1.jpg#1\ta ship\n2.jpg#0\ta cat\n"),
        (".jsonl", f"{json.dumps(record)}\n{json.dumps(record)}\n".encode()),
        *((".json", json.dumps(document).encode()) for document in documents),
        *_parquet_files({"file": ["1.jpg"], "caption": ["a boat"], "year": [2010]}),
    ]


def _click_files() -> list[Input]:
    return [
        (".tsv", b"query\timage\tclicks\ttime\nred car\t1.jpg\t3\t2024-05-01\nred car\t2.jpg\t1\t2024-05-02\n"),
        (".csv", b'query,item,clicks\n"red, car",1.jpg,3\n'),
        (".jsonl", b'{"query": "red car", "image": "1.jpg", "clicks": 2}\n{"query": "a", "image": "b"}\n'),
        (".txt", b"red car\tk1\t3\nblue car\tk2\t1\n"),
        *_parquet_files({"query": ["red car"], "image": ["1.jpg"], "clicks": [2.0]}),
    ]


def _model_files() -> list[Input]:
    with tempfile.TemporaryDirectory() as folder:
        _write_model(Path(folder) / "model")
        names = {".json": "model.json", ".safetensors": "arrays.safetensors"}
        return [(ending, (Path(folder) / "model" / name).read_bytes()) for ending, name in names.items()]


def _write_model(folder: Path) -> None:
    from diptych.models import CCA

    rng = np.random.default_rng(0)
    CCA(n_components=2).fit(rng.normal(size=(20, 4)), rng.normal(size=(20, 3))).save(folder)


def _word_files() -> list[Input]:
    return [
        (".txt", b"the 0.1 0.2 0.3\ndog 1 2 3\ncat 1e-3 -2 3\n"),
        (".vec", b"2 3\ndog 1 2 3\ncat 1 2 4\n"),
        (".bin", b"2 3\ndog " + np.ones(3, dtype="<f4").tobytes() + b"\ncat " + np.zeros(3, dtype="<f4").tobytes()),
    ]


def _fact_blocks() -> list[Input]:
    from PIL import Image

    exif = Image.Exif()
    exif[0x010F], exif[0x0110], exif[0x9C9E] = "Make", "Model", "words".encode("utf-16-le")
    exif.get_ifd(0x8769).update({0x9003: "2019:07:14 12:00:00", 0x9011: "+02:00", 0x829A: (1, 250)})
    exif.get_ifd(0x8825).update({1: "N", 2: (38.0, 43.0, 12.0), 3: "W", 4: (9.0, 8.0, 21.0), 29: "2019:07:14"})
    xmp = (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"'
        ' xmlns:exif="http://ns.adobe.com/exif/1.0/" xmp:Rating="4" xmp:CreateDate="2019-07-14T12:00:00+02:00"'
        ' exif:GPSLatitude="38,43.2N" exif:GPSLongitude="9,8.35W"><dc:subject><rdf:Bag><rdf:li>sea</rdf:li></rdf:Bag>'
        '</dc:subject><dc:description><rdf:Alt><rdf:li xml:lang="x-default">a boat</rdf:li></rdf:Alt>'
        "</dc:description></rdf:Description></rdf:RDF></x:xmpmeta>"
    )
    return [(".exif", exif.tobytes()), (".xmp", xmp.encode())]


def _feature_files() -> list[Input]:
    inputs: list[Input] = []
    for rows in (np.ones((3, 4), dtype=np.float32), np.ones((3, 4), dtype=np.int16), np.ones((3, 0))):
        stream = io.BytesIO()
        np.save(stream, rows)
        inputs.append((".npy", stream.getvalue()))
    return inputs


def _parquet_files(columns: dict[str, list[Any]]) -> list[Input]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        # Nothing reads such files then.
        return []
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream)
    return [(".parquet", stream.getvalue())]


def _written(folder: Path, given: Input) -> Path:
    file = folder / f"given{given[0]}"
    file.write_bytes(given[1])
    return file


KINDS = {
    "filter": Kind(
        read_filter,
        _texts(
            'label:dog and (year>=2010 or camera="X T")',
            "not path:old/* taken>=2012-05",
            'within:20km of 38.7,-9.1 or within:"38,-10 to 39,-9"',
            'near:"38.7,-9.1" meta.path!=x "shot by"=me',
        ),
    ),
    "query": Kind(read_query, _texts('"2:golden retriever" + sea - snow', "- item:abc + .5:x.jpg", "16:9 C++ -word")),
    "captions": Kind(read_caption_file, _caption_files),
    "clicks": Kind(read_click_file, _click_files),
    "model": Kind(read_model_folder, _model_files),
    "words": Kind(read_word_table, _word_files),
    "facts": Kind(read_facts, _fact_blocks),
    "features": Kind(read_feature_files, _feature_files),
}
