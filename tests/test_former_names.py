from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from diptych.encoders import SiftWords
from diptych.estimators import FORMERLY_SEED, FormerNames, current_name, former_parameters
from diptych.models import CVH, GMMFA, KCCA, SCM, CoordinateAscent, Preprocessed, Random, load_model
from diptych.models.base import REGISTRY
from diptych.models.files import model_digest
from diptych.models.registry import build_model

WARNING = "'seed' is called 'random_state' now"


@pytest.mark.parametrize("cls", [CVH, CoordinateAscent, KCCA, Random, SiftWords])
def test_the_former_keyword_parameter_and_attribute_work_with_a_warning(cls):
    with pytest.warns(FutureWarning, match=WARNING) as caught:
        model = cls(seed=7)
    # The warning points at the line that uses the name.
    assert caught[0].filename == __file__
    assert model.random_state == 7
    with warnings.catch_warnings(record=True, action="always") as caught:
        assert model.seed == 7
        model.set_params(seed=8)
        model.seed += 1
    assert all(WARNING in str(warning.message) for warning in caught)
    assert [warning.filename for warning in caught] == [__file__] * 4
    assert model.random_state == 9
    assert "seed" not in model.get_params()
    assert clone(model).random_state == 9


def test_nested_parameters_go_by_their_former_name_too():
    model = Preprocessed(model=SCM(correlation=KCCA()))
    with pytest.warns(FutureWarning, match=f"KCCA: {WARNING}"):
        model.set_params(model__correlation__seed=3)
    assert model.model.correlation.random_state == 3
    assert current_name(model, "model__correlation__seed") == "model__correlation__random_state"
    assert former_parameters(model)["model__correlation__seed"] == 3


def test_both_names_at_once_are_one_too_many():
    with pytest.warns(FutureWarning), pytest.raises(TypeError, match="random_state twice"):
        CVH(seed=1, random_state=2)


def test_names_that_were_never_others_stay():
    assert not hasattr(GMMFA(), "seed")
    assert former_parameters(GMMFA())["random_state"] == 0
    with pytest.raises(TypeError, match="seed"):
        GMMFA(seed=1)


def test_every_method_that_draws_says_random_state():
    for cls in REGISTRY.values():
        assert "seed" not in cls().get_params(), cls
        if "random_state" in cls().get_params() and cls is not GMMFA:
            assert cls.former_names == FORMERLY_SEED, cls


def test_a_class_derived_elsewhere_may_keep_its_own_constructor():
    class Derived(CVH):
        def __init__(self, *, n_bits: int = 8, seed: int = 5) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                super().__init__(n_bits=n_bits, seed=seed)

    assert Derived().random_state == 5
    assert issubclass(Derived, FormerNames)


def test_files_and_digests_keep_the_former_name(tmp_path):
    rng = np.random.default_rng(0)
    model = CVH(n_bits=4, random_state=3).fit(rng.normal(size=(20, 5)), rng.normal(size=(20, 4)))
    model.save(tmp_path / "model")
    assert '"seed": 3' in (tmp_path / "model" / "model.json").read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = load_model(tmp_path / "model")
    assert again.random_state == 3
    assert model_digest(again) == model_digest(model)
    assert "seed=0" in SiftWords().identity


def test_the_command_line_takes_both_names():
    assert build_model("cvh", {"seed": 3}).random_state == 3
    assert build_model("cvh", {"random_state": 3}).random_state == 3
    assert build_model("scm", {"correlation": "kcca", "correlation__seed": 3}).correlation.random_state == 3
    assert build_model("cvh", {}, seed=4).random_state == 4
