"""Packed hash codes in memory, kept in a file, and searched: exactly, or by inverted lists tuned to a recall."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diptych.arrays import AnyArray, BoolArray, IntArray
from diptych.atomic_files import atomic_write
from diptych.codes.distances import as_allowed_mask, as_codes
from diptych.codes.nearest import DistancesAndPositions, codes_within, faiss_package, nearest_codes
from diptych.errors import InvalidInputError, MissingDataError, ModelFileError

# Recall is measured for so many neighbours, with so many queries; as many others set how many lists are looked into.
NEIGHBOURS = 10
SAMPLE_QUERIES = 256
TRAINING_ROWS_PER_LIST = 40
TRAINING_ROUNDS = 5
MAX_LISTS = 1 << 12
# A filter that leaves a smaller share of the codes is answered exactly.
MIN_SHARE = 0.5
FORMAT = "diptych-codes"
VERSION = "1"


class ApproximateCodes:
    """An inverted-file index over a fixed set of codes, split among about √n lists by the nearest of central codes.

    A query looks into the nearest lists only. How many is not guessed: sample queries are answered exactly as well, and
    lists are added until ``target`` of the ten nearest are found. ``recall`` is what was then measured with *other*
    sample queries: the share of answers that are as near as the true tenth. Inverted lists took the least time for the
    same recall; multi-index hashing (Norouzi et al., CVPR 2012) took several times as long on a million 64-bit codes.
    """

    def __init__(self, engine: Any, recall: float) -> None:
        self.engine = engine
        self.recall = recall

    def __len__(self) -> int:
        return int(self.engine.ntotal)

    @property
    def probes(self) -> int:
        """How many lists a search looks into."""
        return int(self.engine.nprobe)

    @property
    def memory(self) -> int:
        """Bytes of the lists: every code once more, and its position."""
        return len(self) * (int(self.engine.code_size) + np.dtype(np.int64).itemsize)

    @classmethod
    def build(
        cls,
        codes: NDArray[np.uint8],
        queries: NDArray[np.uint8] | None = None,
        *,
        target: float = 0.98,
    ) -> ApproximateCodes:
        """Index the rows; ``queries`` are examples of what will be asked, by default some of the rows."""
        if not 0 < target <= 1:
            raise InvalidInputError(f"the recall to reach lies in (0, 1], got {target}")
        if not len(codes):
            raise InvalidInputError("there are no codes to index; add some first")
        rng = np.random.default_rng(0)
        index = cls(_filled_lists(codes, rng), 0.0)
        own = queries is None or not len(queries)
        asked = codes if own else np.asarray(queries)
        asked = asked[rng.permutation(len(asked))[: 2 * SAMPLE_QUERIES]]
        # A row finds itself at once, so the first answer of a row proves nothing.
        first = 1 if own and len(codes) > 1 else 0
        exact = nearest_codes(asked, codes, NEIGHBOURS + first)[0]
        while index._measured_recall(asked[::2], exact[::2], first) < target and index.probes < index.engine.nlist:
            index.engine.nprobe = min(index.engine.nlist, 2 * index.probes)
        others = slice(1, None, 2) if len(asked) > 1 else slice(None)
        index.recall = index._measured_recall(asked[others], exact[others], first)
        return index

    def search(self, queries: NDArray[np.uint8], k: int) -> DistancesAndPositions:
        """Return distances and positions of the ``k`` nearest found; position −1 where there are fewer."""
        distances, positions = self.engine.search(queries, k)
        order = np.lexsort((positions, distances), axis=1)
        return np.take_along_axis(distances, order, axis=1), np.take_along_axis(positions, order, axis=1)

    def _measured_recall(self, queries: NDArray[np.uint8], exact: NDArray[np.int32], first: int) -> float:
        """Return the share of answers, from ``first`` on, that are as near as the farthest of the exact ones."""
        distances, positions = self.search(queries, exact.shape[1])
        hits = (positions >= 0) & (distances <= exact[:, -1:])
        return float(hits[:, first:].mean())


def _filled_lists(codes: NDArray[np.uint8], rng: np.random.Generator) -> Any:
    """Train and fill the inverted lists of faiss."""
    faiss = faiss_package()
    number = max(1, min(int(len(codes) ** 0.5), len(codes) // TRAINING_ROWS_PER_LIST, MAX_LISTS))
    bits = 8 * codes.shape[1]
    engine = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(bits), bits, number)
    engine.cp.niter = TRAINING_ROUNDS
    engine.train(codes[np.sort(rng.permutation(len(codes))[: TRAINING_ROWS_PER_LIST * number])])
    engine.add(codes)
    return engine


def write_hash_codes(
    path: str | PathLike[str], codes: NDArray[np.uint8], n_bits: int, removed: BoolArray | None = None
) -> None:
    """Write packed codes through a sibling file and a rename, so that a crash leaves no half file."""
    from safetensors.numpy import save_file

    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, AnyArray] = {"codes": np.ascontiguousarray(codes)}
    if removed is not None:
        arrays["removed"] = removed
    with atomic_write(target) as draft:
        save_file(arrays, draft, metadata={"format": FORMAT, "version": VERSION, "n_bits": str(n_bits)})


def read_hash_codes(path: str | PathLike[str]) -> tuple[NDArray[np.uint8], int, BoolArray | None]:
    """Return codes, their number of bits and the marks of removed ones."""
    from safetensors import SafetensorError, safe_open

    source = Path(path)
    if not source.is_file():
        raise MissingDataError(f"there is no file of codes at {source}; CodeIndex.save writes one")
    try:
        with safe_open(source, framework="numpy") as file:
            header = file.metadata() or {}
            names = file.keys()
            arrays = {name: file.get_tensor(name) for name in names}
    except SafetensorError as problem:
        raise ModelFileError(f"{source} is not a whole safetensors file ({problem}); save the codes again") from None
    if header.get("format") != FORMAT:
        raise ModelFileError(f"{source} holds no codes of Diptych; CodeIndex.save writes such files")
    if header.get("version") != VERSION:
        raise ModelFileError(
            f"{source} is of version {header.get('version')}, this Diptych reads version {VERSION}; upgrade Diptych"
        )
    return _checked(source, header.get("n_bits", ""), arrays)


def _checked(source: Path, bits: str, arrays: dict[str, AnyArray]) -> tuple[NDArray[np.uint8], int, BoolArray | None]:
    codes, removed = arrays.get("codes"), arrays.get("removed")
    n_bits = int(bits) if bits.isdecimal() else 0
    whole = codes is not None and codes.dtype == np.uint8 and codes.ndim == 2
    if codes is None or not whole or not n_bits or codes.shape[1] != -(-n_bits // 8):
        raise ModelFileError(f"{source} does not hold packed codes of {bits or 'unknown'} bits; save them again")
    if removed is not None and (removed.dtype != bool or removed.shape != (len(codes),)):
        raise ModelFileError(f"{source} marks removed codes for another number of codes; save them again")
    return codes, n_bits, None if removed is None else removed.astype(bool, copy=False)


class CodeIndex:
    """Codes of ``n_bits`` bits, kept packed in memory and searched by Hamming distance.

    A code occupies ⌈n_bits / 8⌉ bytes and nothing else, so ten million 64-bit codes fit in 80 MB. Search is exact,
    with equal distances in order of position, until ``speed_up`` builds inverted lists; from then on it is approximate
    with the recall that ``recall`` states. Positions count from 0 in the order of ``add`` and stay as they are when
    codes are removed, until ``compact``.

    ``capacity`` reserves room for that many codes, so that adding in portions never copies what is there.

    >>> import numpy as np
    >>> from diptych.codes import CodeIndex, pack_signs
    >>> index = CodeIndex(n_bits=3)
    >>> index.add(pack_signs(np.array([[1, 1, 1], [1, 1, -1], [-1, -1, -1]])))
    >>> distances, positions = index.search(pack_signs(np.array([[1, 1, 1]])), 2)
    >>> distances, positions
    (array([[0, 1]], dtype=int32), array([[0, 1]]))
    >>> index.remove([0])
    >>> index.search(pack_signs(np.array([[1, 1, 1]])), 1)[1]
    array([[1]])
    """

    def __init__(self, n_bits: int, *, capacity: int = 0) -> None:
        if n_bits < 1:
            raise InvalidInputError(f"n_bits must be at least 1, got {n_bits}")
        self.n_bits = n_bits
        self._rows = np.empty((capacity, -(-n_bits // 8)), dtype=np.uint8)
        self._size = 0
        # None as long as nothing is removed: most indexes never need the memory.
        self._removed: BoolArray | None = None
        self._approximate: ApproximateCodes | None = None

    def __len__(self) -> int:
        return self._size - (0 if self._removed is None else int(np.count_nonzero(self._removed)))

    def __repr__(self) -> str:
        kind = "exact" if self._approximate is None else f"recall {self.recall:.3f}"
        return f"<CodeIndex of {len(self)} codes of {self.n_bits} bits, {kind}>"

    @property
    def codes(self) -> NDArray[np.uint8]:
        """The codes by position, those removed included; not to be written to."""
        rows = self._rows[: self._size]
        rows.flags.writeable = False
        return rows

    @property
    def memory(self) -> int:
        """Bytes that codes, marks of removed ones and inverted lists occupy, reserved room included."""
        marks = 0 if self._removed is None else self._removed.nbytes
        lists = 0 if self._approximate is None else self._approximate.memory
        return self._rows.nbytes + marks + lists

    @property
    def recall(self) -> float:
        """Share of the ten nearest that a search finds, measured by ``speed_up``; 1 when search is exact."""
        return 1.0 if self._approximate is None else self._approximate.recall

    def add(self, codes: AnyArray) -> None:
        """Append packed codes; the first gets the position after the last one in use."""
        codes = as_codes(codes, width=self._rows.shape[1])
        spare = 8 * codes.shape[1] - self.n_bits
        if spare and (codes[:, -1] & ((1 << spare) - 1)).any():
            raise InvalidInputError(
                f"codes of {self.n_bits} bits leave the last {spare} bits of a row zero; pack them with pack_signs"
            )
        size = self._size + len(codes)
        if size > len(self._rows):
            # An eighth more than needed keeps many small additions linear and wastes little.
            grown = size if not self._size else max(size, self._size + self._size // 8)
            rows = np.empty((grown, self._rows.shape[1]), dtype=np.uint8)
            rows[: self._size] = self._rows[: self._size]
            self._rows = rows
        self._rows[self._size : size] = codes
        if self._removed is not None:
            self._removed = np.concatenate([self._removed, np.zeros(len(codes), dtype=bool)])
        self._size = size

    def remove(self, positions: ArrayLike) -> None:
        """Take codes out of all later answers; the other positions stay."""
        places = np.asarray(positions, dtype=np.int64).reshape(-1)
        if len(places) and (places.min() < 0 or places.max() >= self._size):
            raise InvalidInputError(f"positions lie in 0 … {self._size - 1}, got {places.min()} … {places.max()}")
        removed = np.zeros(self._size, dtype=bool) if self._removed is None else self._removed.copy()
        removed[places] = True
        self._removed = removed if removed.any() else None

    def compact(self) -> IntArray:
        """Free the room of removed codes and return the previous position of each that stays.

        Positions change to 0 … n − 1, and search is exact again until the next ``speed_up``.
        """
        kept = np.arange(self._size) if self._removed is None else np.flatnonzero(~self._removed)
        self._rows = self._rows[kept]
        self._size, self._removed, self._approximate = len(kept), None, None
        return kept

    def search(self, queries: AnyArray, k: int, allowed: BoolArray | None = None) -> DistancesAndPositions:
        """Return distances and positions of the ``k`` nearest codes of every query, nearest first.

        ``allowed`` marks, by position, the codes that may be answered. There are fewer than ``k`` columns only when
        there are fewer codes. Codes added after ``speed_up`` are searched exactly beside its lists.
        """
        queries = as_codes(queries, name="queries", width=self._rows.shape[1])
        codes, allowed = self._rows[: self._size], self._searchable(allowed)
        if self._approximate is None or k < 1 or not len(queries):
            return nearest_codes(queries, codes, k, allowed=allowed)
        return self._search_lists(self._approximate, queries, k, allowed)

    def within(self, queries: AnyArray, radius: int, allowed: BoolArray | None = None) -> list[DistancesAndPositions]:
        """Return, for every query, distances and positions of all codes within ``radius`` bits; always exact."""
        queries = as_codes(queries, name="queries", width=self._rows.shape[1])
        codes = self._rows[: self._size]
        return codes_within(queries, codes, radius, allowed=self._searchable(allowed))

    def speed_up(self, queries: AnyArray | None = None, *, recall: float = 0.98) -> float:
        """Build inverted lists for approximate, sub-linear search and return the recall measured.

        ``queries`` are examples of what will be asked; without them stored codes stand in, which overstates the recall
        when queries come from the other kind of item. ``recall`` is what to reach: the more, the slower.
        """
        if queries is not None:
            queries = as_codes(queries, name="queries", width=self._rows.shape[1])
        codes = self._rows[: self._size]
        self._approximate = ApproximateCodes.build(codes, queries, target=recall)
        return self._approximate.recall

    def save(self, path: str | PathLike[str]) -> None:
        """Write codes and marks of removed ones to one safetensors file; inverted lists are not kept."""
        write_hash_codes(path, self._rows[: self._size], self.n_bits, self._removed)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> CodeIndex:
        """Read what ``save`` wrote; any defect of the file is one clear error."""
        codes, n_bits, removed = read_hash_codes(path)
        index = cls(n_bits)
        index._rows, index._size, index._removed = codes, len(codes), removed
        return index

    def _searchable(self, allowed: BoolArray | None) -> BoolArray | None:
        if allowed is not None:
            allowed = as_allowed_mask(allowed, self._size)
        if self._removed is None:
            return allowed
        return ~self._removed if allowed is None else allowed & ~self._removed

    def _search_lists(
        self, lists: ApproximateCodes, queries: NDArray[np.uint8], k: int, allowed: BoolArray | None
    ) -> DistancesAndPositions:
        codes, listed = self._rows[: self._size], len(lists)
        candidates = listed if allowed is None else int(np.count_nonzero(allowed[:listed]))
        wanted = min(k, candidates)
        if candidates < MIN_SHARE * listed:
            return nearest_codes(queries, codes, k, allowed=allowed)
        asked = wanted if allowed is None else min(listed, wanted * listed // candidates + k)
        distances, positions = lists.search(queries, asked)
        usable = positions >= 0 if allowed is None else (positions >= 0) & allowed[positions]
        order = np.argsort(~usable, axis=1, kind="stable")[:, :wanted]
        found = np.take_along_axis(distances, order, axis=1), np.take_along_axis(positions, order, axis=1)
        # The lists looked into may hold too little for a large k or a strict choice: such queries are answered exactly.
        short = np.flatnonzero(np.count_nonzero(usable, axis=1) < wanted)
        if len(short):
            some = None if allowed is None else allowed[:listed]
            exact = nearest_codes(queries[short], codes[:listed], wanted, allowed=some)
            found[0][short], found[1][short] = exact
        if listed == self._size:
            return found
        rest = None if allowed is None else allowed[listed:]
        near, places = nearest_codes(queries, codes[listed:], k, allowed=rest)
        distances = np.concatenate([found[0], near], axis=1)
        positions = np.concatenate([found[1], places + listed], axis=1)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(distances, order, axis=1), np.take_along_axis(positions, order, axis=1)
