from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from diptych.cli.arguments import parse_assignments, parse_value

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(json_values)
def test_json_comes_back_as_it_was(value: object) -> None:
    assert parse_value(json.dumps(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_as_python_writes_them_are_numbers(value: float) -> None:
    assert math.isclose(parse_value(repr(value)), value)


@given(st.text("abcdefghij-_ ", min_size=1).filter(str.strip), st.integers())
def test_names_and_values_are_kept_apart(name: str, value: int) -> None:
    assert parse_assignments([f"{name}={value}"], "--param") == {name.strip(): value}


def test_a_value_may_hold_an_equals_sign() -> None:
    assert parse_assignments(["name=a=b"], "--param") == {"name": "a=b"}
