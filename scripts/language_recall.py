"""Ask a retriever in other languages, and fail where a sentence finds less than 0.85 of what an English one does.

    python scripts/language_recall.py --languages de fr

The sentences are those of Multi30k's test photos. With ``--queries``, the short ones of
bench/language_queries.tsv are asked of Flickr8k's test photos, too, in all their languages; that encodes 1,000
photos. Both data sets lie in DIPTYCH_DATA.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from diptych.data import load_dataset
from diptych.retriever import Retriever
from shipped_measures import translated_queries, translated_sentences

LEAST_SHARE = 0.85


def main() -> int:
    """Print R@10 by language and its share of English."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--retriever", default="default", help="the name of a shipped retriever")
    parser.add_argument("--languages", nargs="+", default=["de", "fr"], choices=["de", "fr"])
    parser.add_argument("--queries", action="store_true", help="ask the short queries, too")
    arguments = parser.parse_args()
    retriever = Retriever.ready_made(arguments.retriever)
    if arguments.queries:
        report("short queries", translated_queries(retriever, retriever.featured(load_dataset("flickr8k").test)))
    found = translated_sentences(retriever, arguments.languages)
    report("sentences", found)
    return int(any(value < LEAST_SHARE * found["en"] for value in found.values()))


def report(title: str, found: Mapping[str, float]) -> None:
    """Print one line for each language."""
    for language, value in found.items():
        print(f"{title}\t{language}\tR@10 {value:.3f}\tof English {value / found['en']:.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
