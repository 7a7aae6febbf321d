"""From what was typed for a model to the vectors of its words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.cli.collection_place import FOLDER_NAME, is_collection
from diptych.cli.retriever_choice import load_retriever
from diptych.encoders import Concatenated, WordVectors, load_word_vectors
from diptych.encoders.text.word_vector_encoder import WordVectorEncoder
from diptych.errors import InvalidInputError, ModelFileError
from diptych.models import MNiL, Preprocessed, load_model
from diptych.models.neural.mnil.word_space import WordLayer, learned_words
from diptych.retriever import Retriever, TextTower

_PACKAGED = ("glove-50d", "glove-100d")


def word_table(name: str, layer: WordLayer = "memory") -> WordVectors:
    """Return the words of a saved model, a retriever's, a collection's, or those of a file of word vectors."""
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
    folder = Path(name).expanduser()
    for place in (folder, folder / FOLDER_NAME):
        if is_collection(place):
            from diptych.collection import Collection

            with Collection.open(place) as opened:
                return opened.retriever
    if (folder / "model.json").is_file():
        try:
            return load_model(folder)
        except ModelFileError:
            return Retriever.load(folder)
    if name not in ("default", "conse") and not folder.exists():
        raise InvalidInputError(
            f"there is no {name}; name the folder of a saved model, retriever or collection, glove-50d, or a file of "
            "word vectors"
        )
    return load_retriever(name)


def _table(part: Any, layer: WordLayer) -> WordVectors | None:
    """Look for words in a model or encoder and in what it is made of."""
    if isinstance(part, MNiL):
        return learned_words(part, layer)
    if isinstance(part, WordVectorEncoder):
        return part.table
    for inner in _inside(part):
        found = _table(inner, layer)
        if found is not None:
            return found
    return None


def _inside(part: Any) -> tuple[Any, ...]:
    if isinstance(part, Retriever):
        return part.text_encoder_, part.model_
    if isinstance(part, Concatenated):
        return tuple(part.encoders_) if hasattr(part, "encoders_") else tuple(part.encoders)
    if isinstance(part, Preprocessed):
        return (part.model_,)
    return (part.model,) if isinstance(part, TextTower) else ()
