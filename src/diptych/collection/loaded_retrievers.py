"""The retrievers that a process has loaded."""

from __future__ import annotations

import threading

from diptych.collection.retriever_protocol import RetrieverProtocol
from diptych.collection.store import models
from diptych.collection.store.models import LoadRetriever, Model
from diptych.collection.store.store import Store


class LoadedRetrievers:
    """The retrievers that this process uses, each loaded once."""

    def __init__(self, store: Store, load_retriever: LoadRetriever) -> None:
        self._store = store
        self._load_retriever = load_retriever
        self._lock = threading.RLock()
        # By the number of the model, with the form that was loaded.
        self._loaded: dict[int, tuple[str, RetrieverProtocol]] = {}

    def of(self, model: Model) -> RetrieverProtocol:
        """Return the retriever of a model, in the form that was saved last."""
        with self._lock:
            saved, retriever = self._loaded.get(model.id, ("", None))
            if retriever is None or saved != model.saved:
                retriever = models.load_model(self._store, model, self._load_retriever)
                self.keep(model, retriever)
            return retriever

    def keep(self, model: Model, retriever: RetrieverProtocol) -> None:
        """Use a retriever for the model that was made of it; those of models that are stored no more are let go."""
        with self._store.reading() as db:
            stored = {one.id for one in models.all_models(db)}
        with self._lock:
            self._loaded = {number: one for number, one in self._loaded.items() if number in stored}
            self._loaded[model.id] = model.saved, retriever
