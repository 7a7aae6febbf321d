"""From query to answers, on one unchanging state of a collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.collection.browse.filter import OWN_FIELDS, Filter
from diptych.collection.browse.live_items import LiveItems
from diptych.collection.search.encoded_query import EncodedQuery, EncodedTerm, QueryEmbeddingCache
from diptych.collection.search.gallery import Gallery, content_of
from diptych.collection.search.query import Answer, Answers, Mode, Query, Term
from diptych.collection.search.ranking import (
    CANDIDATES,
    FetchFeatures,
    PointRanking,
    RegionRanking,
    RerankBy,
    Reranking,
    WordRanking,
    fuse_rankings,
)
from diptych.collection.search.sought_words import SoughtWords, folded_words
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import RetrieverNames, Root
from diptych.collection.storage.retriever_protocol import SIDES, PointKind, RetrieverProtocol, Side
from diptych.collection.storage.store import Store
from diptych.encoders.image.picture_parts import REGIONS, PictureRegion, PictureText, PictureWord
from diptych.errors import InvalidInputError, UnknownItemError, UnsearchableItemError

Target = Literal["images", "texts"]
_FIELDS_NAMED = 20
_MOST_LOOKED_AT = 100
_NOT_QUOTED = "No item holds the words in quotation marks one after the other; these are similar in meaning."


def side_of(target: Target) -> Side:
    """Return the side that a search for ``target`` looks at."""
    if target not in ("images", "texts"):
        raise InvalidInputError(f"target must be 'images' or 'texts', got {target!r}")
    return "image" if target == "images" else "text"


def _hybrid_share(hybrid: float | bool) -> float:
    share = 0.5 if hybrid is True else float(hybrid)
    if not 0 <= share <= 1:
        raise InvalidInputError(f"hybrid is the weight of the words, between 0 and 1, got {hybrid}")
    return share


@dataclass(frozen=True)
class _Ranked:
    """Rows, best first, which of them points and which of them words have brought up, and the words."""

    rows: IntArray
    sought: SoughtWords | None = None
    by_points: Set[int] = frozenset()
    by_words: Set[int] = frozenset()
    mode: Mode = "similarity"
    notes: tuple[str, ...] = ()

    def matched_by(self, row: int) -> tuple[str, ...]:
        """Return what brought a row up."""
        if not self.by_words:
            return ("points",)
        both = (self.by_points, "points"), (self.by_words, "words")
        return tuple(name for members, name in both if row in members) or ("points",)


@dataclass(frozen=True)
class SearchSnapshot:
    """Answers queries on a state of a collection that does not change under it."""

    root: Root
    names: RetrieverNames
    retriever: RetrieverProtocol
    query_embeddings: QueryEmbeddingCache
    items: LiveItems
    galleries: dict[PointKind, Gallery]
    features: FetchFeatures
    store: Store

    def search(
        self,
        query: Query,
        *,
        k: int,
        offset: int,
        side: Side,
        wanted: Filter | None,
        hybrid: float | bool | None,
        exact: Set[PointKind],
        regions: bool,
        min_probability: float | None,
        rerank: int | None,
        rerank_by: RerankBy,
    ) -> Answers:
        """Return the answers from place ``offset`` on, at most ``k``; points of ``exact`` kinds are all compared."""
        started = time.perf_counter()
        reranking = None if rerank is None else Reranking.of(rerank, rerank_by, self.retriever, self.features)
        gallery = self.galleries[side]
        terms = tuple(self._encode_term(term, reranking) for term in query.terms)
        encoded = EncodedQuery(terms, gallery, side, self.retriever)
        allowed = self._allowed(side, query, wanted)
        considered = gallery.n_among(allowed)
        parts = self._region_ranking(encoded, exact) if regions else None
        ranking = PointRanking(encoded, allowed, side in exact, reranking, parts)
        found = self._ranked(ranking, query, offset + k, hybrid)
        rows = found.rows
        # Regions of a picture are about as many more chances to be near whatever is asked as another picture is.
        chances = considered + (0 if parts is None else parts.regions.n_among(allowed) // len(REGIONS))
        usual = encoded.cutoff_among(chances)
        cutoff = usual if min_probability is None else min_probability
        shown = rows[offset : offset + k]
        kept, places = ranking.best_parts(shown)
        scores, probabilities = encoded.scores_and_probabilities(kept)
        # The best answers of all say whether there is a match, whichever page is asked for.
        top = probabilities if offset == 0 else encoded.scores_and_probabilities(ranking.best_parts(rows[:k])[0])[1]
        page = self._answers(gallery, shown, scores, probabilities, places, offset, found)
        if min_probability is not None:
            page = tuple(answer for answer in page if answer.probability >= min_probability)
        return Answers(
            page,
            no_good_match=bool(top.max(initial=0.0) < cutoff) and not self._has_words(gallery, rows[:k], found),
            considered=considered,
            exact=ranking.is_exact,
            seconds=time.perf_counter() - started,
            notes=(*found.notes, *self._language_notes(query), *(() if wanted is None else self._field_notes(wanted))),
            retriever=self.names.name,
            fingerprint=self.names.fingerprint,
            cutoff=usual,
            mode=found.mode,
        )

    def _ranked(self, ranking: PointRanking, query: Query, k: int, hybrid: float | bool | None) -> _Ranked:
        if hybrid is None:
            return self._ranked_by_what_is_asked(ranking, query, k)
        if hybrid is False:
            return _Ranked(ranking.nearest(k))
        share = _hybrid_share(hybrid)
        if not query.words:
            raise InvalidInputError("a hybrid search looks for words, but the query has none; add words")
        by_words = WordRanking(self.store.words, ranking.query.gallery, ranking.allowed)
        worded = by_words.with_most(query.words).tolist()
        nearest = ranking.nearest(max(CANDIDATES, k)).tolist()
        first, further = nearest[:CANDIDATES], nearest[CANDIDATES:]
        fused = fuse_rankings(first, worded, share)
        if len(fused) < k:
            known = set(fused)
            fused += [row for row in further if row not in known]
        mode: Mode = "words" if share == 1 else "both"
        return _Ranked(np.array(fused[:k], dtype=np.int64), SoughtWords.of(query.words), set(first), set(worded), mode)

    def _ranked_by_what_is_asked(self, ranking: PointRanking, query: Query, k: int) -> _Ranked:
        """Rank by similarity, and first of all what holds the words of a query that asks for something by its name."""
        sought = SoughtWords.of(query.words)
        if not sought.asks_by_name or any(term.kind != "text" and term.weight > 0 for term in query.terms):
            return _Ranked(ranking.nearest(k))
        gallery = ranking.query.gallery
        by_words = WordRanking(self.store.words, gallery, ranking.allowed)
        sought, worded = self._named(by_words, sought)
        nearest = ranking.nearest(max(CANDIDATES, k))
        if not len(worded):
            return _Ranked(nearest[:k], notes=(_NOT_QUOTED,) if sought.phrases else ())
        # Among those that hold a name both rankings count, with ordinary words similarity; the others follow by it.
        scores = ranking.query.scores(gallery.vectors(worded))
        by_points = worded[np.lexsort((gallery.orders(worded), -scores))]
        joined = by_points
        if sought.phrases or sought.telling:
            joined = np.array(fuse_rankings(by_points.tolist(), worded.tolist(), 0.5), dtype=np.int64)
        rows = np.concatenate([joined, nearest[~np.isin(nearest, joined)]])[:k]
        return _Ranked(rows, sought, set(nearest[:CANDIDATES].tolist()), set(worded.tolist()), "both")

    def _named(self, by_words: WordRanking, sought: SoughtWords) -> tuple[SoughtWords, IntArray]:
        """Return what holds all the words, or else the names among them outside of captions; best first."""
        forms = [*map(sought.forms, sought.words)]
        field_words = self._field_words({form for each in forms for form in each})
        every, are_there = by_words.with_all(forms, field_words)
        if sought.phrases or sought.together:
            known = self._known_of(by_words.gallery, every[:_MOST_LOOKED_AT])
            return sought, every[: len(known)][[sought.has_phrases(*one) for one in known]]
        # A single word that nothing has is nowhere else, unless metadata are called by it.
        is_nowhere = len(forms) == 1 and not are_there and not field_words
        if len(every) or is_nowhere or not sought.telling or by_words.gallery.is_of_captions:
            return sought, every
        rows = by_words.with_most(" ".join(sought.telling), captions=False)[:_MOST_LOOKED_AT]
        held = [sought.names_in(*one) for one in self._known_of(by_words.gallery, rows)]
        most = max(held, key=len, default=frozenset())
        return replace(sought, words=tuple(sorted(most))), rows[[bool(most) and most <= one for one in held]]

    def _known_of(self, gallery: Gallery, rows: IntArray) -> list[tuple[Item, PictureText | None]]:
        """Return the items of some rows with the texts in their pictures."""
        items = [item for item, _ in gallery.found(rows.tolist())]
        texts = self.store.picture_texts.get([item.content_hash for item in items if item.content_hash is not None])
        return [(item, texts.get(item.content_hash or "")) for item in items]

    def _field_words(self, words: Set[str]) -> Set[str]:
        """Return which of some words metadata are called by."""
        return words & {word for name in self.items.fields for word in folded_words(name)}

    def _has_words(self, gallery: Gallery, rows: IntArray, ranked: _Ranked) -> bool:
        """Return True if one of some rows has all the words that were looked for."""
        return any(has_words for _, has_words, _ in self._places_of_words(gallery, rows, ranked).values())

    def _places_of_words(
        self, gallery: Gallery, rows: IntArray, ranked: _Ranked
    ) -> dict[int, tuple[tuple[str, ...], bool, tuple[PictureWord, ...]]]:
        """Return for rows with words in which fields these stand, whether all do, and where in the picture."""
        sought, held = ranked.sought, np.array([row for row in rows.tolist() if row in ranked.by_words], dtype=np.int64)
        if sought is None or not len(held):
            return {}
        known = zip(held.tolist(), self._known_of(gallery, held), strict=True)
        return {
            row: (*sought.places_in(item, text), () if text is None else sought.boxes_in(text))
            for row, (item, text) in known
        }

    def _region_ranking(self, query: EncodedQuery, exact: Set[PointKind]) -> RegionRanking | None:
        gallery = self.galleries.get("region") if query.target == "image" else None
        return None if not gallery else RegionRanking(query, gallery, "region" in exact)

    def _encode_term(self, term: Term, reranking: Reranking | None) -> EncodedTerm:
        if term.kind == "text":
            known = self.query_embeddings.point(term.value)
            outputs = None if reranking is None else reranking.outputs("text", known.features)
            asks_short: Callable[[str], bool] | None = getattr(self.retriever, "is_short_query", None)
            is_short = asks_short is not None and asks_short(term.value)
            return EncodedTerm(known.point, term.weight, "text", known.is_unknown, outputs, is_short)
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
            mask[part.segment.places(np.array(itself, dtype=np.int64))[0]] = False
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
        regions: Sequence[PictureRegion | None],
        offset: int,
        ranked: _Ranked,
    ) -> tuple[Answer, ...]:
        answers = []
        worded = self._places_of_words(gallery, rows, ranked)
        found = gallery.found(rows.tolist())
        scored = zip(rows.tolist(), scores.tolist(), probabilities.tolist(), regions, found, strict=True)
        for rank, (row, score, probability, region, (item, place)) in enumerate(scored, start=offset + 1):
            fields, has_words, words = worded.get(row, ((), False, ()))
            answers.append(
                Answer(
                    rank=rank,
                    id=item.id,
                    path=None if item.path is None else self.root.picture(item.path),
                    score=score,
                    probability=probability,
                    caption=None if place is None else item.captions[place],
                    caption_id=None if place is None else item.caption_ids[place],
                    matched_by=ranked.matched_by(row),
                    labels=item.labels,
                    metadata=item.metadata,
                    matched_fields=fields,
                    has_words=has_words,
                    picture_words=words,
                    region=region,
                    item=item,
                )
            )
        return tuple(answers)
