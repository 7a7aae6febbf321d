"""From query to answers, on one unchanging state of a collection."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.answer import Answer
from diptych.collection.answers import Answers
from diptych.collection.asked import Asked
from diptych.collection.asked_term import AskedTerm
from diptych.collection.asked_words import AskedWords
from diptych.collection.catalogue import Catalogue
from diptych.collection.collection_error import CollectionError
from diptych.collection.contract import PointSource, Side
from diptych.collection.field_names import OWN_FIELDS
from diptych.collection.filter import Filter
from diptych.collection.fusion import fuse
from diptych.collection.gallery import Gallery
from diptych.collection.point_ranking import PointRanking
from diptych.collection.query import Query
from diptych.collection.reranking import FetchFeatures, RerankBy, Reranking
from diptych.collection.retriever_names import RetrieverNames
from diptych.collection.root import Root
from diptych.collection.term import Term
from diptych.collection.top_rows import top_rows
from diptych.errors import InvalidInputError

Target = Literal["images", "texts"]

# How deep two rankings are joined; the same for every page, so that pages fit together.
_CANDIDATES = 1000
_FIELDS_NAMED = 20
_BY_POINTS = ("points",)


@dataclass(frozen=True)
class Searching:
    """Answers queries on a state of a collection that does not change under it."""

    root: Root
    names: RetrieverNames
    retriever: PointSource
    words: AskedWords
    catalogue: Catalogue
    galleries: dict[Side, Gallery]
    features: FetchFeatures

    def search(
        self,
        query: Query,
        *,
        k: int,
        offset: int,
        target: Target,
        wanted: Filter | None,
        hybrid: float | None,
        exact: bool,
        min_probability: float | None,
        reranking: Reranking | None = None,
    ) -> Answers:
        """Return the answers from place ``offset`` on, at most ``k``."""
        started = time.perf_counter()
        side: Side = "image" if target == "images" else "text"
        gallery = self.galleries[side]
        asked = Asked(tuple(self._asked(term, reranking) for term in query.terms), gallery, side, self.retriever)
        allowed = self._allowed(gallery, side, query, wanted)
        considered = len(gallery) if allowed is None else int(np.count_nonzero(allowed & gallery.live))
        ranking = PointRanking(asked, allowed, exact, reranking)
        rows, matched = self._ranked(ranking, query.words, offset + k, hybrid)
        cutoff = self.retriever.cutoff if min_probability is None else min_probability
        shown = rows[offset : offset + k]
        scores, chances = asked.judged(gallery.vectors[shown])
        # The best answers of all say whether there is a match, whichever page is asked for.
        top = chances if offset == 0 else asked.judged(gallery.vectors[rows[:k]])[1]
        page = self._answers(gallery, side, shown, scores, chances, offset, matched)
        if min_probability is not None:
            page = tuple(answer for answer in page if answer.probability >= min_probability)
        return Answers(
            page,
            no_good_match=bool(top.max(initial=0.0) < cutoff),
            considered=considered,
            exact=exact or gallery.index is None or asked.vector is None,
            seconds=time.perf_counter() - started,
            notes=() if wanted is None else self._notes(wanted),
            retriever=self.names.name,
            fingerprint=self.names.fingerprint,
            cutoff=self.retriever.cutoff,
        )

    def reranking(self, depth: int, by: RerankBy) -> Reranking:
        """Return what scores the nearest codes again."""
        return Reranking.of(depth, by, self.retriever, self.features)

    def _ranked(
        self, ranking: PointRanking, words: str, k: int, hybrid: float | None
    ) -> tuple[IntArray, dict[int, tuple[str, ...]]]:
        if hybrid is None:
            return ranking.nearest(k), {}
        if not words:
            raise InvalidInputError("a hybrid search compares words with captions, but the query has none; add words")
        nearest = ranking.nearest(max(_CANDIDATES, k)).tolist()
        by_points, further = nearest[:_CANDIDATES], nearest[_CANDIDATES:]
        by_words = self._by_words(words, ranking).tolist()
        fused = fuse(by_points, by_words, hybrid)
        both = (set(by_points), "points"), (set(by_words), "words")
        matched = {row: tuple(name for members, name in both if row in members) for row in fused}
        rows = fused + [row for row in further if row not in matched]
        return np.array(rows[:k], dtype=np.int64), matched

    def _by_words(self, words: str, ranking: PointRanking) -> IntArray:
        gallery, side, allowed = ranking.gallery, ranking.asked.target, ranking.allowed
        gains = self.catalogue.full_text.scores(words)
        scores = np.full(len(gallery.keys), -np.inf)
        for place in np.flatnonzero(gains > 0):
            caption_id = self.catalogue.caption_list[place]
            key = self.catalogue.captions[caption_id][0].id if side == "image" else caption_id
            row = gallery.row_of.get(key)
            if row is not None and (allowed is None or allowed[row]):
                # A picture is as good as its best caption.
                scores[row] = max(scores[row], gains[place])
        return top_rows(scores, gallery.order, _CANDIDATES)

    def _asked(self, term: Term, reranking: Reranking | None) -> AskedTerm:
        if term.kind == "text":
            known = self.words.point(term.value)
            outputs = None if reranking is None else reranking.outputs("text", known.features)
            return AskedTerm(known.point, term.weight, "text", known.is_unknown, outputs)
        if term.kind == "item":
            return self._asked_item(term, reranking)
        if reranking is None:
            return AskedTerm(self.retriever.encode_images([term.value]), term.weight, "image")
        features = reranking.source.image_features([term.value])
        outputs = reranking.outputs("image", features)
        return AskedTerm(self.retriever.images_to_points(features), term.weight, "image", outputs=outputs)

    def _asked_item(self, term: Term, reranking: Reranking | None) -> AskedTerm:
        item = self.catalogue.items.get(term.value)
        if item is None:
            raise CollectionError(f"there is no item {term.value!r} in the collection; take the id of an answer")
        by_side: dict[Side, str | None] = {"image": item.id, "text": next(iter(item.caption_ids), None)}
        for side, key in by_side.items():
            row = None if key is None else self.galleries[side].row_of.get(key)
            if row is not None:
                gallery = self.galleries[side]
                outputs = None if reranking is None else reranking.stored_outputs(side, gallery.hashes[row])
                return AskedTerm(gallery.vectors[row : row + 1], term.weight, side, outputs=outputs)
        raise CollectionError(f"item {item.id} has neither a readable picture nor a caption to search with")

    def _allowed(self, gallery: Gallery, side: Side, query: Query, wanted: Filter | None) -> BoolArray | None:
        itself = {term.value for term in query.terms if term.kind == "item" and self._is_own_side(term.value, side)}
        if wanted is None and not itself:
            return None
        allowed = np.ones(len(gallery.keys), dtype=bool)
        if wanted is not None:
            allowed[:] = False
            allowed[self._rows_of(self.catalogue.matching(wanted), gallery, side)] = True
        allowed[self._rows_of(itself, gallery, side)] = False
        return allowed

    def _notes(self, wanted: Filter) -> tuple[str, ...]:
        """Say which fields of a filter no item has: most often they are misspelt."""
        unknown = [
            field
            for field in sorted(wanted.fields)
            if field.lower() not in OWN_FIELDS and not self.catalogue.has_field(field)
        ]
        if not unknown or not len(self.catalogue):
            return ()
        known = ", ".join((*OWN_FIELDS, *self.catalogue.fields[:_FIELDS_NAMED]))
        more = ", …" if len(self.catalogue.fields) > _FIELDS_NAMED else ""
        return tuple(f"no item has a field {field!r}; fields are {known}{more}" for field in unknown)

    def _is_own_side(self, item_id: str, side: Side) -> bool:
        """Say whether the item would answer a question about itself: a picture among pictures, a text among texts."""
        item = self.catalogue.items.get(item_id)
        return item is not None and (item.path is None) == (side == "text")

    def _rows_of(self, ids: set[str] | frozenset[str], gallery: Gallery, side: Side) -> list[int]:
        if side == "text":
            keys = [caption_id for item_id in ids for caption_id in self.catalogue.items[item_id].caption_ids]
        else:
            keys = list(ids)
        return [gallery.row_of[key] for key in keys if key in gallery.row_of]

    def _answers(
        self,
        gallery: Gallery,
        side: Side,
        rows: IntArray,
        scores: FloatArray,
        chances: FloatArray,
        offset: int,
        matched: dict[int, tuple[str, ...]],
    ) -> tuple[Answer, ...]:
        answers = []
        judged = zip(rows.tolist(), scores.tolist(), chances.tolist(), strict=True)
        for rank, (row, score, chance) in enumerate(judged, start=offset + 1):
            key = gallery.keys[row]
            item, caption = self.catalogue.captions[key] if side == "text" else (self.catalogue.items[key], None)
            answers.append(
                Answer(
                    rank=rank,
                    id=item.id,
                    path=None if item.path is None else self.root.file(item.path),
                    score=score,
                    probability=chance,
                    caption=caption,
                    caption_id=None if caption is None else key,
                    matched_by=matched.get(row, _BY_POINTS),
                    labels=item.labels,
                    metadata=item.metadata,
                    item=item,
                )
            )
        return tuple(answers)
