"""Methods register themselves, and the lists of public names follow."""

from __future__ import annotations

import importlib

import pytest

from diptych import models
from diptych.errors import UnknownNameError
from diptych.models import CCA, ConSE, FusedModel, MarginalSM, Preprocessed, SharedSpace, find_model, model_classes
from diptych.models.base import REGISTRY


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_method_is_exported_by_its_group_and_by_the_package(name):
    cls = REGISTRY[name]
    group = importlib.import_module(".".join(cls.__module__.split(".")[:3]))
    assert getattr(group, name) is cls
    assert getattr(models, name) is cls
    assert name in models.__all__
    assert name in getattr(group, "__all__", [name])


def test_every_public_name_is_there():
    assert [name for name in models.__all__ if not hasattr(models, name)] == []
    assert models.__all__ == sorted(set(models.__all__))


def test_methods_are_listed_once_and_wrappers_are_not_methods():
    listed = [cls for inputs in ("features", "items", "clicks") for cls in model_classes(inputs).values()]
    assert sorted(cls.__name__ for cls in listed) == sorted(REGISTRY)
    assert not {FusedModel, Preprocessed, SharedSpace} & set(listed)


def test_classes_from_elsewhere_are_not_registered_and_keep_their_own_title():
    class Derived(CCA):
        """What a plugin may define."""

        when_to_use = "Never."

    assert "Derived" not in REGISTRY
    assert (Derived.title, Derived.variants) == ("Derived", {})
    assert Derived.grid == CCA.grid


def test_grids_and_variants_name_parameters_that_the_methods_have():
    for cls in model_classes().values():
        for title, parameters in (cls.variants or {cls.title: {}}).items():
            known = cls().set_params(**parameters).get_params()
            assert title
            assert set(cls.grid) <= set(known), cls
    assert not ConSE.benchmarked


def test_methods_are_found_whatever_the_spelling():
    assert find_model("marginal-sm") is find_model("MarginalSM") is find_model("marginal_sm") is MarginalSM
    assert set(model_classes()) >= {
        "bipartite-cross-product",
        "cca",
        "cca-3v",
        "cfa",
        "conse",
        "contrastive-projection",
        "kcca",
        "linear-regression",
        "marginal-scm",
        "marginal-sm",
        "ml-cca",
        "random",
        "scm",
        "sm",
    }
    with pytest.raises(UnknownNameError, match="did you mean 'kcca'"):
        find_model("kkca")
