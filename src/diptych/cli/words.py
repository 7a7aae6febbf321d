"""``diptych words``: what a trained model takes for alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.choices import WordLayerChoice

if TYPE_CHECKING:
    from diptych.encoders import NearWord


def words(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A saved model, retriever or collection; or glove-50d, or a file of vectors."
        ),
    ],
    asked: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words to look beside.")],
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Neighbours of each word.")] = 10,
    layer: Annotated[
        WordLayerChoice,
        typer.Option(help="Of a network: what its memory answers to a word, or the vectors it reads."),
    ] = WordLayerChoice.MEMORY,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write words and cosines to this JSON file.")
    ] = None,
) -> None:
    """Show the words nearest to a word in the space that a model learned or uses, by cosine."""
    from diptych.cli.files import check_writable_file, write_text
    from diptych.cli.word_tables import word_table
    from diptych.encoders import nearest_words

    if output is not None:
        check_writable_file(output)
    table = word_table(model, layer.value)
    found = {word: nearest_words(table, word, k) for word in asked}
    if output is not None:
        content = {word: [near._asdict() for near in nearest] for word, nearest in found.items()}
        write_text(output, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    _show_one(next(iter(found.values()))) if len(found) == 1 else _show_many(found)


def _show_one(nearest: list[NearWord]) -> None:
    from diptych.cli.terminal import results, table

    listing = table()
    listing.add_column("word", no_wrap=True, style="bold")
    listing.add_column("cosine", justify="right", no_wrap=True)
    for near in nearest:
        listing.add_row(near.word, f"{near.similarity:.3f}")
    results().print(listing)


def _show_many(found: dict[str, list[NearWord]]) -> None:
    from diptych.cli.terminal import results, table

    listing = table()
    listing.add_column("word", no_wrap=True, style="bold")
    listing.add_column("most similar words")
    for word, nearest in found.items():
        listing.add_row(word, ", ".join(near.word for near in nearest))
    results().print(listing)
