"""The methods that are compared, in the paper's order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from diptych.benchmark.web.click_scorer import ClickScorer
from diptych.benchmark.web.conse_scorer import ConseScorer
from diptych.benchmark.web.retriever_scorer import RetrieverScorer
from diptych.benchmark.web.web_scorer import WebScorer
from diptych.models import PSI, DeViSE, Image2Text, OnlineClassification, QueryBasedScoring, Text2Image

# Pairs with two clicks and more, as the authors' released code takes them; few passes, since the log is small.
_TRAINING: dict[str, Any] = {"min_clicks": 2.0, "epochs": 6}


@dataclass(frozen=True)
class WebMethod:
    """A method, the name Dong et al. (2018) print for it, and whether it is a part of the fusions.

    >>> from diptych.benchmark.web import web_methods
    >>> [method.name for method in web_methods().values() if method.is_fused]
    ['image2text', 'text2image', 'psi', 'devise']
    """

    name: str
    title: str
    scorer: Callable[[], WebScorer]
    is_fused: bool = True


def web_methods() -> dict[str, WebMethod]:
    """Return every method of the comparison by its name.

    Fusions are of the paper's methods that learn from the log: without ConSE they do better on the development part.
    """
    methods = (
        WebMethod("image2text", "image2text", lambda: ClickScorer(Image2Text())),
        WebMethod("text2image", "text2image", lambda: ClickScorer(Text2Image())),
        WebMethod("query-based-scoring", "query-based scoring", lambda: ClickScorer(QueryBasedScoring()), False),
        WebMethod("online-classification", "online classification", lambda: ClickScorer(OnlineClassification()), False),
        WebMethod("psi", "PSI", lambda: ClickScorer(PSI(**_TRAINING))),
        WebMethod("devise", "DeViSE", lambda: ClickScorer(DeViSE(**_TRAINING))),
        WebMethod("conse", "ConSE", ConseScorer, False),
        WebMethod("retriever", "our retriever (captions)", RetrieverScorer, False),
    )
    return {method.name: method for method in methods}
