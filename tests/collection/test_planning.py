from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from diptych.collection import Collection, RetrieverCosts, plan_collection
from diptych.collection.planning import Plan, _Side
from diptych.collection.search.approximate_index import ApproximateIndex
from diptych.errors import InvalidInputError
from filled_collection import PointRetriever, fill
from tests.collection.colour_retriever import ColourRetriever


@pytest.mark.parametrize(
    ("items", "dims", "bits", "index", "bits_per_number"),
    [
        (99_999, 256, None, "whole", 32),
        (100_000, 256, None, "vectors", 32),
        (2**28 // 1024, 256, None, "vectors", 32),
        (2**28 // 1024 + 1, 256, None, "packed", 2),
        (2**28 // 1020 + 1, 255, None, "bytes", 8),
        (2**31 // 1024, 256, None, "packed", 2),
        (2**31 // 1024 + 1, 256, None, "bytes", 8),
        (1_000_000, 256, 128, "codes", 1),
    ],
)
def test_the_index_is_the_one_that_a_collection_chooses(
    items: int, dims: int, bits: int | None, index: str, bits_per_number: int
) -> None:
    plan = plan_collection(items, 1, dims=dims, bits=bits)
    assert (plan.index, plan.bits_per_number) == (index, bits_per_number)


@pytest.mark.parametrize(("largest", "form"), [(1 << 28, "vectors"), (0, "packed")])
def test_lists_are_as_many_and_as_large_as_those_of_a_real_index(
    largest: int, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.collection.search.approximate_index.LARGEST_FLAT", largest)
    rng = np.random.default_rng(0)
    # Points of networks fill fewer dimensions than they have.
    points = rng.standard_normal((100_000, 4), dtype=np.float32) @ rng.standard_normal((4, 32), dtype=np.float32)
    built = ApproximateIndex.build(points, "l2")
    built.write(tmp_path)
    plan, without = (plan_collection(count, 1, dims=32, captions=0) for count in (100_000, 99_999))
    assert (plan.index, plan.lists) == (form, built.engine.nlist)
    in_lists = plan.search_files - without.search_files
    assert (tmp_path / "lists.faiss").stat().st_size == pytest.approx(in_lists, rel=0.05)


def test_a_real_collection_takes_as_much_disk_as_was_planned(tmp_path: Path) -> None:
    folder, items = tmp_path / "collection", 3000
    fill(folder, items, PointRetriever(128, is_codes=True), caption_points=True)
    plan = plan_collection(items, 1, bits=128, retriever=RetrieverCosts(0, 0, 0))
    took = sum(path.stat().st_size for path in (folder / "index").rglob("*") if path.is_file())
    assert 1 / 1.3 < plan.search_files / took < 1.3


def test_parts_of_pictures_are_as_many_as_a_collection_has(tmp_path: Path) -> None:
    for number in range(3):
        Image.new("RGB", (64, 64), (80 * number, 10, 10)).save(tmp_path / f"{number}.png")
    with Collection.create(tmp_path / ".diptych", ColourRetriever(), load_retriever=ColourRetriever.load) as made:
        made.add(tmp_path)
        before = made.status().memory_bytes
        made.add_regions()
        points = plan_collection(3, 1, regions=True).region_points
        assert made.status().memory_bytes == before + points * before // 3


def test_parts_of_pictures_cost_disk_memory_and_time() -> None:
    with_parts, without = (plan_collection(1_000_000, 50, regions=regions) for regions in (True, False))
    assert (with_parts.index, with_parts.region_index, without.region_index) == ("packed", "bytes", None)
    points = 13 * 4 * 256 * 1_000_000
    assert points <= with_parts.store - without.store <= 1.01 * points
    assert with_parts.search_files - without.search_files > points
    assert with_parts.features == without.features
    assert with_parts.memory > without.memory
    assert with_parts.replicas > without.replicas
    few = plan_collection(7_000, 1, regions=True), plan_collection(8_000, 1, regions=True)
    assert [plan.region_index for plan in few] == ["whole", "vectors"]
    assert few[0].index == few[1].index == "whole"


def _kinds(plan: Plan) -> list[str]:
    return [_Side(count, plan.dims, None).kind for count in (plan.items, round(plan.items * plan.captions))]


@given(
    items=st.integers(1, 10**8),
    qps=st.floats(0.1, 1e4),
    dims=st.integers(1, 4096),
    captions=st.sampled_from([0, 0.5, 1, 5]),
    cores=st.integers(1, 128),
)
@example(items=20_000, qps=1.0, dims=560, captions=5, cores=1)
def test_more_of_anything_never_needs_less(items: int, qps: float, dims: int, captions: float, cores: int) -> None:
    plan = plan_collection(items, qps, dims=dims, captions=captions, cores=cores)
    assert plan.replicas >= 1
    assert plan.replicas * plan.qps_per_replica >= qps * (1 - 1e-9)
    assert plan.replica_disk <= plan.writer_disk
    for more in (
        plan_collection(2 * items, qps, dims=dims, captions=captions, cores=cores),
        plan_collection(items, qps, dims=dims, captions=captions + 1, cores=cores),
    ):
        assert more.store > plan.store
        # Numbers in lists take a byte instead of four from a size on.
        assert more.search_files > plan.search_files or _kinds(more) != _kinds(plan)
        assert more.replicas >= plan.replicas or _kinds(more) != _kinds(plan)
    assert plan_collection(items, 2 * qps, dims=dims, captions=captions, cores=cores).replicas >= plan.replicas
    assert plan_collection(items, qps, dims=dims, captions=captions, cores=cores, bits=8).memory <= plan.memory


def test_where_vectors_do_not_fit_the_longest_codes_that_do_are_planned() -> None:
    free = plan_collection(10**8, 500)
    assert plan_collection(10**8, 500, memory_per_machine=free.memory) == free
    for bits in (256, 128, 64):
        coded = plan_collection(10**8, 500, bits=bits)
        assert plan_collection(10**8, 500, memory_per_machine=coded.memory) == coded
    with pytest.raises(InvalidInputError, match="as codes of 64 bits need"):
        plan_collection(10**8, 500, memory_per_machine=coded.memory - 1)
    with pytest.raises(InvalidInputError, match="as codes of 128 bits need"):
        plan_collection(10**8, 500, bits=128, memory_per_machine=coded.memory)


def test_a_search_that_was_measured_replaces_the_prediction() -> None:
    plan = plan_collection(10**6, 1000, search_seconds=0.005, retriever=RetrieverCosts(request_seconds=0.005))
    assert plan.search_core_seconds == 0.01
    assert (plan.qps_per_replica, plan.replicas) == (pytest.approx(480), 3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"items": 0},
        {"items": 3 * 10**9},
        {"items": 10**9, "captions": 5},
        {"qps": 0},
        {"qps": float("nan")},
        {"dims": -1},
        {"captions": -1},
        {"captions": float("inf")},
        {"bits": 12},
        {"cores": 0},
        {"memory_per_machine": -1},
        {"search_seconds": 0},
        {"regions": True, "bits": 128},
        {"regions": True, "items": 10**9},
    ],
    ids=str,
)
def test_impossible_values_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        plan_collection(**{"items": 1000, "qps": 1, **wrong})  # type: ignore[arg-type]
