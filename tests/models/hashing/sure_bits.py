"""Comparing codes of which rounding may turn a bit."""

from __future__ import annotations

import numpy as np

from diptych.codes import unpack_signs


def assert_same_bits(codes: object, expected: object, outputs: np.ndarray, margin: float = 1e-9) -> None:
    """Compare packed codes but for outputs so near to zero that two ways of adding may give them other signs."""
    sure = np.abs(outputs) > margin * np.abs(outputs).max()
    assert sure.mean() > 0.9
    left, right = (unpack_signs(np.asarray(side), outputs.shape[1]) for side in (codes, expected))
    np.testing.assert_array_equal(left[sure], right[sure])
