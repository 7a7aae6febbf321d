"""Rankings: by points and regions of pictures, by hash codes scored again, by words, and two of them joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from diptych.arrays import AnyArray, FloatArray, IntArray, unit_rows
from diptych.codes import asymmetric_scores, unpack_signs
from diptych.collection.retriever_protocol import HashCodeRetrieverProtocol, Side
from diptych.collection.searching.encoded_query import EncodedQuery, EncodedTerm
from diptych.collection.searching.entries import Entries, best_ids
from diptych.collection.searching.options import RerankBy
from diptych.collection.sought_words import SoughtWords, folded_words
from diptych.collection.store.points import known_encoder, read_features
from diptych.collection.store.words import Phrase, WordHits, find_words, phrases_of
from diptych.collection.vectors.neighbours import VectorIndex
from diptych.encoders.image.picture_parts import REGIONS, PictureRegion
from diptych.errors import InvalidInputError

FUSED = 1000
"""How deep two rankings are joined; the same for every page, so that pages fit together."""

MAX_CHECKED = 100
RANK_DAMPING = 60


@dataclass(frozen=True)
class Reranking:
    """Puts the first ``depth`` of a ranking by Hamming distance into the order of finer scores.

    The outputs of the query before the sign say how sure each bit is. With q = Σ wᵢ·dᵢ/‖dᵢ‖ over the outputs dᵢ of the
    query's terms, a candidate scores by ``codes`` q·b with its bits b ∈ {−1, +1} (Gordo et al., "Asymmetric distances
    for binary embeddings", TPAMI 2014), by ``features`` q·d/‖d‖ with its own outputs d, made from its stored features;
    without these it is scored by its bits. Equal scores keep the order of the codes.
    """

    depth: int
    by: RerankBy
    entries: Entries

    def __post_init__(self) -> None:
        source = self.entries.view.searched.retriever
        if source.space.name != "hamming" or not hasattr(source, "images_to_outputs"):
            raise InvalidInputError(
                f"the points of the retriever {source.name!r} are no binary codes with real outputs behind them, so "
                "there is nothing to score again; leave rerank out"
            )

    @property
    def source(self) -> HashCodeRetrieverProtocol:
        """The retriever, which makes outputs of features."""
        return cast(HashCodeRetrieverProtocol, self.entries.view.searched.retriever)

    def outputs(self, side: Side, features: AnyArray) -> FloatArray:
        """Return the real outputs of rows of features."""
        make = self.source.images_to_outputs if side == "image" else self.source.texts_to_outputs
        return np.asarray(make(np.asarray(features, dtype=np.float32)))

    def stored_outputs(self, side: Side, contents: IntArray) -> tuple[IntArray, FloatArray | None]:
        """Return the contents among some that have stored features, and the real outputs of these."""
        view = self.entries.view
        encoder = known_encoder(view.db, view.searched.model.encoder(side), side)
        if encoder is None:
            return contents[:0], None
        found, features = read_features(view.db, encoder, contents)
        return found, self.outputs(side, features) if len(found) else None

    def ordered(self, ranked: IntArray, terms: Sequence[EncodedTerm]) -> IntArray:
        """Return the entries of a ranking by codes in their new order."""
        first, deeper = ranked[: self.depth], ranked[self.depth :]
        if len(first) < 2:
            return ranked
        codes = self.entries.vectors(first)
        width = 8 * codes.shape[1]
        query = np.zeros((1, width))
        for term in terms:
            # An item whose features are gone still has its bits. The sides differ in scale, so each has unit length.
            outputs = unpack_signs(term.point, width) if term.outputs is None else term.outputs
            query += term.weight * _widened(unit_rows(outputs.astype(np.float64)), width)
        known: AnyArray
        if self.by == "codes":
            known, scores = codes, asymmetric_scores(query, codes)[0]
        else:
            known = self.entries.contents_of(first)
            scores = self._outputs_or_bits(codes, known) @ query[0]
        # A matrix product rounds equal rows differently by where they stand: with one score they keep their order.
        _, one, which = np.unique(known, axis=0, return_index=True, return_inverse=True)
        return np.concatenate([first[np.argsort(-scores[one][which.ravel()], kind="stable")], deeper])

    def _outputs_or_bits(self, codes: AnyArray, contents: IntArray) -> FloatArray:
        """Return the outputs of candidates, their bits where there are no features, all of unit length."""
        known = unit_rows(unpack_signs(codes, 8 * codes.shape[1]).astype(np.float64))
        found, outputs = self.stored_outputs(self.entries.side, np.unique(contents))
        if outputs is not None:
            is_there = np.isin(contents, found)
            rows = np.searchsorted(found, contents[is_there])
            known[is_there] = _widened(unit_rows(outputs.astype(np.float64)), known.shape[1])[rows]
        return known


def _widened(outputs: FloatArray, width: int) -> FloatArray:
    """Add zero columns for the bits that pad the last byte, which say nothing."""
    return np.pad(outputs, ((0, 0), (0, width - outputs.shape[1])))


@dataclass(frozen=True)
class PointRanking:
    """Ranks entries for a query by their points; with regions, a picture ranks by the better of itself and its best."""

    query: EncodedQuery
    entries: Entries
    exact: bool
    uses_regions: bool
    reranking: Reranking | None = None

    def nearest(self, k: int) -> IntArray:
        """Return the ``k`` best entries, best first; fewer where there are fewer."""
        if self.reranking is None:
            return self._nearest(k)
        # As deep for every page, so that pages fit together.
        return self.reranking.ordered(self._nearest(max(k, self.reranking.depth)), self.query.terms)[:k]

    def _nearest(self, k: int) -> IntArray:
        entries, query, db = self.entries, self.query, self.entries.view.db
        k = min(k, entries.count)
        if not k:
            return np.zeros(0, dtype=np.int64)
        # Each content has an entry at least.
        k_contents = min(k, int(np.count_nonzero(entries.contents)))
        if query.vector is None:
            found = entries.index.nearest_by(db, lambda rows: query.scores(rows)[None, :], k_contents, entries.contents)
        else:
            found = entries.index.nearest(db, query.vector, k_contents, entries.contents, exact=self.exact)
        contents, scores = found.contents[0], found.scores[0]
        if self._region_index is not None and query.vector is not None:
            of_regions = self._region_index.nearest(db, query.vector, k_contents, entries.contents, exact=self.exact)
            contents = np.concatenate([contents, of_regions.contents[0]])
            scores = np.concatenate([scores, of_regions.scores[0]])
        distinct, which = np.unique(contents, return_inverse=True)
        best = np.full(len(distinct), -np.inf)
        np.maximum.at(best, which, scores)
        is_there = (distinct >= 0) & (best > -np.inf)
        distinct, best = distinct[is_there], best[is_there]
        ids, places = entries.of_contents(distinct)
        return best_ids(ids, best[places], k)

    @property
    def _region_index(self) -> VectorIndex | None:
        return self.entries.region_index if self.uses_regions else None

    @property
    def is_exact(self) -> bool:
        """Whether everything is compared."""
        if self.exact or self.query.vector is None or not self.entries.count:
            return True
        indexes = [self.entries.index, *([] if self._region_index is None else [self._region_index])]
        n_contents = int(np.count_nonzero(self.entries.contents))
        return all(index.compares_all(self.entries.view.db, n_contents) for index in indexes)

    def best_parts(self, ranked: IntArray) -> tuple[AnyArray, list[PictureRegion | None]]:
        """Return the points by which some entries answer the query, and the regions of pictures whose these are."""
        whole = self.entries.vectors(ranked)
        regions: list[PictureRegion | None] = [None] * len(ranked)
        if self._region_index is None or self.query.vector is None or not len(ranked):
            return whole, regions
        contents = self.entries.contents_of(ranked)
        owners, parts, points = self._region_index.vectors(self.entries.view.db, np.unique(contents))
        best = np.array(whole)
        of_whole, of_parts = self.query.scores(whole), self.query.scores(points)
        for place, content in enumerate(contents.tolist()):
            start, end = np.searchsorted(owners, [content, content + 1]).tolist()
            if start < end and of_parts[start:end].max() > of_whole[place]:
                row = start + int(of_parts[start:end].argmax())
                best[place], regions[place] = points[row], REGIONS[int(parts[row])]
        return best, regions


@dataclass(frozen=True)
class WordRanking:
    """Ranks entries by the words that their items hold."""

    entries: Entries

    def with_most(self, words: str, *, captions: bool = True) -> WordHits:
        """Return the entries with the most of some words, best first."""
        each = [phrases_of(word) for word in dict.fromkeys(folded_words(words))]
        return self._found(each, needs_all=False, captions=captions)

    def named(self, sought: SoughtWords) -> tuple[SoughtWords, IntArray]:
        """Return what holds all the words, or else the names among them outside of captions; best first."""
        forms = [[phrase for form in sought.forms(word) for phrase in phrases_of(form)] for word in sought.words]
        # Where so many have the words, these say nothing.
        found = self._found(forms, needs_all=True, max_found=FUSED)
        every = found.ids
        if sought.phrases or sought.together:
            every = every[:MAX_CHECKED]
            return sought, every[[sought.has_phrases(*known) for known in self.entries.said_of(every)]]
        is_nowhere = len(forms) == 1 and not found.n_found
        if len(every) or is_nowhere or not sought.telling or self.entries.side == "text":
            return sought, every
        rows = self.with_most(" ".join(sought.telling), captions=False).ids[:MAX_CHECKED]
        held = [sought.names_in(*known) for known in self.entries.said_of(rows)]
        most = max(held, key=len, default=frozenset())
        return replace(sought, words=tuple(sorted(most))), rows[[bool(most) and most <= one for one in held]]

    def _found(
        self, words: list[list[Phrase]], *, needs_all: bool, captions: bool = True, max_found: int | None = None
    ) -> WordHits:
        columns = self.entries.view.columns
        return find_words(
            self.entries.view.db,
            words,
            self.entries.allowed,
            needs_all=needs_all,
            n_rows=int(np.count_nonzero(columns.alive)) + len(columns.captions.ids),
            of_captions=self.entries.side == "text",
            in_captions=captions,
            max_found=max_found,
        )


def fuse_rankings(by_points: Sequence[int], by_words: Sequence[int], share: float) -> list[int]:
    """Join two rankings by reciprocal rank: an item gains (1 − share)/(60 + rank) and share/(60 + rank).

    Equal gains keep the order of the first. Cormack et al., "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods", SIGIR 2009.

    >>> fuse_rankings([1, 2, 3], [3, 4], 0.5)
    [3, 1, 2, 4]
    """
    gains: dict[int, float] = {}
    for ranking, weight in ((by_points, 1 - share), (by_words, share)):
        for rank, entry in enumerate(ranking, start=1):
            gains[entry] = gains.get(entry, 0.0) + weight / (RANK_DAMPING + rank)
    return sorted(gains, key=lambda entry: -gains[entry])
