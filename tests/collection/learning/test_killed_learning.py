"""What ``reliability/killed_learning.py`` does many times, once for each way to change what searches use."""

from __future__ import annotations

from pathlib import Path

import pytest

from killed_learning import run_trials


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux tells processor times")
def test_a_killed_process_that_learns_leaves_the_former_retriever_or_the_new_one() -> None:
    counts, wrong = run_trials(2, seed=5, kinds=("train", "rollback"), n_scenes=30)
    assert wrong == []
    assert counts["recovered"] == 2
