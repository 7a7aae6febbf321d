"""Speed and memory of the click models on a log of one million triads.

    python -m bench.click_models [--triads N] [--images N] [--queries N] [--candidates N]

A generated log: words and pictures are asked for as on the web, a few very often and most hardly ever (Zipf), queries
have one to five words, and pictures are 100,000 rows of 512 features in float32. Each model is a process of its own.
Bars, on 2 cores: Text2Image answers a query, from its words to the ten best of all pictures, in less than 100 ms
(median); Image2Text scores 1,000 queries with 10,000 pictures in less than 5 minutes; both stay within 4 GB, the data
included. Beside them stands the bare matrix product that no exact method can do without.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

from bench.report import peak_resident_bytes
from diptych.data.clicks import ClickLog
from diptych.models import PSI, DeViSE, Image2Text, OnlineClassification, QueryBasedScoring, Text2Image

PROGRAM = (sys.executable, "-m", "bench.click_models")

WIDTH, N_WORDS = 512, 30_000
ANSWER_BAR, SCORING_BAR, MEMORY_BAR = 0.1, 300.0, 4.0
MODELS = {cls.__name__: cls for cls in (Text2Image, QueryBasedScoring, Image2Text, OnlineClassification, PSI, DeViSE)}
# One pass tells what a pass costs; words that are numbers have vectors only if the log gives them some.
QUICK = {"PSI": {"epochs": 1}, "DeViSE": {"epochs": 1, "vectors": "log"}}


def zipf(rng: np.random.Generator, limit: int, size: int) -> np.ndarray:
    """Draw places 0 … limit − 1, place i with a probability that falls like 1/(i + 10)."""
    shares = np.cumsum(1 / (np.arange(limit) + 10.0))
    return np.searchsorted(shares, rng.random(size) * shares[-1])


def word(number: int) -> str:
    """Return a made-up word of five letters or more, which no dictionary knows."""
    letters = "bdfgklmnprtvz"
    return "q" + "".join(letters[number // 13**place % 13] for place in range(4)) + "x"


def generated_queries(rng: np.random.Generator, count: int) -> list[str]:
    """Return queries of one to five words; common words stand in most of them."""
    names = np.array([word(number) for number in range(N_WORDS)])
    sizes = rng.choice([1, 2, 3, 4, 5], p=[0.15, 0.3, 0.3, 0.15, 0.1], size=count)
    words = names[zipf(rng, N_WORDS, int(sizes.sum()))]
    ends = np.cumsum(sizes)
    return [" ".join(words[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def generated_log(n_triads: int, n_images: int) -> ClickLog:
    """Return a log with a third as many queries as triads, in which every picture was clicked."""
    rng = np.random.default_rng(0)
    queries = generated_queries(rng, max(1, n_triads // 3))
    asked = zipf(rng, len(queries), n_triads)
    images = np.concatenate([np.arange(n_images), zipf(rng, n_images, max(0, n_triads - n_images))])[:n_triads]
    clicks = rng.zipf(2.0, size=n_triads).clip(max=1000)
    return ClickLog.from_triads([queries[row] for row in asked], [f"{row}.jpg" for row in images], clicks)


def generated_images(count: int, seed: int) -> np.ndarray:
    """Return pictures around 200 centres, made in blocks so that making them is not what takes the memory."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).standard_normal((200, WIDTH), dtype=np.float32)
    images = np.empty((count, WIDTH), dtype=np.float32)
    for start in range(0, count, 8192):
        part = images[start : start + 8192]
        part[:] = centres[rng.integers(200, size=len(part))] + rng.standard_normal(part.shape, dtype=np.float32)
    return images


def peak() -> float:
    """Return the most memory that this process has held, in GiB."""
    return peak_resident_bytes() / 2**30


def answering(model: Text2Image, gallery: np.ndarray, queries: list[str]) -> dict[str, float]:
    """Answer queries one by one over all pictures: neighbours, point, scores and the ten best."""
    seconds, bare = [], []
    for query in queries:
        start = time.perf_counter()
        point = model.encode_texts([query])
        scores = (gallery @ point[0]).ravel()
        best = np.argpartition(-scores, 10)[:10]
        best[np.argsort(-scores[best])]
        middle = time.perf_counter()
        gallery @ point[0]
        seconds.append(middle - start)
        bare.append(time.perf_counter() - middle)
    return {
        "median": float(np.median(seconds)),
        "p99": float(np.quantile(seconds, 0.99)),
        "bare": float(np.median(bare)),
        "answered": float(np.mean([model.answers(query) for query in queries])),
    }


