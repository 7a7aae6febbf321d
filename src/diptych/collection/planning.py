"""What a collection of so many items needs: memory, disk, an index and replicas, by constants that were measured.

``python benchmarks/planning.py`` builds collections of several sizes and compares what they take with the predictions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from diptych.collection.search.approximate_index import ROWS_PER_LIST, list_count, list_form
from diptych.collection.search.retriever_state import APPROXIMATE_FROM
from diptych.encoders.image.picture_parts import REGIONS
from diptych.errors import InvalidInputError

IndexKind = Literal["whole", "vectors", "packed", "bytes", "codes"]

# Bytes in the tables: of an item with a label and three fields, of a caption of eight words, of the key of a row.
_ITEM_ROW, _CAPTION_ROW, _KEY = 145, 80, 78
# Bytes in the search files, and of these what filters, facets and words use all the time, some of it always.
_ITEM_FILES, _CAPTION_FILES, _HOT_ALWAYS, _ITEM_HOT = 530, 310, 8e6, 54
# Of a point: the item and the caption that it belongs to, and its number in the lists of an index.
_POINT_NAMES, _LIST_NUMBER = 8, 8
# Bytes of a process: Python and its libraries, and what it holds of each item.
_LIBRARIES, _ITEM_OWN = 97e6, 40
# Bytes while search files are made: the tables that are read, the items; and then lists, which grow in steps.
_BUILD_ALWAYS, _BUILD_VECTORS, _ITEM_BUILD, _LIST_GROWTH = 400e6, 200e6, 1500, 1.5
# Of one core: the seconds of an answer and of asking the engine for the words of a short text, as most texts are, and
# how much is compared in a second.
_ANSWER, _WORDS = 1.4e-3, 13e-3
_NUMBERS_A_SECOND = {"whole": 4e9, "vectors": 2.7e9, "packed": 8e9, "bytes": 1.2e9}
_CODE_BYTES_A_SECOND = 2.2e9
# Lists are looked into until 98 of 100 neighbours are found: in this share of a million points without clusters.
_PROBED_OF_A_MILLION, _PROBED_POWER = 0.13, -0.2
# Building: products of the k-means, of the assignment of points to lists; the tables and the files, for each item.
_PRODUCTS_A_SECOND, _TRAINING_PRODUCTS = 13e9, 6400
_ITEM_SECONDS, _POINT_SECONDS = 80e-6, 15e-6
HEADROOM = 0.6
_CODES = (256, 128, 64)
_MOST_ROWS = 2**31 - 1


@dataclass(frozen=True)
class RetrieverCosts:
    """What items and searches take because of the retriever; by default the shipped one, behind the service."""

    picture_features: int = 2560  # numbers that are kept to learn from, of a picture
    caption_features: int = 896
    thumbnail: int = 5_500  # bytes of a small photograph
    networks: float = 130e6  # bytes of the networks and of the service in each process
    request_seconds: float = 15e-3  # of one core, for a request and for encoding its words


@dataclass(frozen=True)
class Plan:
    """What to provide for a collection; sizes are bytes, and those of machines hold for each of them.

    ``index`` says how points are found: compared ``whole``, in lists of ``vectors``, in ``packed`` lists (two bits a
    number, in the memory of each process) or in lists of ``bytes`` (eight bits a number), both scored again by the
    vectors on disk, or as ``codes`` of a hashing method, which are compared whole.
    ``region_index`` says the same of the points of parts of pictures, None where there are none.
    """

    items: int
    captions: float
    dims: int
    bits_per_point: int
    bits_per_number: int
    index: IndexKind
    lists: int
    region_points: int
    region_index: IndexKind | None
    region_lists: int
    own_memory: float  # of all processes of a replica
    mapped_memory: float  # files that searches use all the time, shared by the processes
    build_memory: float  # besides, while search files are made
    store: float
    features: float  # of the store; the writer and the bucket have them, replicas do not
    search_files: float
    build_core_seconds: float
    search_core_seconds: float
    cores: int
    replicas: int
    qps: float

    @property
    def memory(self) -> float:
        """Memory of a machine, replica or writer."""
        return self.own_memory + self.mapped_memory + self.build_memory

    @property
    def replica_disk(self) -> float:
        """Disk of a replica: everything twice, because what is made anew or joined stands beside what it replaces."""
        return 2 * (self.store - self.features + self.search_files)

    @property
    def writer_disk(self) -> float:
        """Disk of the writer, which has the features, too."""
        return 2 * (self.store + self.search_files)

    @property
    def bucket(self) -> float:
        """Size of the objects, without the picture files; former versions stay for an hour."""
        return 2 * self.store + self.search_files

    @property
    def qps_per_replica(self) -> float:
        """Searches a second that a replica answers with some of its time to spare."""
        return HEADROOM * self.cores / self.search_core_seconds


def plan_collection(
    items: int,
    qps: float,
    *,
    dims: int = 256,
    captions: float = 1,
    bits: int | None = None,
    memory_per_machine: float | None = None,
    cores: int = 8,
    search_seconds: float | None = None,
    retriever: RetrieverCosts | None = None,
    regions: bool = False,
) -> Plan:
    """Return what a collection needs.

    Parameters
    ----------
    items, captions
        How many items there are, each with a picture, and how many captions each has.
    qps
        Searches a second, at the busiest time.
    dims
        Numbers of a point.
    bits
        Bits of a point, for a hashing method. By default points are vectors, unless they do not fit.
    memory_per_machine
        Bytes. Where vectors need more, the longest codes that fit are planned with.
    cores
        Cores of a replica; there is a process for each, and one that writes.
    search_seconds
        What a search takes one core, if you have measured it on your own points; points in clusters take far less than
        the prediction, which is for points without any.
    retriever
        What another retriever than the shipped one takes.
    regions
        Thirteen parts of every picture have points, too (``diptych regions``), and are compared by every search.

    Examples
    --------
    >>> from diptych.collection import plan_collection
    >>> plan = plan_collection(1_000_000, qps=50)
    >>> plan.index, plan.bits_per_number, plan.lists
    ('packed', 2, 4000)
    >>> plan_collection(100_000_000, qps=500, memory_per_machine=240e9).bits_per_point
    256
    """
    _check(items, qps, dims, captions, bits, memory_per_machine, cores, search_seconds)
    if regions and bits is not None:
        raise InvalidInputError("parts of pictures have no codes; plan with bits or with regions")
    if regions and items * len(REGIONS) > _MOST_ROWS:
        raise InvalidInputError(f"{items:,} pictures have more than {_MOST_ROWS:,} parts; plan without regions")
    request = (items, qps, dims, captions, cores, search_seconds, retriever or RetrieverCosts(), regions)
    if regions or bits is not None or memory_per_machine is None:
        plan = _plan(*request, bits=bits)
        if memory_per_machine is not None and plan.memory > memory_per_machine:
            raise _too_little(plan, memory_per_machine)
        return plan
    plans = [_plan(*request, bits=one) for one in (None, *_CODES)]
    fitting = [plan for plan in plans if plan.memory <= memory_per_machine]
    if not fitting:
        raise _too_little(plans[-1], memory_per_machine)
    return fitting[0]


def _check(
    items: int,
    qps: float,
    dims: int,
    captions: float,
    bits: int | None,
    memory_per_machine: float | None,
    cores: int,
    search_seconds: float | None,
) -> None:
    for name, value in {
        "items": items,
        "qps": qps,
        "dims": dims,
        "cores": cores,
        "memory_per_machine": memory_per_machine,
        "search_seconds": search_seconds,
    }.items():
        if value is not None and not 0 < value < math.inf:
            raise InvalidInputError(f"{name} must be a number above 0, got {value:g}")
    if not 0 <= captions < math.inf:
        raise InvalidInputError(f"captions is how many each item has, 0 or more, got {captions:g}")
    if items * max(1, captions) > _MOST_ROWS:
        raise InvalidInputError(
            f"a collection holds up to {_MOST_ROWS:,} items and as many captions; divide {items:,} items with "
            f"{captions:g} captions each among several"
        )
    if bits is not None and (bits < 8 or bits % 8):
        raise InvalidInputError(f"bits are whole bytes of a code, such as 64, 128 or 256, got {bits}")


def _too_little(plan: Plan, memory: float) -> InvalidInputError:
    form = f"codes of {plan.bits_per_point} bits" if plan.index == "codes" else "vectors"
    return InvalidInputError(
        f"{plan.items:,} items as {form} need {plan.memory / 1e9:.1f} GB of memory on a machine, more than the "
        f"{memory / 1e9:.1f} GB given; take larger machines or fewer cores and processes, or divide the collection"
    )


def _plan(
    items: int,
    qps: float,
    dims: int,
    captions: float,
    cores: int,
    search_seconds: float | None,
    costs: RetrieverCosts,
    regions: bool,
    *,
    bits: int | None,
) -> Plan:
    pictures, parts = _Side(items, dims, bits), _Side(len(REGIONS) * items if regions else 0, dims, bits)
    kept = [side for side in (pictures, _Side(round(items * captions), dims, bits)) if side.count]
    sides = [*kept, parts] if regions else kept
    compared = _ANSWER + _WORDS + pictures.compare_seconds + parts.compare_seconds
    core_seconds = costs.request_seconds + (compared if search_seconds is None else search_seconds)
    features = items * (_kept(4 * costs.picture_features) + captions * _kept(4 * costs.caption_features))
    rows = items * (_ITEM_ROW + captions * _CAPTION_ROW + _kept(costs.thumbnail))
    # The files of the items come first, then the lists of one side, then those of the other.
    build = max(items * _ITEM_BUILD, *(_LIST_GROWTH * side.list_bytes + side.training_bytes for side in sides))
    return Plan(
        items=items,
        captions=captions,
        dims=dims,
        bits_per_point=bits or 32 * dims,
        bits_per_number={"codes": 1, "packed": 2, "bytes": 8}.get(pictures.kind, 32),
        index=pictures.kind,
        lists=pictures.lists,
        region_points=parts.count,
        region_index=parts.kind if regions else None,
        region_lists=parts.lists,
        own_memory=(cores + (cores > 1))
        * (_LIBRARIES + costs.networks + items * _ITEM_OWN + sum(side.own_bytes for side in sides)),
        mapped_memory=_HOT_ALWAYS + items * _ITEM_HOT + sum(side.hot_bytes for side in sides),
        build_memory=_BUILD_ALWAYS + (0 if bits else _BUILD_VECTORS) + build,
        # The points of all parts of a picture are one row.
        store=rows
        + features
        + sum(side.count * _kept(side.point_bytes) for side in kept)
        + (items * _kept(len(REGIONS) * parts.point_bytes) if regions else 0),
        features=features,
        search_files=items * (_ITEM_FILES + captions * _CAPTION_FILES) + sum(side.file_bytes for side in sides),
        build_core_seconds=items * _ITEM_SECONDS + sum(side.build_seconds for side in sides),
        search_core_seconds=core_seconds,
        cores=cores,
        replicas=math.ceil(qps * core_seconds / (HEADROOM * cores)),
        qps=qps,
    )


def _kept(content: float) -> float:
    """Return the bytes of a row with a key; what has no content has no row."""
    return content + _KEY if content else 0


@dataclass(frozen=True)
class _Side:
    """The points of pictures, those of captions, or those of parts of pictures."""

    count: int
    dims: int
    bits: int | None

    @property
    def kind(self) -> IndexKind:
        if self.bits is not None:
            return "codes"
        if self.count < APPROXIMATE_FROM:
            return "whole"
        return list_form((self.count, self.dims))

    @property
    def lists(self) -> int:
        return 0 if self.kind in ("whole", "codes") else list_count(self.count)

    @property
    def point_bytes(self) -> float:
        return 4 * self.dims if self.bits is None else self.bits / 8

    @property
    def list_bytes(self) -> float:
        if not self.lists:
            return 0
        in_list = {"vectors": self.point_bytes, "packed": self.dims / 4}.get(self.kind, self.dims)
        # Packed points lie together by 32, and the last of a list have empty places beside them.
        empty = 16 * self.lists * in_list if self.kind == "packed" else 0
        return self.count * (in_list + _LIST_NUMBER) + empty + 4 * self.dims * self.lists

    @property
    def training_bytes(self) -> float:
        return self.lists * ROWS_PER_LIST * self.point_bytes

    @property
    def file_bytes(self) -> float:
        return self.count * (self.point_bytes + _POINT_NAMES) + self.list_bytes

    @property
    def own_bytes(self) -> float:
        """Lists that each process has in its own memory."""
        return self.list_bytes if self.kind == "packed" else 0

    @property
    def hot_bytes(self) -> float:
        """The other lists, or where there are none the points themselves; the vectors of answers come from the disk."""
        return (self.list_bytes or self.count * self.point_bytes) - self.own_bytes

    @property
    def compare_seconds(self) -> float:
        if self.kind == "codes":
            return self.count * self.point_bytes / _CODE_BYTES_A_SECOND
        if not self.lists:
            return self.dims * self.count / _NUMBERS_A_SECOND[self.kind]
        share: float = min(1.0, _PROBED_OF_A_MILLION * (self.count / 1e6) ** _PROBED_POWER)
        return self.dims * (share * self.count + self.lists) / _NUMBERS_A_SECOND[self.kind]

    @property
    def build_seconds(self) -> float:
        products = self.count * self.dims * (_TRAINING_PRODUCTS + self.lists) if self.lists else 0
        return self.count * _POINT_SECONDS + products / _PRODUCTS_A_SECOND
