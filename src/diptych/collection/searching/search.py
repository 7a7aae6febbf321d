"""From a request to answers, on one transaction of the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.filter import OWN_FIELDS, Filter
from diptych.collection.retriever_protocol import SIDES, Side
from diptych.collection.searching.encoded_query import EncodedQuery, EncodedTerm
from diptych.collection.searching.options import Sort
from diptych.collection.searching.query import Answer, Answers, Mode, Query, SearchRequest, Term
from diptych.collection.searching.query_words import corrected
from diptych.collection.searching.rankings import (
    FUSED,
    Entries,
    PointRanking,
    Reranking,
    SearchView,
    WordRanking,
    fuse_rankings,
)
from diptych.collection.sought_words import SoughtWords
from diptych.collection.store.items import items_by_name
from diptych.collection.store.values import LABEL, field_name
from diptych.collection.store.words import MAX_CANDIDATES, count_words
from diptych.encoders.image.picture_parts import PictureRegion, PictureWord
from diptych.errors import UnknownItemError, UnsearchableItemError

MAX_FIELDS_NAMED = 20
NEAR = 100
"""What words have found is similar, too, where it is among so many nearest; the same for every page."""
COPY_PROBABILITY = 0.95
"""A picture that matches a query by a picture with more than this is a copy of it, or as good as one."""

_NOT_QUOTED = "No item holds the words in quotation marks one after the other; these are similar in meaning."
_NEWEST_RANKED = (
    "More items hold the words than are compared: the newest {count:,} are ranked. Add words or a filter to see others."
)
_SORT_ORDERS: dict[Sort, str] = {
    "taken": "taken DESC, id DESC",
    "added": "added_ns DESC, id DESC",
    "name": "path_folded, id",
}


@dataclass(frozen=True)
class _Ranked:
    """Entries, best first, which of them points and which of them words have brought up, and the words."""

    entries: IntArray
    sought: SoughtWords | None = None
    by_points: Set[int] = frozenset()
    by_words: Set[int] = frozenset()
    mode: Mode = "similarity"
    notes: tuple[str, ...] = ()

    def matched_by(self, entry: int) -> tuple[str, ...]:
        """Return what brought an entry up."""
        both = (self.by_points, "points"), (self.by_words, "words")
        return tuple(name for members, name in both if entry in members) or ("points",)


@dataclass(frozen=True)
class _HeldWords:
    """The fields in which an item holds sought words, whether it holds all of them, and where in its picture."""

    fields: tuple[str, ...] = ()
    are_all: bool = False
    in_picture: tuple[PictureWord, ...] = ()


def search(view: SearchView, request: SearchRequest) -> Answers:
    """Return the answers to a request from place ``offset`` on, at most ``k``."""
    started = time.perf_counter()
    query, k, offset = request.query, request.k, request.offset
    spelling, is_corrected = _spelling(view, query)
    if spelling is not None and is_corrected:
        query = spelling
    entries = Entries(view, request.side, _allowed_items(view, request))
    reranking = None if request.rerank is None else Reranking(request.rerank, request.rerank_by, entries)
    terms = tuple(_encoded(view, term, reranking) for term in query.terms)
    encoded = EncodedQuery(terms, entries.index.scoring, request.side, view.searched.retriever)
    uses_regions = request.regions and entries.region_index is not None and encoded.vector is not None
    if reranking is None and request.side == "image":
        encoded = _as_copy_lies(encoded, query.terms, entries)
    ranking = PointRanking(encoded, entries, bool(request.exact), uses_regions, reranking)
    is_sorted = request.sort != "relevance"
    ranked = _ranked(ranking, query, FUSED if is_sorted else offset + k, request.word_share)
    # Regions of a picture are about as many more chances to be near whatever is asked as another picture is.
    chances = entries.count + (entries.n_with_regions if uses_regions else 0)
    usual = encoded.cutoff_among(chances)
    # The best answers of all decide if there is a match and where good ones end, on every page.
    top = shown = ranked.entries[:k]
    points, regions = ranking.best_parts(shown)
    scores, probabilities = encoded.scores_and_probabilities(points)
    best = float(probabilities.max(initial=0.0))
    least, line = usual, encoded.line(best, usual)
    if request.min_probability is not None:
        least = line = request.min_probability
    if is_sorted or offset:
        everything = _sorted(ranking, ranked, line, request.sort) if is_sorted else ranked.entries
        shown = everything[offset : offset + k]
        points, regions = ranking.best_parts(shown)
        scores, probabilities = encoded.scores_and_probabilities(points)
    held = _held_words(entries, np.union1d(shown, top), ranked)
    answers = _answers(entries, shown, scores, probabilities, regions, ranked, held, offset)
    if request.min_probability is not None:
        answers = tuple(answer for answer in answers if answer.probability >= request.min_probability)
    has_words = any(held[entry].are_all for entry in top.tolist() if entry in held)
    field_notes = () if request.filter is None else _field_notes(view, request.filter)
    return Answers(
        answers,
        no_good_match=best < least and not has_words,
        considered=entries.count,
        exact=ranking.is_exact,
        seconds=time.perf_counter() - started,
        notes=(*ranked.notes, *_language_notes(view, query), *field_notes),
        retriever=view.searched.model.name,
        fingerprint=view.searched.model.fingerprint,
        cutoff=encoded.line(best, usual),
        mode=ranked.mode,
        did_you_mean=None if spelling is None else str(spelling),
        is_corrected=is_corrected,
    )


def _as_copy_lies(encoded: EncodedQuery, terms: Sequence[Term], entries: Entries) -> EncodedQuery:
    """Return a query by one picture, turned where the collection has a copy of it that was turned."""
    turned_points: Callable[[Any], AnyArray | None] | None = getattr(encoded.retriever, "turned_points", None)
    if len(terms) > 1 or terms[0].kind != "picture" or terms[0].weight <= 0 or turned_points is None:
        return encoded

    def best(form: EncodedQuery) -> float:
        nearest = PointRanking(form, entries, exact=False, uses_regions=False).nearest(1)
        return float(form.scores_and_probabilities(entries.vectors(nearest))[1].max(initial=0.0))

    points = None if best(encoded) > COPY_PROBABILITY else turned_points(terms[0].value)
    if points is None:
        return encoded
    forms = [replace(encoded, terms=(replace(encoded.terms[0], point=point[None]),)) for point in points]
    chosen = max(forms, key=best)
    return chosen if best(chosen) > COPY_PROBABILITY else encoded


def _spelling(view: SearchView, query: Query) -> tuple[Query | None, bool]:
    """Return a query with its misspelt words corrected, and whether that is sure; what is quoted stands as it is."""
    found = [
        corrected(term.value, partial(count_words, view.db)) if term.kind == "text" and not term.is_quoted else None
        for term in query.terms
    ]
    if not any(found):
        return None, False
    terms = [
        term if each is None else replace(term, value=each.text) for term, each in zip(query.terms, found, strict=True)
    ]
    return Query(tuple(terms)), all(each is None or each.is_sure for each in found)


def nearest(
    view: SearchView, points: AnyArray, k: int, *, side: Side, exact: bool = False
) -> tuple[AnyArray, FloatArray]:
    """Return the public ids and scores of the ``k`` nearest to each of many points of the space.

    Ids are those of items, or of captions for texts; an empty id fills up where there are fewer.
    """
    entries = Entries(view, side, None)
    names = np.full((len(points), k), "", dtype=object)
    scores = np.full(names.shape, -np.inf)
    wanted = min(k, entries.count)
    if not wanted or not len(points):
        return names, scores
    queries = entries.index.scoring.query_vectors(np.asarray(points))
    while True:
        found = entries.index.nearest(view.db, queries, wanted, exact=exact)
        contents = np.unique(found.contents[found.contents >= 0])
        ids, places = entries.of_contents(contents)
        order = np.argsort(places, kind="stable")
        ids, of = ids[order], contents[places[order]]
        starts = np.searchsorted(of, found.contents)
        counts = np.searchsorted(of, found.contents, side="right") - starts
        if (counts.sum(axis=1) >= min(k, entries.count)).all() or (found.contents < 0).any():
            break
        # Some of the nearest belong to items that were removed.
        wanted *= 4
    known = entries.names(ids)
    for row, (first, times, gains) in enumerate(zip(starts, counts, found.scores, strict=True)):
        mine = np.concatenate([ids[:0], *(ids[start : start + n] for start, n in zip(first, times, strict=True))])
        gained = np.repeat(gains, times)
        best = np.lexsort((mine, -gained))[:k]
        names[row, : len(best)] = [known[entry] for entry in mine[best].tolist()]
        scores[row, : len(best)] = gained[best]
    return names, scores


def _allowed_items(view: SearchView, request: SearchRequest) -> BoolArray | None:
    """Return which items may be found; None stands for all.

    A picture among pictures and a text among texts would answer a question about itself.
    """
    names = [term.value for term in request.query.terms if term.kind == "item"]
    asked = items_by_name(view.db, names).values() if names else ()
    itself = [number for number, item in asked if (item.path is None) == (request.side == "text")]
    if request.filter is None and not itself:
        return None
    allowed = view.columns.alive
    if request.filter is not None:
        # Imported lazily: most searches have no filter.
        from diptych.collection.store.filtering import matching_items

        allowed = matching_items(view.db, view.columns, request.filter)
    if itself:
        allowed = allowed.copy()
        allowed[itself] = False
    return allowed


def _encoded(view: SearchView, term: Term, reranking: Reranking | None) -> EncodedTerm:
    retriever = view.searched.retriever
    if term.kind == "item":
        return _encoded_item(view, term, reranking)
    if term.kind == "text":
        known = view.searched.embeddings.point(term.value)
        outputs = None if reranking is None else reranking.outputs("text", known.features)
        asks_short: Callable[[str], bool] | None = getattr(retriever, "is_short_query", None)
        is_short = asks_short is not None and asks_short(term.value)
        return EncodedTerm(known.point, term.weight, "text", known.is_unknown, outputs, is_short)
    if reranking is None:
        return EncodedTerm(retriever.encode_images([term.value]), term.weight, "image")
    features = reranking.source.image_features([term.value])
    outputs = reranking.outputs("image", features)
    return EncodedTerm(retriever.images_to_points(features), term.weight, "image", outputs=outputs)


def _encoded_item(view: SearchView, term: Term, reranking: Reranking | None) -> EncodedTerm:
    known = items_by_name(view.db, [term.value])
    if term.value not in known:
        raise UnknownItemError(f"there is no item {term.value!r} in the collection; take the id of an answer")
    number, item = known[term.value]
    for side in SIDES:
        if not view.searched.pointed(view.db, side)[0]:
            continue
        source = "item WHERE id = ?" if side == "image" else "caption WHERE item = ? ORDER BY place"
        contents = [content for (content,) in view.db.rows(f"SELECT content FROM {source}", (number,)) if content]
        owners, _, vectors = view.searched.indexes[side].vectors(view.db, sorted(set(contents)))
        first = [content for content in contents if content in owners][:1]
        if first:
            chosen = np.array(first)
            outputs = None if reranking is None else reranking.stored_outputs(side, chosen)[1]
            return EncodedTerm(vectors[owners == first[0]], term.weight, side, outputs=outputs)
    raise UnsearchableItemError(f"item {item.id} has neither a readable picture nor a caption to search with")


def _ranked(ranking: PointRanking, query: Query, k: int, share: float | None) -> _Ranked:
    if share is None:
        return _ranked_by_names(ranking, query, k)
    if share == 0:
        return _Ranked(ranking.nearest(k))
    hits = WordRanking(ranking.entries).with_most(query.words)
    worded = hits.ids.tolist()
    is_joined = share < 1
    nearest = ranking.nearest(max(FUSED, k) if is_joined else max(NEAR, k + len(worded))).tolist()
    first = nearest[: FUSED if is_joined else NEAR]
    fused = fuse_rankings(first, worded, share)
    known = set(fused)
    fused += [entry for entry in nearest[len(first) :] if entry not in known]
    notes = (_NEWEST_RANKED.format(count=MAX_CANDIDATES),) if hits.is_newest_of_more else ()
    chosen = np.array(fused[:k], dtype=np.int64)
    mode: Mode = "both" if is_joined else "words"
    return _Ranked(chosen, SoughtWords.of(query.words), set(first), set(worded), mode, notes)


def _ranked_by_names(ranking: PointRanking, query: Query, k: int) -> _Ranked:
    """Rank by similarity, and first of all what holds the words of a query that asks for something by its name."""
    sought = SoughtWords.of(query.words)
    if not sought.asks_by_name or any(term.kind != "text" and term.weight > 0 for term in query.terms):
        return _Ranked(ranking.nearest(k))
    entries = ranking.entries
    sought, worded = WordRanking(entries).named(sought)
    if not len(worded):
        return _Ranked(ranking.nearest(k), notes=(_NOT_QUOTED,) if sought.phrases else ())
    nearest = ranking.nearest(max(NEAR, k + len(worded)))
    # Among those that hold a name both rankings count, with ordinary words similarity; the others follow by it.
    joined = worded[np.lexsort((worded, -ranking.query.scores(entries.vectors(worded))))]
    if sought.phrases or sought.telling:
        joined = np.array(fuse_rankings(joined.tolist(), worded.tolist(), 0.5), dtype=np.int64)
    chosen = np.concatenate([joined, nearest[~np.isin(nearest, joined)]])[:k]
    return _Ranked(chosen, sought, set(nearest[:NEAR].tolist()), set(worded.tolist()), "both")


def _probabilities(ranking: PointRanking, ranked: IntArray) -> FloatArray:
    return ranking.query.scores_and_probabilities(ranking.best_parts(ranked)[0])[1]


def _sorted(ranking: PointRanking, ranked: _Ranked, cutoff: float, sort: Sort) -> IntArray:
    """Return the good answers among the best ones in another order."""
    ids = ranked.entries.tolist()
    is_good = _probabilities(ranking, ranked.entries) >= cutoff
    is_good |= np.array([entry in ranked.by_words for entry in ids], dtype=bool)
    entries = ranking.entries
    good = ranked.entries[is_good]
    owners = entries.item_ids(good)
    condition, values = entries.view.db.among("id", np.unique(owners))
    rows = entries.view.db.rows(f"SELECT id FROM item WHERE {condition} ORDER BY {_SORT_ORDERS[sort]}", values)
    places = {number: place for place, (number,) in enumerate(rows)}
    return good[np.lexsort((good, np.array([places[owner] for owner in owners.tolist()])))]


def _held_words(entries: Entries, some: IntArray, ranked: _Ranked) -> dict[int, _HeldWords]:
    """Return what the entries among some that words have brought up hold of these."""
    sought = ranked.sought
    worded = some[[entry in ranked.by_words for entry in some.tolist()]]
    if sought is None or not len(worded):
        return {}
    known = zip(worded.tolist(), entries.said_of(worded), strict=True)
    return {
        entry: _HeldWords(*sought.places_in(item, text), () if text is None else sought.boxes_in(text))
        for entry, (item, text) in known
    }


def _answers(
    entries: Entries,
    shown: IntArray,
    scores: FloatArray,
    probabilities: FloatArray,
    regions: list[PictureRegion | None],
    ranked: _Ranked,
    held: dict[int, _HeldWords],
    offset: int,
) -> tuple[Answer, ...]:
    answers = []
    captions = {} if entries.side == "image" else entries.names(shown)
    scored = zip(shown.tolist(), scores.tolist(), probabilities.tolist(), regions, entries.items_of(shown), strict=True)
    for rank, (entry, score, probability, region, item) in enumerate(scored, start=offset + 1):
        words = held.get(entry, _HeldWords())
        name = captions.get(entry)
        answers.append(
            Answer(
                rank=rank,
                id=item.id,
                path=None if item.path is None else entries.view.root.picture(item.path),
                score=score,
                probability=probability,
                caption=None if name is None else item.captions[item.caption_ids.index(name)],
                caption_id=name,
                matched_by=ranked.matched_by(entry),
                labels=item.labels,
                metadata=item.metadata,
                matched_fields=words.fields,
                has_words=words.are_all,
                picture_words=words.in_picture,
                region=region,
                item=item,
            )
        )
    return tuple(answers)


def _language_notes(view: SearchView, query: Query) -> tuple[str, ...]:
    """Say which languages of the query the retriever does not understand; some know nothing of languages."""
    note_of = getattr(view.searched.retriever, "language_note", None)
    if note_of is None:
        return ()
    notes = [note_of(term.value) for term in query.terms if term.kind == "text"]
    return tuple(dict.fromkeys(note for note in notes if note is not None))


def _field_notes(view: SearchView, wanted: Filter) -> tuple[str, ...]:
    """Say which fields of a filter no item has: most often they are misspelt."""
    held = {name: count for name, count in view.columns.field_counts.items() if name != LABEL}
    asked = [field for field in sorted(wanted.fields) if field.lower() not in OWN_FIELDS]
    unknown = [field for field in asked if field_name(field) not in held]
    if not unknown or not view.columns.n_items:
        return ()
    frequent = sorted(held, key=lambda name: -held[name])
    known = ", ".join((*OWN_FIELDS, *frequent[:MAX_FIELDS_NAMED]))
    more = ", …" if len(frequent) > MAX_FIELDS_NAMED else ""
    return tuple(f"no item has a field {field!r}; fields are {known}{more}" for field in unknown)
