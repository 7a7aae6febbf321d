"""Results stay valid as long as what they were measured under is declared as it was."""

from __future__ import annotations

import json
from pathlib import Path

from diptych.benchmark import declared_tasks

_DECLARED = json.loads(Path(__file__).with_name("declarations.json").read_text(encoding="utf-8"))


def test_every_declaration_has_the_fingerprint_that_committed_results_carry() -> None:
    found = {
        task.name: {method.name: task.fingerprint(method)[:12] for method in task.methods} for task in declared_tasks()
    }
    changed = {
        (task, key): found.get(task, {}).get(key)
        for task, methods in _DECLARED["fingerprints"].items()
        for key, fingerprint in methods.items()
        if found.get(task, {}).get(key) != fingerprint
    }
    assert not changed


def test_methods_keep_their_titles_groups_and_code_lengths() -> None:
    found = {
        method.name: [method.title, method.group, method.n_bits]
        for task in declared_tasks()
        if task.name in _DECLARED["fingerprints"]
        for method in task.methods
    }
    assert {key: found.get(key) for key in _DECLARED["methods"]} == _DECLARED["methods"]
