"""A collection beside a plain dictionary, through random histories."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from diptych.collection import Collection, Query, Record
from tests.doubles import ToyRetriever

NAMES = [f"{letter}.png" for letter in "abcdef"]
CONTENTS = [f"content {number}" for number in range(4)]
TEXTS = [f"text {number}" for number in range(6)]
LABELS = ["x", "y"]


class History(RuleBasedStateMachine):
    """Each rule changes the collection and a model of it: path to (content, captions, labels)."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.photos = self.folder / "photos"
        self.photos.mkdir()
        self.turn = 0
        # Further retrievers: turns by name; those that rest get no points of new items.
        self.further: dict[str, int] = {}
        self.resting: set[str] = set()
        self.collection = Collection.create(self.photos / ".diptych", ToyRetriever(), load_retriever=ToyRetriever.load)
        # Another process, as far as the collection can tell.
        self.reader = Collection.open(self.photos / ".diptych", load_retriever=ToyRetriever.load)
        self.model: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {}

    @rule(
        name=st.sampled_from(NAMES),
        content=st.sampled_from(CONTENTS),
        captions=st.one_of(st.none(), st.lists(st.sampled_from(TEXTS), max_size=3)),
        labels=st.one_of(st.none(), st.lists(st.sampled_from(LABELS), max_size=2, unique=True)),
    )
    def add(self, name: str, content: str, captions: list[str] | None, labels: list[str] | None) -> None:
        (self.photos / name).write_text(content)
        self.collection.add([Record(self.photos / name, captions=captions, labels=labels)])
        old = self.model.get(name, ("", (), ()))
        self.model[name] = (
            content,
            old[1] if captions is None else tuple(captions),
            old[2] if labels is None else tuple(labels),
        )

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        self.collection.remove(name)
        (self.photos / name).unlink()
        del self.model[name]

    @precondition(lambda self: 0 < len(self.model) < len(NAMES))
    @rule(data=st.data())
    def rename(self, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from(sorted(self.model)))
        new = data.draw(st.sampled_from(sorted(set(NAMES) - set(self.model))))
        (self.photos / old).rename(self.photos / new)
        report = self.collection.refresh()
        assert (report.renamed, report.added, report.removed) == (1, 0, [])
        self.model[new] = self.model.pop(old)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), captions=st.lists(st.sampled_from(TEXTS), max_size=3))
    def update(self, data: st.DataObject, captions: list[str]) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        self.collection.update(name, captions=captions)
        self.model[name] = (self.model[name][0], tuple(captions), self.model[name][2])

    @rule()
    def reopen(self) -> None:
        self.collection.close()
        self.collection = Collection.open(self.photos / ".diptych", load_retriever=ToyRetriever.load)

    @rule(by_reader=st.booleans(), lose=st.booleans())
    def build_index(self, by_reader: bool, lose: bool) -> None:
        """Make the vector files, which any process may do, and may lose."""
        if lose:
            shutil.rmtree(self.collection.folder / "derived", ignore_errors=True)
        (self.reader if by_reader else self.collection).build_index()

    @rule()
    def repair(self) -> None:
        assert self.collection.repair().is_whole

    @rule(turn=st.integers(0, 2), keep=st.booleans())
    def change_retriever(self, turn: int, keep: bool) -> None:
        self.collection.set_retriever(ToyRetriever(turn), keep=keep)
        if turn != self.turn:
            if keep:
                self.further[f"toy {self.turn}"] = self.turn
                self.resting.add(f"toy {self.turn}")
            self.further.pop(f"toy {turn}", None)
            self.resting.discard(f"toy {turn}")
            self.turn = turn

    @rule(turn=st.integers(0, 2))
    def add_retriever(self, turn: int) -> None:
        self.collection.add_retriever(ToyRetriever(turn))
        self.resting.discard(f"toy {turn}")
        if turn != self.turn:
            self.further[f"toy {turn}"] = turn

    @precondition(lambda self: self.further)
    @rule(data=st.data())
    def activate_retriever(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.further)))
        self.collection.activate_retriever(name)
        self.further[f"toy {self.turn}"] = self.turn
        self.turn = self.further.pop(name)
        self.resting.discard(name)

    @precondition(lambda self: self.further)
    @rule(data=st.data())
    def remove_retriever(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.further)))
        self.collection.remove_retriever(name)
        del self.further[name]
        self.resting.discard(name)

    @rule(
        data=st.data(),
        words=st.sampled_from(TEXTS),
        label=st.one_of(st.none(), st.sampled_from(LABELS)),
        k=st.integers(1, 4),
    )
    def search_pictures(self, data: st.DataObject, words: str, label: str | None, k: int) -> None:
        with_name = data.draw(st.sampled_from([None, *sorted(set(self.further) - self.resting)]))
        retriever = ToyRetriever(self.turn if with_name is None else self.further[with_name])
        names = [name for name, (_, _, labels) in self.model.items() if label is None or label in labels]
        wanted = None if label is None else f"label:{label}"
        asked = data.draw(st.sampled_from([self.collection, self.reader]))
        answers = asked.search(Query.text(words), k=k, filter=wanted, retriever=with_name)
        assert answers.considered == len(names)
        if not names:
            assert len(answers) == 0
            return
        gallery = retriever.encode_images([self.photos / name for name in names])
        scores = retriever.space.compare(retriever.encode_texts([words]), gallery)[0]
        np.testing.assert_allclose([answer.score for answer in answers], np.sort(scores)[::-1][:k], atol=1e-3)
        by_name = dict(zip(names, scores, strict=True))
        for answer in answers:
            assert answer.path is not None
            np.testing.assert_allclose(answer.score, by_name[answer.path.name], atol=1e-3)

    @rule(limit=st.integers(1, 3), label=st.one_of(st.none(), st.sampled_from(LABELS)))
    def count_labels(self, limit: int, label: str | None) -> None:
        held = [set(labels) for _, _, labels in self.model.values() if label is None or label in labels]
        counts = {name: sum(name in labels for labels in held) for name in LABELS}
        expected = sorted(((-count, name) for name, count in counts.items() if count))[:limit]
        facets = self.collection.facets(None if label is None else f"label={label}", limit=limit)
        found = [(-value.count, value.value) for facet in facets for value in facet.values]
        # With one value shown and one item each there is nothing to choose by.
        assert found == expected or (found == [] and limit == 1 and max(counts.values()) == 1)

    @rule(words=st.sampled_from(TEXTS), k=st.integers(1, 4))
    def search_captions(self, words: str, k: int) -> None:
        captions = [text for _, texts, _ in self.model.values() for text in texts]
        answers = self.collection.search(words, k=k, target="texts")
        assert len(answers) == min(k, len(captions))
        if words in captions:
            assert answers[0].caption == words
            assert answers[0].path is not None
            assert words in self.model[answers[0].path.name][1]

    @invariant()
    def retrievers_are_those_of_the_model(self) -> None:
        found = {
            (one.fingerprint, one.active, one.ready, one.name in self.resting or one.missing == 0)
            for one in self.collection.retrievers()
        }
        further = {(f"toy-cosine-{turn}", False, True, True) for turn in self.further.values()}
        assert found == {(f"toy-cosine-{self.turn}", True, True, True)} | further

    @invariant()
    def items_are_those_of_the_model(self) -> None:
        found = {str(item.path): (item.captions, item.labels) for item in self.collection}
        assert found == {name: (captions, labels) for name, (_, captions, labels) in self.model.items()}

    @rule()
    def look_from_elsewhere(self) -> None:
        with Collection.open(self.photos / ".diptych", load_retriever=ToyRetriever.load) as fresh:
            assert list(self.reader) == list(fresh) == list(self.collection)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.collection.close()
            self.reader.close()
            shutil.rmtree(self.folder, ignore_errors=True)


TestHistory = History.TestCase
TestHistory.settings = settings(
    max_examples=12, stateful_step_count=15, suppress_health_check=list(HealthCheck), deadline=None
)
