from __future__ import annotations

import pytest

from diptych.benchmark.results import Record
from tests.benchmark.made_up_records import FOLDS, METHODS, make_record


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return [
        make_record(method, setting, fold)
        for method in METHODS
        for setting in ("seen", "unseen")
        for fold in range(FOLDS)
    ]
