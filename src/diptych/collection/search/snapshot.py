"""From query to answers, on one unchanging state of a collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.browse.filter import OWN_FIELDS, Filter
from diptych.collection.browse.live_items import LiveItems
from diptych.collection.search.encoded_query import EncodedQuery, EncodedTerm, QueryEmbeddingCache
from diptych.collection.search.gallery import Gallery, content_of
from diptych.collection.search.query import Query, Term
from diptych.collection.search.ranking import FetchFeatures, PointRanking, RerankBy, Reranking, fuse_rankings
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import RetrieverNames, Root
from diptych.collection.storage.retriever_protocol import SIDES, RetrieverProtocol, Side
from diptych.errors import InvalidInputError, UnknownItemError, UnsearchableItemError


@dataclass(frozen=True)
class Answer:
    """One item that a search found.

    ``score`` is the similarity in the space of the retriever, larger is better; ``probability`` the calibrated
    probability that the answer is relevant. ``caption`` is the text that was found when texts are searched, None when
    pictures are. ``matched_by`` says what brought the answer up: "points" of the space, "words" of its captions.
    ``item`` is the whole item as it was when it was found.
    """

    rank: int
    id: str
    path: Path | None
    score: float
    probability: float
    caption: str | None = None
    caption_id: str | None = None
    matched_by: tuple[str, ...] = ("points",)
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    item: Item | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Answers(Sequence[Answer]):
    """The answers of a search, best first, and what can be said about all of them.

    ``no_good_match`` is true when no answer of the collection reaches the probability that counts as a match.
    ``considered`` counts the items or captions that the filter left, ``exact`` says whether all of them were compared,
    ``seconds`` includes encoding the query. ``notes`` are remarks for the person who asked. ``retriever`` is the stored
    name of the retriever that answered, with its ``fingerprint`` and ``cutoff``.
    """

    found: tuple[Answer, ...]
    no_good_match: bool
    considered: int
    exact: bool
    seconds: float
    notes: tuple[str, ...] = ()
    retriever: str = ""
    fingerprint: str = ""
    cutoff: float = 0.0

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, place: int) -> Answer: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Answer, ...]: ...

    def __getitem__(self, place: int | slice) -> Answer | tuple[Answer, ...]:
        return self.found[place]


Target = Literal["images", "texts"]

FindCaptions = Callable[[str, int], tuple[list[str], list[float]]]

# How deep two rankings are joined; the same for every page, so that pages fit together.
_CANDIDATES = 1000
_MOST_ASKED = 64_000
_FIELDS_NAMED = 20


def side_of(target: Target) -> Side:
    """Return the side that a search for ``target`` looks at."""
    if target not in ("images", "texts"):
        raise InvalidInputError(f"target must be 'images' or 'texts', got {target!r}")
    return "image" if target == "images" else "text"


def _cutoff_among(retriever: RetrieverProtocol, count: int) -> float:
    # Retrievers of one's own may have one cut-off for every number of items.
    among: Callable[[int], float] | None = getattr(retriever, "cutoff_among", None)
    return retriever.cutoff if among is None else among(count)


def _hybrid_share(hybrid: float | bool | None) -> float | None:
    if hybrid is None or hybrid is False:
        return None
    share = 0.5 if hybrid is True else float(hybrid)
    if not 0 <= share <= 1:
        raise InvalidInputError(f"hybrid is the weight of the words, between 0 and 1, got {hybrid}")
    return share


@dataclass(frozen=True)
class SearchSnapshot:
    """Answers queries on a state of a collection that does not change under it."""

    root: Root
    names: RetrieverNames
    retriever: RetrieverProtocol
    query_embeddings: QueryEmbeddingCache
    items: LiveItems
    galleries: dict[Side, Gallery]
    features: FetchFeatures
    captions_with: FindCaptions

    def search(
        self,
        query: Query,
        *,
        k: int,
        offset: int,
        side: Side,
        wanted: Filter | None,
        hybrid: float | bool | None,
        exact: bool,
        min_probability: float | None,
        rerank: int | None,
        rerank_by: RerankBy,
    ) -> Answers:
        """Return the answers from place ``offset`` on, at most ``k``."""
        started = time.perf_counter()
        reranking = None if rerank is None else Reranking.of(rerank, rerank_by, self.retriever, self.features)
        gallery = self.galleries[side]
        terms = tuple(self._encode_term(term, reranking) for term in query.terms)
        encoded = EncodedQuery(terms, gallery, side, self.retriever)
        allowed = self._allowed(side, query, wanted)
        considered = len(gallery) if allowed is None else gallery.n_among(allowed)
        ranking = PointRanking(encoded, allowed, exact, reranking)
        rows, matched = self._ranked(ranking, query.words, offset + k, _hybrid_share(hybrid))
        usual = _cutoff_among(self.retriever, considered)
        cutoff = usual if min_probability is None else min_probability
        shown = rows[offset : offset + k]
        scores, probabilities = encoded.scores_and_probabilities(gallery.vectors(shown))
        # The best answers of all say whether there is a match, whichever page is asked for.
        top = probabilities if offset == 0 else encoded.scores_and_probabilities(gallery.vectors(rows[:k]))[1]
        page = self._answers(gallery, shown, scores, probabilities, offset, matched)
        if min_probability is not None:
            page = tuple(answer for answer in page if answer.probability >= min_probability)
        return Answers(
            page,
            no_good_match=bool(top.max(initial=0.0) < cutoff),
            considered=considered,
            exact=exact or not gallery.is_indexed or encoded.vector is None,
            seconds=time.perf_counter() - started,
            notes=(*self._language_notes(query), *(() if wanted is None else self._field_notes(wanted))),
            retriever=self.names.name,
            fingerprint=self.names.fingerprint,
            cutoff=usual,
        )

    def _ranked(
        self, ranking: PointRanking, words: str, k: int, hybrid: float | None
    ) -> tuple[IntArray, dict[int, tuple[str, ...]]]:
        if hybrid is None:
            return ranking.nearest(k), {}
        if not words:
            raise InvalidInputError("a hybrid search compares words with captions, but the query has none; add words")
        with ThreadPoolExecutor(1) as beside:
            found = beside.submit(self.captions_with, words, _CANDIDATES)
            nearest = ranking.nearest(max(_CANDIDATES, k)).tolist()
        by_points, further = nearest[:_CANDIDATES], nearest[_CANDIDATES:]
        by_words = self._by_words(words, ranking, found.result()).tolist()
        fused = fuse_rankings(by_points, by_words, hybrid)
        if len(fused) < k:
            known = set(fused)
            fused += [row for row in further if row not in known]
        both = (set(by_points), "points"), (set(by_words), "words")
        matched = {row: tuple(name for members, name in both if row in members) or ("points",) for row in fused[:k]}
        return np.array(fused[:k], dtype=np.int64), matched

    def _by_words(self, words: str, ranking: PointRanking, asked: tuple[list[str], list[float]]) -> IntArray:
        gallery, n_asked = ranking.query.gallery, _CANDIDATES
        while True:
            names, gains = asked
            rows = gallery.rows_of_captions(names, ranking.allowed)
            # A picture is as good as its best caption, which comes first.
            found, first = np.unique(rows[rows >= 0], return_index=True)
            # Captions that no item names any more, or that a filter leaves out, took places.
            if len(names) < n_asked or len(found) >= _CANDIDATES or n_asked >= _MOST_ASKED:
                break
            n_asked *= 8
            asked = self.captions_with(words, n_asked)
        best = np.array(gains, dtype=np.float64)[rows >= 0][first]
        return np.asarray(found[np.lexsort((gallery.orders(found), -best))][:_CANDIDATES])

    def _encode_term(self, term: Term, reranking: Reranking | None) -> EncodedTerm:
        if term.kind == "text":
            known = self.query_embeddings.point(term.value)
            outputs = None if reranking is None else reranking.outputs("text", known.features)
            return EncodedTerm(known.point, term.weight, "text", known.is_unknown, outputs)
        if term.kind == "item":
            return self._encode_item(term, reranking)
        if reranking is None:
            return EncodedTerm(self.retriever.encode_images([term.value]), term.weight, "image")
        features = reranking.source.image_features([term.value])
        outputs = reranking.outputs("image", features)
        return EncodedTerm(self.retriever.images_to_points(features), term.weight, "image", outputs=outputs)

    def _encode_item(self, term: Term, reranking: Reranking | None) -> EncodedTerm:
        item = self.items.get(term.value)
        if item is None:
            raise UnknownItemError(f"there is no item {term.value!r} in the collection; take the id of an answer")
        for side in SIDES:
            gallery = self.galleries[side]
            rows = gallery.rows_of(item.id)[:1]
            if rows:
                vectors = gallery.vectors(np.array(rows))
                content = content_of(*gallery.found(rows)[0])
                outputs = None if reranking is None else reranking.stored_outputs(side, content)
                return EncodedTerm(vectors, term.weight, side, outputs=outputs)
        raise UnsearchableItemError(f"item {item.id} has neither a readable picture nor a caption to search with")

    def _allowed(self, side: Side, query: Query, wanted: Filter | None) -> list[BoolArray] | None:
        # A picture among pictures and a text among texts would answer a question about itself.
        asked = (self.items.get(term.value) for term in query.terms if term.kind == "item")
        itself = [item.added_ns for item in asked if item is not None and (item.path is None) == (side == "text")]
        if wanted is None and not itself:
            return None
        if wanted is not None and not itself:
            return self.items.masks(wanted)
        parts = self.items.parts
        masks = (
            [np.ones(len(part.segment), dtype=bool) if part.live is None else part.live.copy() for part in parts]
            if wanted is None
            else [mask.copy() for mask in self.items.masks(wanted)]
        )
        for part, mask in zip(parts, masks, strict=True):
            mask[part.segment.places(np.array(itself, dtype=np.int64))] = False
        return masks

    def _language_notes(self, query: Query) -> tuple[str, ...]:
        """Say which languages of the query the retriever does not understand; some know nothing of languages."""
        note_of = getattr(self.retriever, "language_note", None)
        if note_of is None:
            return ()
        notes = [note_of(term.value) for term in query.terms if term.kind == "text"]
        return tuple(dict.fromkeys(note for note in notes if note is not None))

    def _field_notes(self, wanted: Filter) -> tuple[str, ...]:
        """Say which fields of a filter no item has: most often they are misspelt."""
        named = [field for field in sorted(wanted.fields) if field.lower() not in OWN_FIELDS]
        unknown = [field for field in named if not self.items.has_field(field)]
        if not unknown or not len(self.items):
            return ()
        known = ", ".join((*OWN_FIELDS, *self.items.fields[:_FIELDS_NAMED]))
        more = ", …" if len(self.items.fields) > _FIELDS_NAMED else ""
        return tuple(f"no item has a field {field!r}; fields are {known}{more}" for field in unknown)

    def _answers(
        self,
        gallery: Gallery,
        rows: IntArray,
        scores: FloatArray,
        probabilities: FloatArray,
        offset: int,
        matched: dict[int, tuple[str, ...]],
    ) -> tuple[Answer, ...]:
        answers = []
        found = gallery.found(rows.tolist())
        scored = zip(rows.tolist(), scores.tolist(), probabilities.tolist(), found, strict=True)
        for rank, (row, score, probability, (item, place)) in enumerate(scored, start=offset + 1):
            answers.append(
                Answer(
                    rank=rank,
                    id=item.id,
                    path=None if item.path is None else self.root.file(item.path),
                    score=score,
                    probability=probability,
                    caption=None if place is None else item.captions[place],
                    caption_id=None if place is None else item.caption_ids[place],
                    matched_by=matched.get(row, ("points",)),
                    labels=item.labels,
                    metadata=item.metadata,
                    item=item,
                )
            )
        return tuple(answers)
