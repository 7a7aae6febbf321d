"""A learned retriever in the place of the one before, the way back, and learning one from captions and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from diptych.collection.collection import Collection
from diptych.collection.indexing.add_report import Progress as StoreProgress
from diptych.collection.retriever_protocol import RetrieverProtocol
from diptych.collection.retrievers import StoredRetriever
from diptych.collection.store.model_history import (
    LearningRecord,
    Origin,
    change_to,
    from_to,
    learned_upon,
    utc_now,
)
from diptych.data import CaptionedPicture, CaptionedPictures, Pairs
from diptych.errors import CollectionError, InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders import Encoder
    from diptych.encoders.feature_cache import Progress
    from diptych.models import CrossModalModel
    from diptych.retriever import Comparison, Retriever
    from diptych.retriever.held_out_pairs import UnpairedItems


def promote(
    collection: Collection,
    retriever: RetrieverProtocol,
    record: LearningRecord,
    *,
    progress: StoreProgress | None = None,
) -> LearningRecord:
    """Let the collection use a learned retriever, keep the one before stored, and write that down.

    Where the same retriever is in force already, nothing changes and the record says so.
    """
    collection.add_retriever(retriever, progress=progress)
    before = active_retriever(collection)
    if before.fingerprint == retriever.fingerprint:
        reason = f"the search model in use was learned from the same {record.origin}"
        kept = replace(record, action="kept", reason=reason, **from_to(before, before))
        collection.note_retriever(kept)
        return kept
    (after,) = (each for each in collection.retrievers() if each.fingerprint == retriever.fingerprint)
    done = replace(record, action="promoted", **from_to(before, after))
    collection.activate_retriever(after.name, record=done)
    return done


def rollback(collection: Collection) -> LearningRecord:
    """Let the collection use the retriever from before the last change again; return what was written down.

    The retriever that leaves stays stored. After a second change, two calls lead back to the beginning.
    """
    now = active_retriever(collection)
    change = change_to(now.fingerprint, collection.retriever_history())
    if change is None:
        raise CollectionError(f"the search model {now.name!r} replaced no other one; there is nothing to roll back to")
    before = _stored(collection).get(change.before_fingerprint)
    if before is None:
        raise CollectionError(
            f"the search model {change.before!r} is no longer stored; set one with `diptych index --retriever`"
        )
    record = LearningRecord(time=utc_now(), action="rolled back", origin=change.origin, **from_to(now, before))
    collection.activate_retriever(before.name, record=record)
    return record


def rolls_back_to(collection: Collection) -> str | None:
    """Return the name of the retriever that going back would use again, None where there is none."""
    change = change_to(active_retriever(collection).fingerprint, collection.retriever_history())
    before = None if change is None else _stored(collection).get(change.before_fingerprint)
    return None if before is None else before.name


def _stored(collection: Collection) -> dict[str, StoredRetriever]:
    return {each.fingerprint: each for each in collection.retrievers()}


def active_retriever(collection: Collection) -> StoredRetriever:
    """Return the retriever in force."""
    return collection.retrievers()[0]


def base_name(collection: Collection, *origins: Origin) -> str:
    """Return the name of the stored retriever that learning starts from: beneath what was learned before, not on top.

    ``origins`` say what it was learned from.
    """
    stored = _stored(collection)
    chain = learned_upon(active_retriever(collection).fingerprint, collection.retriever_history(), *origins)
    return next(stored[fingerprint] for fingerprint in reversed(chain) if fingerprint in stored).name


def training_pairs(collection: Collection, note: Callable[[str], None]) -> Pairs:
    """Return the collection's pictures with their captions, or with their labels as words where there are none.

    ``note`` is told what the person who asked should know.
    """
    items = [item for item in collection if item.path is not None]
    captioned, labelled = [item for item in items if item.captions], [item for item in items if item.labels]
    chosen = captioned or labelled
    if chosen and not captioned:
        note("there are no captions, so the labels are the words to learn from")
    if not chosen:
        raise InvalidInputError(
            "the collection has neither captions nor labels to learn from; add some with: "
            "diptych index FOLDER --captions FILE"
        )
    collection.check_root()
    pictures = [
        CaptionedPicture(collection.root / (item.path or ""), item.captions or item.labels, item.labels)
        for item in chosen
    ]
    there = {picture.path: picture for picture in pictures if picture.path.is_file()}
    if len(there) < len(pictures):
        note(f"{len(pictures) - len(there):,} pictures are no longer there and are left out")
    return CaptionedPictures(collection.root, there).pairs()


def unpaired_items(collection: Collection, pairs: Pairs, queries: Iterable[str] = ()) -> UnpairedItems:
    """Return the photographs that are in none of the pairs, and texts without one: text items and logged queries.

    Of many, a sample is drawn.
    """
    from diptych.retriever.held_out_pairs import UnpairedItems

    described = {str(picture) for picture in pairs.images}
    items = list(collection)
    pictures = (collection.root / item.path for item in items if item.path is not None and item.content_hash)
    texts = [caption for item in items if item.path is None for caption in item.captions]
    others = [picture for picture in pictures if str(picture) not in described]
    return UnpairedItems(others, list(dict.fromkeys([*texts, *queries])))


@dataclass(frozen=True)
class TrainingReport:
    """What was measured on held-out pictures, and what became of it.

    ``record`` is what the history keeps, ``retriever`` what was learned, None where it was not taken.
    """

    comparison: Comparison
    record: LearningRecord
    retriever: Retriever | None = None

    @property
    def is_taken(self) -> bool:
        """Whether the collection uses what was learned."""
        return self.record.action == "promoted"


class Training:
    """Learns a retriever with the encoders that a collection uses, and changes to it only if it passes the gate.

    A method of pictures and texts themselves (`MNiL`) brings its own; after it, others start from the default ones.
    What was learned from captions before has seen the pictures that are held out, so the one beneath it is compared.

    Parameters
    ----------
    collection :
        The collection; its present retriever is what the new one has to beat, and gives the encoders; if it was learned
        from clicks, the one beneath it does.
    method, parameters :
        The model to learn; without a method it is learned beside what the present one knows.
    """

    def __init__(self, collection: Collection, *, method: str | None, parameters: Mapping[str, Any]) -> None:
        from diptych.models.registry import build_model
        from diptych.retriever import Retriever

        rival = collection.retriever_named(base_name(collection, "captions"))
        if not isinstance(rival, Retriever):
            raise InvalidInputError(f"a collection with a {type(rival).__name__} cannot be trained from here")
        if method is None and parameters:
            raise InvalidInputError("parameters belong to a method; name the method as well")
        model = None if method is None else build_model(method, parameters, among=("features", "items"))
        self._collection = collection
        self._rival = rival
        # What was learned from clicks reads words through the log, which is nothing to learn captions with.
        base = collection.retriever_named(base_name(collection, "clicks", "captions"))
        self._new = Retriever(
            **_encoders(base if isinstance(base, Retriever) else rival, model),
            model=model,
            name="trained" if method is None else f"trained {method}",
            cache=rival.cache,
        )

    def run(
        self,
        pairs: Pairs,
        *,
        unpaired: UnpairedItems | None = None,
        held_out: float = 0.2,
        seed: int = 0,
        force: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
        epochs: Callable[[Any], None] | None = None,
        reencoding: StoreProgress | None = None,
    ) -> TrainingReport:
        """Learn, compare, take what passes the gate, and write it down; with ``dry_run`` compare only.

        ``unpaired`` are the collection's other pictures and texts, see `unpaired_items`; without a method they are
        learned from as well. ``force`` takes it in any case. ``progress`` and ``epochs`` are told of learning,
        ``reencoding`` of the points that every item gets afterwards.
        """
        learned = self._new.fit(
            pairs,
            unpaired=unpaired,
            baseline=self._rival,
            held_out=held_out,
            seed=seed,
            force=force,
            progress=progress,
            epochs=epochs,
        )
        comparison = learned.comparison_
        root = f"{self._collection.root}/"
        comparison.next_pictures = [picture.removeprefix(root) for picture in comparison.next_pictures]
        found = learned if comparison.replaced else None
        record = self._record(comparison, pairs)
        if not dry_run and found is None:
            self._collection.note_retriever(record)
        elif not dry_run:
            record = promote(self._collection, learned, record, progress=reencoding)
        return TrainingReport(comparison, record, found)

    def _record(self, comparison: Comparison, pairs: Pairs) -> LearningRecord:
        now = active_retriever(self._collection)
        return LearningRecord(
            time=utc_now(),
            action="kept",
            **from_to(now, now),
            reason=comparison.reason,
            compared_with=comparison.baseline or "",
            measure="MAP",
            old=comparison.old,
            new=comparison.new,
            p_value=comparison.p_value,
            alpha=comparison.alpha,
            n_queries=pairs.n_images,
            n_held_out=comparison.n_held_out,
            origin="captions",
            gate={
                **comparison.get_params(),
                "advice": comparison.advice,
                "passes": comparison.passes,
                "learned_from": comparison.learned_from,
            },
        )


def _encoders(present: Retriever, model: CrossModalModel | None) -> dict[str, Encoder]:
    """Return the encoders to learn with; what is left out is the default retriever's."""
    from diptych.models.item_model import ItemModel
    from diptych.retriever import ImageTower

    if isinstance(present.image_encoder_, ImageTower):
        # The points of a trained network are no features to learn from, and would be saved a second time.
        return {}
    if not isinstance(model, ItemModel):
        return {"image_encoder": present.image_encoder_, "text_encoder": present.text_encoder_}
    return {} if model.takes_pictures else {"image_encoder": present.image_encoder_}
