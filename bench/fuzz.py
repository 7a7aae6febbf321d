"""Give broken input to everything that reads files or texts of others, and see that it is refused in one sentence.

    python -m bench.fuzz [filter query captions clicks model words facts features ...] [--minutes 30]

Each kind of input starts from a few good ones. They are cut, doubled, mixed and garbled, and those that bring about an
answer which none brought about before are garbled further. The reader works in a process of its own with limited
memory. It may return, or raise an error of Diptych; any other error ends the process and is a finding, as are a process
that dies and an input that twice takes longer than ten seconds of a processor. Findings are kept in ``bench/corpus``.

Minutes are those of a processor, so that a busy machine makes them last longer and not count for less. Each kind is a
round of the record. ``--once`` reads the good inputs, some garbled ones and those of the corpus once, in this process.
Exits with 1 where there was a finding.
"""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.campaign import add_round, arguments, next_seed, processor_seconds
from diptych.errors import DiptychError

CORPUS = Path(__file__).parent / "corpus"
MAX_SECONDS = 10
MAX_SILENCE_S = 300.0
MAX_MEMORY = 6 << 30
MAX_INPUTS = 400
MAX_INPUT_BYTES = 1 << 16
MAX_FINDINGS = 10
N_AT_ONCE = 60
# How a process ends that read an input for too long.
TOO_SLOW = (-signal.SIGXCPU, -signal.SIGKILL)

Input = tuple[str, bytes]
"""The ending of a file, and what is in it."""

_NASTY_TEXTS = (
    *("", "\x00", "\ufeff", "\ud800", "1e999", "-1", "NaN", "Infinity", "9" * 400, "true", "null", "../../etc/passwd"),
    *('"', "'", "(", ")" * 50, "(" * 2000, "[" * 2000, '{"a":' * 500, "not " * 500, "\t", "\r\n", "\n\n", ",", ";"),
    *(
        ":",
        "=",
        ">=",
        "$",
        "%s",
        "&amp;",
        "<!DOCTYPE x [<!ENTITY a 'b'>]>",
        "\u202e",
        "🐕",
        "a" * 5000,
        "1" * 40,
        "-0",
        "٣",
    ),
)
_NASTY_VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1 << 70, 10**400, 1e308, float("nan"), float("inf"), "", "\ud800", "x" * 5000, [], {}),
    *([[[[[]]]]], {"$model": {}}, {"$array": "x"}, {"$strings": [1 << 40]}, [None] * 1000, "../x"),
)


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


class Kind(NamedTuple):
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
    import pyarrow
    import pyarrow.parquet

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


def garbled(rng: random.Random, inputs: Sequence[Input], max_bytes: int = MAX_INPUT_BYTES) -> Input:
    """Return one of the inputs, changed in one to four ways, most often near its start."""
    ending, content = rng.choice(inputs)
    if ending in (".json", ".jsonl") and rng.random() < 0.5:
        return ending, _garbled_json(rng, content)
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        _garble(rng, changed, rng.choice(inputs)[1])
    return ending, bytes(changed[:max_bytes])


def _garble(rng: random.Random, content: bytearray, other: bytes) -> None:
    # Half of the places are in headers, where most branches are.
    start = rng.randrange(1 + (len(content) if rng.random() < 0.5 else min(len(content), 300)))
    end = min(len(content), start + rng.choice((1, 1, 2, 4, 8, 30)))
    way = rng.randrange(7)
    if way == 0:
        content[start:end] = rng.randbytes(end - start)
    elif way == 1:
        del content[start : end if rng.random() < 0.8 else None]
    elif way == 2:
        content[start:start] = rng.choice(_NASTY_TEXTS).encode("utf-8", "surrogatepass")
    elif way == 3:
        content[start:start] = content[start:end] * rng.choice((1, 2, 50))
    elif way == 4:
        place = rng.randrange(len(other) + 1)
        content[start:end] = other[place : place + rng.choice((4, 20, 200))]
    else:
        width = rng.choice((1, 2, 4, 8))
        number = rng.choice((0, 1, 127, 255, 50_000, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63)) % 256**width
        content[start : start + width] = number.to_bytes(width, rng.choice(("little", "big")))


