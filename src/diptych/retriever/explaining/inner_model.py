"""The model behind feature scaling."""

from __future__ import annotations

from diptych.models import CrossModalModel, Preprocessed


def inner_model(model: CrossModalModel) -> CrossModalModel:
    """Return the model whose points are compared: scaling in front of it does not change what they mean.

    >>> from diptych.models import CCA, Preprocessed
    >>> from diptych.retriever.explaining.inner_model import inner_model
    >>> inner_model(Preprocessed(model=CCA()))
    CCA()
    """
    while isinstance(model, Preprocessed):
        model = model.model_ if hasattr(model, "model_") else model.model
    return model
