from __future__ import annotations

from pathlib import Path

import pytest

from diptych.data import dataset_names, describe_datasets, find_dataset, load_dataset
from diptych.errors import InvalidInputError, MissingDataError, UnknownNameError


def test_names_are_unique_and_known() -> None:
    assert set(dataset_names()) >= {"wikipedia", "pascal_sentence", "flickr8k", "scenes"}
    assert len(set(dataset_names())) == len(dataset_names())


@pytest.mark.parametrize("name", dataset_names())
def test_every_declaration_is_complete_and_explains_its_options(name: str) -> None:
    dataset = find_dataset(name)
    assert all((dataset.summary, dataset.homepage, dataset.citation, dataset.licence, dataset.splits))
    assert dataset.options.keys() == dataset.defaults.keys()
    assert all(dataset.options.values())


def test_a_typo_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'flickr8k'"):
        load_dataset("flicker8k")


def test_an_unknown_option_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"no option 'feature'; it knows: features"):
        load_dataset("wikipedia", feature="tfidf")


@pytest.mark.parametrize("name", [dataset.name for dataset in describe_datasets() if dataset.files])
def test_missing_data_says_what_where_and_how(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPTYCH_DATA", str(tmp_path))
    dataset = find_dataset(name)
    assert not dataset.is_available
    with pytest.raises(MissingDataError) as caught:
        load_dataset(name)
    message = str(caught.value)
    for part in (str(tmp_path / name), dataset.homepage, "DIPTYCH_DATA", *dataset.files):
        assert part in message
