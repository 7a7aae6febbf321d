"""Who is trained, asked and searched."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from diptych.protocols.folds import (
        ClassFold,
        Extendable,
        Fold,
        RandomDraws,
        RetrievalProtocol,
        SeenClasses,
        StandardSplit,
        Training,
        UnseenClasses,
    )
    from diptych.protocols.retrieval import (
        EncodedRetrieval,
        Gallery,
        QueryGroups,
        Relevant,
        Retrieval,
        TwoWayEvaluation,
        evaluate_model,
        evaluate_retrieval,
        with_noise,
    )
    from diptych.protocols.tuning import (
        ClassHoldOut,
        ClassQueryHoldOut,
        HoldOut,
        HoldOuts,
        QueryHoldOut,
        Trial,
        Tuning,
        class_list,
        tune,
    )
else:
    # Few who evaluate a model also tune one.
    __getattr__ = lazy_exports(
        __name__,
        {
            "diptych.protocols.folds": (
                "ClassFold Extendable Fold RandomDraws RetrievalProtocol SeenClasses StandardSplit Training "
                "UnseenClasses"
            ),
            "diptych.protocols.retrieval": (
                "EncodedRetrieval Gallery QueryGroups Relevant Retrieval TwoWayEvaluation evaluate_model "
                "evaluate_retrieval with_noise"
            ),
            "diptych.protocols.tuning": (
                "ClassHoldOut ClassQueryHoldOut HoldOut HoldOuts QueryHoldOut Trial Tuning class_list tune"
            ),
        },
    )

__all__ = [
    "ClassFold",
    "ClassHoldOut",
    "ClassQueryHoldOut",
    "EncodedRetrieval",
    "Extendable",
    "Fold",
    "Gallery",
    "HoldOut",
    "HoldOuts",
    "QueryGroups",
    "QueryHoldOut",
    "RandomDraws",
    "Relevant",
    "Retrieval",
    "RetrievalProtocol",
    "SeenClasses",
    "StandardSplit",
    "Training",
    "Trial",
    "Tuning",
    "TwoWayEvaluation",
    "UnseenClasses",
    "class_list",
    "evaluate_model",
    "evaluate_retrieval",
    "tune",
    "with_noise",
]