def _garbled_json(rng: random.Random, content: bytes) -> bytes:
    try:
        documents = [json.loads(line) for line in content.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return content[: rng.randrange(len(content) + 1)]
    for _ in range(rng.randint(1, 3)):
        holder: Any = documents
        while holder:
            key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            if not isinstance(holder[key], dict | list) or rng.random() < 0.2:
                holder[key] = deepcopy(rng.choice(_NASTY_VALUES))
                break
            holder = holder[key]
    return "\n".join(json.dumps(document) for document in documents).encode("utf-8", "surrogatepass")[:MAX_INPUT_BYTES]


def keep(folder: Path, given: Input) -> Path:
    """Write an input into a folder, named by what it holds."""
    file = folder / f"{hashlib.sha256(given[1]).hexdigest()[:16]}{given[0]}"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_bytes(given[1])
    return file


def outcome(name: str, folder: Path, given: Input) -> str:
    """Read an input and return what came of it in a few words; errors that are not Diptych's are raised."""
    try:
        KINDS[name].read(folder, given)
    except DiptychError as error:
        return re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "…", f"{type(error).__name__} {error}")[:80]
    return "read"


def _read_input(file: Path) -> Input:
    ending, _, content = file.read_bytes().partition(b"\n")
    return ending.decode(), content


def _work(name: str, seed: int, seconds: float, current: Path, n_read: Any) -> None:
    """Read an input that was left in ``current``, then garbled ones for some seconds, each written there before."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rng, inputs, known = random.Random(seed), KINDS[name].seeds(), set[str]()
    left_over = [_read_input(current)] if current.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        for given in chain(left_over, iter(lambda: garbled(rng, inputs), None)):
            current.write_bytes(b"\n".join((given[0].encode(), given[1])))
            longest = int(time.process_time()) + 1 + MAX_SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (longest, resource.RLIM_INFINITY))
            came = outcome(name, Path(folder), given)
            n_read.value += 1
            if came not in known and len(inputs) < MAX_INPUTS:
                known.add(came)
                inputs.append(given)
            if time.process_time() > seconds:
                return


def run_worker(name: str, seed: int, seconds: float, current: Path, n_read: Any) -> int:
    """Return how a process ended that reads garbled inputs; it is killed when it reads one for minutes."""
    arguments = (name, seed, seconds, current, n_read)
    worker = multiprocessing.get_context("spawn").Process(target=_work, args=arguments, daemon=True)
    worker.start()
    before = -1
    while worker.is_alive() and n_read.value != before:
        before = n_read.value
        worker.join(MAX_SILENCE_S)
    worker.kill()
    worker.join()
    return worker.exitcode or 0


def fuzz(name: str, minutes: float, seed: int) -> dict[str, Any]:
    """Read garbled inputs for some minutes, or until there are many findings; keep these, and return the counts."""
    n_read = multiprocessing.get_context("spawn").Value("q", lock=False)
    begun, findings = processor_seconds(), 0
    with tempfile.TemporaryDirectory() as folder:
        current = Path(folder) / "input"
        while (used := processor_seconds() - begun) < 60 * minutes and findings < MAX_FINDINGS:
            status = run_worker(name, seed, 60 * minutes - used, current, n_read)
            if status in TOO_SLOW:
                # A busy machine may stop one anywhere: an input is a finding if it is slow by itself, too.
                status = run_worker(name, seed, 0.0, current, n_read)
            if status:
                findings += 1
                kept = keep(CORPUS / name, _read_input(current))
                print(f"{kept}: the process that read it ended with {status}\n", file=sys.stderr, flush=True)
            current.unlink(missing_ok=True)
            seed += 1
    used = processor_seconds() - begun
    return {"trials": n_read.value, "processor_minutes": round(used / 60, 2), "findings": findings}


def findings_at_once(kinds: Sequence[str]) -> list[str]:
    """Read the good inputs, some garbled ones and those of the corpus, which are refused, in this process."""
    wrong = list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for name in kinds:
            rng, seeds = random.Random(7), KINDS[name].seeds()
            made = [("", given) for given in (*seeds, *(garbled(rng, seeds) for _ in range(N_AT_ONCE)))]
            kept = [(str(file), (file.suffix, file.read_bytes())) for file in sorted((CORPUS / name).glob("*"))]
            for file, given in made + kept:
                try:
                    if outcome(name, Path(folder), given) == "read" and file:
                        wrong.append(f"{file}: it is not refused")
                except Exception:
                    wrong.append(f"{file or given}: {traceback.format_exc()}")
    return wrong


def main() -> None:
    """Fuzz the chosen kinds one after the other."""
    parser = arguments(__doc__, minutes=30.0)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], help="by default all, so many minutes each")
    parser.add_argument("--once", action="store_true", help="read a few inputs of each kind and those of the corpus")
    options = parser.parse_args()
    kinds, findings = options.kinds or list(KINDS), 0
    if options.once:
        sys.exit("\n".join(findings_at_once(kinds)) or 0)
    for name in kinds:
        seed = next_seed(options.record, fault := f"garbled {name}")
        # Each process that is ended has a seed of its own.
        found = fuzz(name, options.minutes, 1000 * seed)
        add_round(options.record, fault, seed, **found)
        findings += found["findings"]
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
