"""Measure what agents would claim: answerable and unanswerable questions on Pascal's photographs, by the tools of MCP.

    python scripts/agent_questions.py

needs Pascal Sentence in DIPTYCH_DATA. It indexes the photographs of ten classes, of which neither search model nor
its line of good matches has learned, and asks each question by the package's own client. 200 questions are answerable
(100 words and 100 captions of the photographs), 200 are plausible things that no caption speaks of. An agent that
goes by the probability claims what `search` finds; one that goes by the nearest pictures alone claims everything. It
writes the table of docs/how-to/agents.md; the exit status is 1 where more than 30 % of the second 200 are claimed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from mcp import Client

from diptych.arrays import BoolArray
from diptych.collection import Collection, Record
from diptych.data import Pairs
from diptych.retriever import Retriever
from diptych.retriever.ready_made import READY_MADE
from diptych.service.agents import agent_server
from match_queries import ABSENT, absent, asked, pascal

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "agents.md"
N_OF_A_KIND, MAX_FALSE_CLAIMS = 100, 0.3


async def claims(collection: Collection, questions: Sequence[str]) -> list[bool]:
    """Return whether an agent that goes by ``found`` claims a picture, for each question."""
    async with Client(agent_server(collection)) as client:
        found = [await client.call_tool("search", {"query": question}) for question in questions]
    return [result.structured_content["found"] for result in found]


def answered(retriever: Retriever, pairs: Pairs) -> list[bool]:
    """Return what an agent claims of the answerable questions and then of the others."""
    drawn = asked(retriever, pairs, retriever.encode_images(list(pairs.images)))
    questions = [query for kind in ("words", "sentences") for query in drawn[kind].queries[:N_OF_A_KIND]]
    questions += absent(pairs, test=True)[: 2 * N_OF_A_KIND]
    assert len(questions) == 4 * N_OF_A_KIND
    with (
        tempfile.TemporaryDirectory() as folder,
        Collection.create(Path(folder) / "c", retriever, root=os.path.commonpath(pairs.images)) as collection,
    ):
        collection.add([Record(path) for path in pairs.images])
        return asyncio.run(claims(collection, questions))


def share(said: BoolArray) -> str:
    """Return a share with its standard error."""
    return f"{said.mean():.3f} ± {np.sqrt(said.mean() * (1 - said.mean()) / len(said)):.3f}"


def main() -> int:
    """Index, ask, print the table and write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    pairs = pascal(seen=False)
    lines = [
        f"`python scripts/agent_questions.py` asks {pairs.n_images} photographs of ten classes of Pascal Sentence that",
        f"the search models have not seen. {2 * N_OF_A_KIND} questions are answerable, {N_OF_A_KIND} words and as many",
        f"captions, and {2 * N_OF_A_KIND} are plausible things that no caption speaks of (`bench/{ABSENT.name}`, every",
        "other line; how they are drawn is told by [good matches](../results/good-matches.md)).",
        "An agent claims what `search` finds; by the nearest pictures alone it would always claim something.",
        "",
        "| search model | false claims, with the probability | by the nearest alone | answerable questions denied |",
        "|---|---:|---:|---:|",
    ]
    missed = False
    for name in READY_MADE:
        retriever = Retriever.ready_made(name)
        said = np.array(answered(retriever, pairs))
        true, false = said[: 2 * N_OF_A_KIND], said[2 * N_OF_A_KIND :]
        missed |= bool(false.mean() > MAX_FALSE_CLAIMS)
        lines.append(f"| `{name}` | {share(false)} | 1.000 | {share(~true)} |")
    print("\n".join(lines))
    before, rest = PAGE.read_text(encoding="utf-8").split("<!-- measured -->\n")
    after = rest.partition("<!-- end -->")[2]
    PAGE.write_text(f"{before}<!-- measured -->\n" + "\n".join(lines) + f"\n<!-- end -->{after}", encoding="utf-8")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
