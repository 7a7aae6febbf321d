"""K-means with bits."""

from __future__ import annotations

import numpy as np

from diptych.codes import hamming_distances, pack_signs, unpack_signs
from diptych.codes.hash_code_index import central_codes


def test_a_centre_alone_is_the_majority_of_every_bit() -> None:
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (41, 20))
    centre = central_codes(pack_signs(signs), 1, rounds=1, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(unpack_signs(centre, 20)[0], np.sign(signs.sum(axis=0)))


def test_rounds_bring_codes_nearer_to_their_centres() -> None:
    rng = np.random.default_rng(0)
    prototypes = rng.choice([-1.0, 1.0], (6, 48))
    flips = np.where(rng.random((600, 48)) < 0.1, -1.0, 1.0)
    codes = pack_signs(prototypes[rng.integers(0, 6, 600)] * flips)
    spread = [
        hamming_distances(codes, central_codes(codes, 6, rounds=rounds, rng=np.random.default_rng(3)))
        .min(axis=1)
        .mean()
        for rounds in (0, 1, 4)
    ]
    assert spread[0] > spread[1] >= spread[2]


def test_no_more_centres_than_needed_are_invented() -> None:
    codes = np.repeat(pack_signs(np.random.default_rng(0).standard_normal((3, 16))), 5, axis=0)
    centres = central_codes(codes, 10, rounds=3, rng=np.random.default_rng(0))
    assert centres.shape == (10, 2)
    assert {tuple(row) for row in centres.tolist()} <= {tuple(row) for row in codes.tolist()}
