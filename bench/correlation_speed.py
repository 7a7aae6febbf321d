"""CCA, partial least squares and kernel CCA beside scikit-learn and cca_zoo, for the same directions.

    python -m bench.correlation_speed [--quick]

Generated pairs that share ten latent directions, in float64. Everybody fits five components without regularisation
(kernel CCA: exact, with linear kernels and cca_zoo's default), and all must give pictures the same first score. Partial
least squares comes in two forms, deflated by the scores of the pictures (`PLS` and scikit-learn's ``PLSRegression``)
and not at all (`CFA`, ``PLSSVD`` and cca_zoo's ``PLS``). Everything runs in one thread, by processor time. The bar is
to be no slower than any of them.
"""

from __future__ import annotations

import importlib
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import cross_decomposition

from bench.speed_report import SpeedReport, installed, speed_parser
from diptych.models import CCA, CFA, KCCA, PLS

COMPONENTS, WIDTHS, REPEATS, SHRINKAGE = 5, (128, 64), 3, 0.1
Views = tuple[np.ndarray, np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray], Views]


def make_views(rows: int) -> Views:
    """Return pictures and texts that share latent directions of falling strength."""
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((rows, 10)) / np.arange(1, 11)
    images, texts = (latent @ rng.standard_normal((10, width)) + rng.standard_normal((rows, width)) for width in WIDTHS)
    return images, texts


def our_fit(model: Any) -> Fit:
    """Return a fit of ours, which gives the scores of both sides."""

    def fit(images: np.ndarray, texts: np.ndarray) -> Views:
        fitted = model.fit(images, texts)
        return fitted.encode_images(images), fitted.encode_texts(texts)

    return fit


def sklearn_fit(model: Any) -> Fit:
    """Return a fit of scikit-learn's."""
    return lambda images, texts: model.fit(images, texts).transform(images, texts)


def zoo_fit(module: str, name: str, **parameters: Any) -> Fit | None:
    """Return a fit of cca_zoo's, or None where it is not installed."""
    if not installed("cca_zoo"):
        return None
    model = getattr(importlib.import_module(f"cca_zoo.{module}"), name)(n_components=COMPONENTS, **parameters)
    return lambda images, texts: model.fit_transform([images, texts])


def kinds() -> dict[str, tuple[Fit, dict[str, Fit | None], tuple[int, int]]]:
    """Return for each method ours, the others, and the rows of the quick and the full form."""
    size = {"n_components": COMPONENTS}
    return {
        "CCA": (
            our_fit(CCA(regularization=0, **size)),
            {
                "scikit-learn": sklearn_fit(cross_decomposition.CCA(max_iter=5000, tol=1e-8, **size)),
                "cca_zoo": zoo_fit("linear", "CCA"),
            },
            (10_000, 50_000),
        ),
        "PLS, deflated": (
            our_fit(PLS(**size)),
            {"scikit-learn": sklearn_fit(cross_decomposition.PLSRegression(scale=False, **size))},
            (10_000, 50_000),
        ),
        "PLS of one decomposition": (
            our_fit(CFA(scale="none", **size)),
            {
                "scikit-learn": sklearn_fit(cross_decomposition.PLSSVD(scale=False, **size)),
                "cca_zoo": zoo_fit("linear", "PLS"),
            },
            (10_000, 50_000),
        ),
        "kernel CCA": (
            our_fit(KCCA(solver="exact", image_kernel="linear", text_kernel="linear", kappa=SHRINKAGE, **size)),
            {"cca_zoo": zoo_fit("nonparametric", "KCCA", shrinkage=SHRINKAGE)},
            (500, 2_000),
        ),
    }


def apart(ours: Views, theirs: Views) -> float:
    """Return how far the first scores of the pictures are from saying the same, 0 where they do."""
    return 1 - abs(float(np.corrcoef(ours[0][:, 0], theirs[0][:, 0])[0, 1]))


def main() -> int:
    """Measure and compare."""
    options = speed_parser(__doc__).parse_args()
    report = SpeedReport(__file__, options, threads=1)
    # Iterations that end before the tolerance.
    warnings.simplefilter("ignore")
    for name, (ours, peers, rows) in kinds().items():
        views = make_views(rows[0 if options.quick else 1])
        scores = ours(*views)
        differences = {peer: apart(scores, fit(*views)) for peer, fit in peers.items() if fit is not None}
        shown = ", ".join(f"{peer} {difference:.1e}" for peer, difference in differences.items())
        report.hold(f"{name}: first scores apart", max(differences.values(), default=0.0) < 1e-3, shown)
        report.race(
            f"{name}, {len(views[0]):,} × {WIDTHS}",
            lambda ours=ours, views=views: ours(*views),
            {peer: None if fit is None else lambda fit=fit, views=views: fit(*views) for peer, fit in peers.items()},
            REPEATS,
            bars=dict.fromkeys(peers, 1.0),
            clock=time.process_time,
        )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
