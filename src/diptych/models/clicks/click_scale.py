"""How much a number of clicks says."""

from __future__ import annotations

from typing import Literal

import numpy as np

from diptych.arrays import FloatArray

ClickScale = Literal["log1p", "log"]
CLICK_SCALES: tuple[ClickScale, ...] = ("log1p", "log")


def scaled_clicks(clicks: FloatArray, scale: ClickScale) -> FloatArray:
    """Return log(1 + clicks), or the logarithm that Dong et al. (2018) print, under which one click counts nothing.

    Clicks corrected for their position are fractions; under ``log``, those below one count nothing either, for a
    negative weight would turn a click into an objection.

    >>> import numpy as np
    >>> from diptych.models.clicks.click_scale import scaled_clicks
    >>> scaled_clicks(np.array([0.5, 1.0, 7.0]), "log1p").round(2).tolist()
    [0.41, 0.69, 2.08]
    >>> scaled_clicks(np.array([0.5, 1.0, 7.0]), "log").round(2).tolist()
    [0.0, 0.0, 1.95]
    """
    numbers = np.asarray(clicks, dtype=np.float64)
    return np.log1p(numbers) if scale == "log1p" else np.log(np.maximum(numbers, 1))
