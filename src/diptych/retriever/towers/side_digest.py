"""What names the points of a tower."""

from __future__ import annotations

from diptych.models import CrossModalModel
from diptych.models.files import model_digest
from diptych.models.item_model import ItemModel


def side_digest(model: CrossModalModel) -> str:
    """Return a digest of what a fitted model encodes by.

    How it was trained is left out where the model says what counts, so that a collection outlives another default, or
    one parameter more, in a later version.
    """
    return model_digest(model, parameters=model.encoding_parameters if isinstance(model, ItemModel) else None)
