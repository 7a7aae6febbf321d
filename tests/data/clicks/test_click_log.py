from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.data.clicks import ClickLog
from diptych.data.clicks.click_log import as_strings
from diptych.errors import InvalidInputError, UnknownNameError

triads = st.lists(
    st.tuples(st.sampled_from("abcdé "), st.sampled_from("123456"), st.integers(1, 5), st.integers(0, 9)),
    min_size=1,
    max_size=25,
)


def log_of(rows: list[tuple[str, str, int, int]]) -> ClickLog:
    queries, images, clicks, times = zip(*rows, strict=True)
    return ClickLog.from_triads(queries, images, clicks, times)


def rows_of(log: ClickLog) -> list[tuple[str, str, float, float]]:
    times = [] if log.times is None else [log.times.tolist()]
    queries = [log.queries[row] for row in log.query_ids]
    images = [log.images[row] for row in log.image_ids]
    return list(zip(queries, images, log.clicks.tolist(), *times, strict=True))


@given(triads)
def test_columns_hold_the_triads(rows: list[tuple[str, str, int, int]]) -> None:
    log = log_of(rows)
    assert rows_of(log) == rows
    assert list(log.queries) == list(dict.fromkeys(query for query, *_ in rows))
    assert list(log.images) == list(dict.fromkeys(image for _, image, *_ in rows))
    assert (log.query_ids.dtype, log.image_ids.dtype, log.clicks.dtype) == (np.int32, np.int32, np.float32)


@given(triads)
def test_merging_adds_clicks_and_keeps_the_latest_time(rows: list[tuple[str, str, int, int]]) -> None:
    expected: dict[tuple[str, str], list[int]] = {}
    for query, image, clicks, time in rows:
        known = expected.setdefault((query, image), [0, 0])
        known[0] += clicks
        known[1] = max(known[1], time)
    merged = log_of(rows).merged()
    assert rows_of(merged) == [(*pair, *values) for pair, values in expected.items()]
    assert rows_of(merged.merged()) == rows_of(merged)


@given(triads, st.data())
def test_a_selection_is_the_log_of_the_selected(rows: list[tuple[str, str, int, int]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=12))
    selected = log_of(rows).select(chosen)
    assert rows_of(selected) == [rows[row] for row in chosen]
    assert list(selected.queries) == list(dict.fromkeys(rows[row][0] for row in chosen))
    assert list(selected.images) == list(dict.fromkeys(rows[row][1] for row in chosen))


@given(triads, st.integers(1, 5))
def test_a_threshold_keeps_what_reaches_it(rows: list[tuple[str, str, int, int]], least: int) -> None:
    assert rows_of(log_of(rows).at_least(least)) == [row for row in rows if row[2] >= least]


@given(triads)
def test_groups_cover_every_triad_once(rows: list[tuple[str, str, int, int]]) -> None:
    log = log_of(rows)
    for grouping, ids, names in (
        (log.by_query(), log.query_ids, log.queries),
        (log.by_image(), log.image_ids, log.images),
    ):
        assert len(grouping) == len(names)
        assert [group.tolist() for group in grouping] == [np.flatnonzero(ids == n).tolist() for n in range(len(names))]


@settings(max_examples=30)
@given(triads.filter(lambda rows: len({row[0] for row in rows}) > 2), st.integers(0, 3))
def test_a_held_out_query_takes_all_its_triads_along(rows: list[tuple[str, str, int, int]], seed: int) -> None:
    log = log_of(rows)
    train, held_out = log.split(0.4, seed=seed)
    assert set(train.queries).isdisjoint(held_out.queries)
    assert len(held_out.queries) == max(1, round(0.4 * len(log.queries)))
    assert sorted(rows_of(train) + rows_of(held_out)) == sorted(rows)
    assert rows_of(log.split(0.4, seed=seed)[1]) == rows_of(held_out)


@given(triads, st.floats(0.1, 0.9))
def test_the_latest_are_held_out(rows: list[tuple[str, str, int, int]], share: float) -> None:
    train, held_out = log_of(rows).split(share, by="time")
    assert held_out.n_triads == max(1, round(share * len(rows)))
    assert train.times is not None
    assert held_out.times is not None
    assert train.times.max(initial=-1) <= held_out.times.min(initial=10)
    early, late = log_of(rows).split(before=5)
    assert {row[3] < 5 for row in rows_of(early)} <= {True}
    assert {row[3] < 5 for row in rows_of(late)} <= {False}


def test_what_a_log_cannot_hold() -> None:
    def log(clicks: list[float], times: list[float] | None = None) -> ClickLog:
        return ClickLog.from_triads(["a", "b"], ["1", "2"], clicks, times)

    with pytest.raises(InvalidInputError, match=r"above 0, got 0\.0 in row 1"):
        log([1, 0])
    with pytest.raises(InvalidInputError, match="above 0, got nan in row 0"):
        log([np.nan, 0])
    with pytest.raises(InvalidInputError, match="equally long, got 2, 2, 1 rows"):
        log([1])
    with pytest.raises(InvalidInputError, match="without gaps"):
        log([1, 1], [0, np.nan])
    with pytest.raises(InvalidInputError, match="no times; split it by query"):
        log([1, 1]).split(0.5, by="time")
    with pytest.raises(InvalidInputError, match="above 0 and below 1"):
        log([1, 1]).split(1.5)
    with pytest.raises(UnknownNameError, match="query, time"):
        log([1, 1]).split(0.5, by="image")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"rows 0\.\.1, got 0\.\.2"):
        ClickLog(as_strings("ab"), as_strings("c"), np.array([0, 2]), np.array([0, 0]), [1, 1])


def test_rows_of_images_that_are_stored_elsewhere() -> None:
    log = ClickLog.from_triads(["a", "b"], ["2", "9"], [1, 1])
    assert log.image_rows({"9": 4, "2": 7}).tolist() == [7, 4]
    with pytest.raises(
        InvalidInputError, match="1 images of the click log are not among the given ids, the first is '9'"
    ):
        log.image_rows(["1", "2"])


def test_columns_cannot_be_written_to() -> None:
    log = ClickLog.from_triads(["a"], ["1"], [1])
    for column in (log.query_ids, log.image_ids, log.clicks, log.queries):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 5


@pytest.mark.parametrize(
    ("column", "given", "told"),
    [
        ("queries", ["cat", None], "queries must be strings, got None in row 1"),
        ("queries", "ab", "got one string; pass it in a list"),
        ("clicks", [1, "many"], "clicks must be one column of numbers: .*many"),
        ("times", ["then", 3], "times must be one column of numbers: .*then"),
    ],
)
def test_a_column_of_something_else_is_named(column: str, given: object, told: str) -> None:
    columns = {"queries": ["cat", "dog"], "images": ["1", "2"], "clicks": [1, 2], "times": [1, 2]}
    with pytest.raises(InvalidInputError, match=told):
        ClickLog.from_triads(**{**columns, column: given})


def test_whole_numbers_name_images() -> None:
    log = ClickLog.from_triads(["cat", "dog"], np.array([7, 5]), [1, 2])
    assert list(log.images) == ["7", "5"]