def scoring(model: Image2Text, candidates: np.ndarray, queries: list[str]) -> dict[str, float]:
    """Score all queries with all candidates, and once more now that their neighbours are known."""
    start = time.perf_counter()
    model.scores(queries, candidates)
    first = time.perf_counter()
    model.scores(queries, candidates)
    second = time.perf_counter()
    for rows in range(0, len(candidates), 256):
        candidates[rows : rows + 256] @ model.images_.T
    return {"score": first - start, "again": second - first, "bare": time.perf_counter() - second}


def measure_here(name: str, n_triads: int, n_images: int, n_queries: int, n_candidates: int) -> dict[str, float]:
    """Fit one model in this process and measure what it is for."""
    log, images = generated_log(n_triads, n_images), generated_images(n_images, 1)
    queries = generated_queries(np.random.default_rng(2), n_queries)
    data = peak()
    start = time.perf_counter()
    model = MODELS[name](**QUICK.get(name, {})).fit_clicks(log, images[: len(log.images)])
    result = {"fit": time.perf_counter() - start, "data": data}
    if isinstance(model, Text2Image):
        gallery = model.encode_images(images)
        model.encode_texts(["first"])
        result |= answering(model, gallery, queries)
    elif isinstance(model, Image2Text):
        result |= scoring(model, generated_images(n_candidates, 3), queries)
    else:
        candidates = generated_images(n_candidates, 3)
        few = queries[:100]
        start = time.perf_counter()
        model.scores(few, candidates)
        # Each query costs the same.
        result["score"] = (time.perf_counter() - start) * len(queries) / len(few)
    return result | {"peak": peak()}


def measure(name: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Measure in a process of its own."""
    sizes = [f"--{key}={getattr(arguments, key)}" for key in ("triads", "images", "queries", "candidates")]
    done = subprocess.run(
        [*PROGRAM, "--model", name, *sizes],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def report(results: dict[str, dict[str, float]]) -> list[str]:
    """Print the table and return the bars that were missed."""
    answer, score = results["Text2Image"], results["Image2Text"]
    print(f"{'model':22}{'fit':>9}{'scores':>10}{'peak':>10}{'data':>10}")
    for name, result in results.items():
        seconds = f"{result['score']:8.1f} s" if "score" in result else ""
        print(f"{name:22}{result['fit']:7.1f} s{seconds:>10}{result['peak']:6.2f} GiB{result['data']:6.2f} GiB")
    print(
        f"Text2Image: a query over all pictures takes {1000 * answer['median']:.1f} ms (median), "
        f"{1000 * answer['p99']:.1f} ms (p99), {answer['median'] / answer['bare']:.1f} times the bare product of "
        f"{1000 * answer['bare']:.1f} ms; {answer['answered']:.0%} of the queries have an answer"
    )
    print(
        f"Image2Text: {score['score']:.1f} s, where the bare product alone takes {score['bare']:.1f} s; once more, "
        f"with the neighbours known, {score['again']:.1f} s"
    )
    bars = {
        f"Text2Image answers in less than {1000 * ANSWER_BAR:.0f} ms": answer["median"] < ANSWER_BAR,
        f"Image2Text scores in less than {SCORING_BAR:.0f} s": score["score"] < SCORING_BAR,
        f"both stay within {MEMORY_BAR:g} GB": max(answer["peak"], score["peak"]) * 1.0737 < MEMORY_BAR,
    }
    return [bar for bar, is_met in bars.items() if not is_met]


def main() -> int:
    """Measure every model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triads", type=int, default=1_000_000)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--model", choices=MODELS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = arguments.triads, arguments.images, arguments.queries, arguments.candidates
    if arguments.model:
        print(json.dumps(measure_here(arguments.model, *sizes)))
        return 0
    wanted = dict.fromkeys(["Text2Image", "Image2Text", *arguments.models])
    print(f"{sizes[0]:,} triads, {sizes[1]:,} pictures, {sizes[2]:,} queries, {sizes[3]:,} candidates", end="; ")
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    missed = report({name: measure(name, arguments) for name in wanted})
    for bar in missed:
        print(f"MISSED: {bar}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
