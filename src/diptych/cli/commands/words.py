"""``diptych words``: which words a trained model takes for similar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.addresses import is_address
from diptych.cli.console.output import (
    bold,
    check_writable_file,
    numbers,
    print_json,
    print_table,
    results,
    write_text,
)
from diptych.cli.console.paths import FOLDER_NAME, is_collection
from diptych.cli.options import JsonOption, WordLayerChoice
from diptych.errors import InvalidInputError, ModelFileError

if TYPE_CHECKING:
    from diptych.encoders import WordVectors
    from diptych.models.neural.mnil.word_space import WordLayer

_PACKAGED = ("glove-50d", "glove-100d", "minilm")


def words(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A saved model, search model (retriever) or collection; or glove-50d, or a file of vectors.",
        ),
    ],
    asked: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words whose neighbours to show.")],
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Neighbours of each word.")] = 10,
    layer: Annotated[
        WordLayerChoice, typer.Option(help="Of a network: what its memory answers to a word, or the vectors it reads.")
    ] = "memory",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write words and cosines to this JSON file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the words nearest to a word in the space that a model learned or uses, by cosine."""
    from diptych.encoders import nearest_words

    if output is not None:
        check_writable_file(output)
    vectors = word_table(model, layer)
    found = {word: nearest_words(vectors, word, k) for word in asked}
    content = {word: [near._asdict() for near in nearest] for word, nearest in found.items()}
    if output is not None:
        write_text(output, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    if as_json:
        print_json(content)
        return
    if len(found) == 1:
        cosines = ([near.word, f"{near.similarity:.3f}"] for near in found[asked[0]])
        print_table([bold("word"), *numbers("cosine")], cosines, results())
    else:
        rows = ([word, ", ".join(near.word for near in nearest)] for word, nearest in found.items())
        print_table([bold("word"), "most similar words"], rows, results())


def word_table(name: str, layer: WordLayer = "memory") -> WordVectors:
    """Return the words of a saved model, a retriever's, a collection's, or those of a file of word vectors."""
    from diptych.encoders import load_word_vectors

    if name in _PACKAGED or Path(name).expanduser().is_file():
        return load_word_vectors(name if name in _PACKAGED else Path(name).expanduser())
    found = _table(_loaded(name), layer)
    if found is None:
        raise InvalidInputError(
            f"{name} has no vectors of single words to look at; name a saved MNiL, a retriever or collection whose "
            "texts are read word by word (such a network, or mean word vectors), or glove-50d"
        )
    return found


def _loaded(name: str) -> Any:
    from diptych.cli.arguments import load_retriever
    from diptych.models import load_model
    from diptych.retriever import Retriever
    from diptych.retriever.ready_made import READY_MADE

    folder = Path(name).expanduser()
    for place in (name,) if is_address(name) else filter(is_collection, (folder, folder / FOLDER_NAME)):
        from diptych.collection import Collection

        with Collection.open(place) as opened:
            return opened.retriever
    if (folder / "model.json").is_file():
        try:
            return load_model(folder)
        except ModelFileError:
            return Retriever.load(folder)
    if name not in READY_MADE and not folder.exists():
        raise InvalidInputError(
            f"there is no {name}; name the folder of a saved model, retriever or collection, glove-50d, or a file of "
            "word vectors"
        )
    return load_retriever(name)


def _table(part: Any, layer: WordLayer) -> WordVectors | None:
    """Look for words in a model or encoder and in what it is made of."""
    from diptych.encoders.text.word_vector_encoders import WordVectorEncoder
    from diptych.models import MNiL
    from diptych.models.neural.mnil.word_space import learned_words

    if isinstance(part, MNiL):
        return learned_words(part, layer)
    if isinstance(part, WordVectorEncoder):
        return part.table
    tables = (_table(inner, layer) for inner in _inside(part))
    return next((found for found in tables if found is not None), None)


def _inside(part: Any) -> tuple[Any, ...]:
    from diptych.encoders import Concatenated
    from diptych.models import Preprocessed
    from diptych.retriever import Retriever, TextTower

    if isinstance(part, Retriever):
        return part.text_encoder_, part.model_
    if isinstance(part, Concatenated):
        return tuple(part.encoders_) if hasattr(part, "encoders_") else tuple(part.encoders)
    if isinstance(part, Preprocessed):
        return (part.model_,)
    return (part.model,) if isinstance(part, TextTower) else ()
