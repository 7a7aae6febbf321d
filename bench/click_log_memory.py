"""How much memory and time reading a long click log takes, on a generated log.

    python -m bench.click_log_memory [--triads N]

Queries are drawn so that about half of the triads bring a new one, as in Clickture-Lite (23 million triads, 11.7
million queries, one million images), and have 2 to 4 words; image keys have 20 characters.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from diptych.benchmark.peak_memory import peak_resident_bytes
from diptych.data.clicks import read_clicks

_QUERIES_PER_TRIAD = 0.62


def write_log(path: Path, n_triads: int) -> None:
    """Write a headless table of query, image key and clicks."""
    generator = np.random.default_rng(0)
    words = np.array(["".join(generator.choice(list("abcdefghijklmnopqrstuvwxyz"), 5)) for _ in range(20_000)])
    n_queries, n_images = int(_QUERIES_PER_TRIAD * n_triads), n_triads // 23
    with path.open("w", encoding="utf-8") as stream:
        for start in range(0, n_triads, 100_000):
            count = min(100_000, n_triads - start)
            queries = generator.integers(n_queries, size=count)
            images = generator.integers(n_images, size=count)
            clicks = generator.geometric(0.4, size=count)
            for query, image, click in zip(queries.tolist(), images.tolist(), clicks.tolist(), strict=True):
                spelt = [words[(query * prime) % len(words)] for prime in (1, 7_919, 104_729)[: 1 + query % 3]]
                stream.write(f"{' '.join(spelt)} {query}\tkey{image:017d}\t{click}\n")


def main() -> None:
    """Write a log, read it and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triads", type=int, default=3_000_000)
    n_triads = parser.parse_args().triads
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.tsv"
        write_log(path, n_triads)
        before = peak_resident_bytes() / 2**20
        start = time.perf_counter()
        log = read_clicks(path)
        seconds = time.perf_counter() - start
        peak = peak_resident_bytes() / 2**20
    print(log)
    print(f"file read in {seconds:.1f} s, {n_triads / seconds:,.0f} triads a second")
    print(f"the log takes {log.nbytes / 2**20:.0f} MiB; peak {peak:.0f} MiB, {before:.0f} MiB of it before reading")


if __name__ == "__main__":
    main()
