"""Where the time of LSSH and IMH goes, on all 2,866 pairs of Wikipedia with 16 bits: what no faster code could avoid.

Run ``python -m bench.hashing_shares`` with DIPTYCH_DATA set. Processor seconds in one thread, the least of three
fits. Of LSSH: the products of its gradient steps alone, on numbers that lie ready, and fitting the dictionaries. Of
IMH: the graphs of neighbours, and what the iterations that find eigenvectors take.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

from diptych.data import load_dataset
from diptych.models import IMH, LSSH
from diptych.models.hashing import lssh, spectral

BITS, REPEATS = 16, 3


def least_seconds(run: Callable[[], object]) -> float:
    """Return the processor seconds of the fastest of some runs."""
    spent = []
    for _ in range(REPEATS):
        started = time.process_time()
        run()
        spent.append(time.process_time() - started)
    return min(spent)


def seconds_within(owner: Any, name: str, run: Callable[[], object]) -> float:
    """Return the processor seconds that one function of a module or class takes within a run."""
    plain, spent = getattr(owner, name), 0.0

    def timed(*arguments: Any) -> Any:
        nonlocal spent
        started = time.process_time()
        result = plain(*arguments)
        spent += time.process_time() - started
        return result

    with mock.patch.object(owner, name, timed):
        run()
    return spent


def step_products(n_pairs: int, model: LSSH) -> tuple[float, float]:
    """Return the seconds and the operations of all products of LSSH's gradient steps."""
    rng = np.random.default_rng(0)
    seconds, operations = 0.0, 0.0
    block = lssh._BLOCK_NUMBERS // model.n_atoms
    first, later = (
        (model.n_image_components, model.n_lasso_iter),
        (
            model.n_image_components + model.n_bits,
            model.n_iter * lssh._ROUND_STEPS,
        ),
    )
    for width, n_steps in (first, later):
        codes = rng.normal(size=(block, model.n_atoms)).astype(np.float32)
        atoms = rng.normal(size=(model.n_atoms, width)).astype(np.float32)
        across, residual, fresh = np.ascontiguousarray(atoms.T), np.empty((block, width), np.float32), codes.copy()

        def steps(codes=codes, atoms=atoms, across=across, residual=residual, fresh=fresh) -> None:
            for _ in range(20):
                np.matmul(codes, atoms, out=residual)
                np.matmul(residual, across, out=fresh)

        seconds += least_seconds(steps) / 20 / block * n_pairs * n_steps
        operations += 4.0 * n_pairs * model.n_atoms * width * n_steps
    return seconds, operations


def main() -> None:
    """Measure and print."""
    splits = load_dataset("wikipedia")
    images, texts = (
        np.vstack([getattr(part, side) for part in (splits.train, splits.test)]) for side in ("images", "texts")
    )
    with threadpool_limits(1):
        sparse, media = LSSH(n_bits=BITS), IMH(n_bits=BITS)
        whole = least_seconds(lambda: sparse.fit(images, texts))
        products, operations = step_products(len(images), sparse)
        atoms = seconds_within(lssh, "fit_atoms", lambda: sparse.fit(images, texts))
        print(f"LSSH, {len(images):,} pairs: {whole:.2f} s")
        print(
            f"  products of its steps {products:.2f} s ({operations / products / 1e9:.0f} billion operations a second)"
        )
        print(f"  dictionaries {atoms:.2f} s; thresholds, momentum and the rest {whole - products - atoms:.2f} s")
        whole = least_seconds(lambda: media.fit(images, texts))
        graphs = seconds_within(spectral, "neighbour_graph", lambda: media.fit(images, texts))
        vectors = seconds_within(spectral.MediaAgreement, "top", lambda: media.fit(images, texts))
        print(f"IMH: {whole:.2f} s, graphs {graphs:.2f} s, eigenvectors {vectors:.2f} s")


if __name__ == "__main__":
    main()
