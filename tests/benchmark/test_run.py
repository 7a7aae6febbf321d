"""Many methods on many folds: resumed, repeatable, without leaks."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from typer.testing import CliRunner

from diptych.benchmark import (
    Catalogue,
    Failure,
    Features,
    OwnData,
    Plugin,
    ResultFolder,
    Unit,
    choose,
    declared_tasks,
    run_benchmark,
    run_unit,
)
from diptych.cli import app
from diptych.data import DatasetSplits, Pairs
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import AP
from diptych.models import model_classes
from diptych.models.hashing.hashing_model import HashingModel
from diptych.protocols import UnseenClasses, evaluate_retrieval

PLUGIN = '''
from diptych.models import CrossModalModel

class Coordinates(CrossModalModel):
    """The first coordinates of both sides, as they are."""

    grid = {"n_coordinates": [1, 4]}

    def __init__(self, *, n_coordinates=2, metric="cosine"):
        self.n_coordinates = n_coordinates
        self.metric = metric

    def _fit(self, images, texts, targets):
        if self.n_coordinates > 4:
            raise ArithmeticError("too many\\ncoordinates")

    def _encode_images(self, images):
        return images[:, : self.n_coordinates]

    _encode_texts = _encode_images
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    labels = np.arange(96) % 8
    meaning = 2 * np.eye(8)[labels] + 0.5 * rng.normal(size=(96, 8))
    path = tmp_path_factory.mktemp("own") / "My data.npz"
    np.savez(path, images=meaning @ rng.normal(size=(8, 9)), texts=meaning, labels=[f"c{label}" for label in labels])
    return path


@pytest.fixture(scope="module")
def catalogue(file):
    return Catalogue(data=OwnData(str(file)), folds=2)


METHODS = ("random", "cca", "ts", "cvh-8")
WORD_METHODS = {"mnil", "devise", "psi", "query-based-scoring", "query-memory", "text2image"}


@pytest.fixture(scope="module")
def serial(catalogue, tmp_path_factory):
    folder = ResultFolder(tmp_path_factory.mktemp("serial"))
    report = run_benchmark(catalogue, catalogue.units(["extendable-*"], METHODS), folder)
    assert report.failures == ()
    return folder


def numbers(folder):
    return {record.key: record.numbers() for record in folder.records()}


def test_own_data_become_a_task_under_every_protocol_that_fits(catalogue, tmp_path):
    assert list(catalogue.tasks()) == [
        "standard-my-data",
        "draws-my-data",
        "extendable-my-data-seen",
        "extendable-my-data-unseen",
    ]
    np.savez(tmp_path / "bare.npz", images=np.eye(30), texts=np.eye(30))
    bare = Catalogue(data=OwnData(str(tmp_path / "bare.npz"))).tasks()
    assert list(bare) == ["standard-bare", "draws-bare"]
    assert all("labels" not in entry.method.needs for entry in bare["draws-bare"].methods)


def test_folder_and_csv_hold_the_same_as_an_npz(file, tmp_path):
    arrays = dict(np.load(file))
    split = np.where(np.arange(96) < 60, "train", "test")
    for name in ("images", "texts"):
        np.save(tmp_path / f"{name}.npy", arrays[name])
    (tmp_path / "labels.txt").write_text("\n".join(arrays["labels"]))
    (tmp_path / "split.txt").write_text("\n".join(split))
    header = [f"{side}{column}" for side, n in (("image", 9), ("text", 8)) for column in range(n)]
    rows = np.hstack([arrays["images"], arrays["texts"]]).astype(str)
    lines = [",".join([*row, label, part]) for row, label, part in zip(rows, arrays["labels"], split, strict=True)]
    (tmp_path / "all.csv").write_text("\n".join([",".join([*header, "label", "split"]), *lines]))
    first, second = OwnData(str(tmp_path)).load(), OwnData(str(tmp_path / "all.csv")).load()
    assert first.train.n_images == second.train.n_images == 60
    assert np.allclose(first.test.images, second.test.images)
    assert first.test.labels.tolist() == second.test.labels.tolist() == arrays["labels"][60:].tolist()
    with pytest.raises(InvalidInputError, match="does not exist"):
        OwnData(str(tmp_path / "other.csv")).load()


def test_a_record_says_what_a_direct_evaluation_says(catalogue, serial):
    task = catalogue.task("extendable-my-data-unseen")
    fold = task.fold(task.load(), 1)
    record = serial.find("extendable-my-data-unseen", "cca", 1)
    entry = task.method("cca")
    model = clone(entry.model).set_params(**{f"model__{name}": value for name, value in record.parameters.items()})
    result = evaluate_retrieval(model.fit(*fold.training.pairs.aligned()), fold.retrieval, task.measures)
    for way in ("image_query", "text_query"):
        assert record.measures["AP()"][way] == pytest.approx(result[way][AP()], abs=1e-12)
        assert np.mean(record.per_query["AP()"][way]) == pytest.approx(record.measures["AP()"][way], abs=1e-5)
        assert record.measures["CMC@1"][way] == pytest.approx(record.curves["cmc"][way]["y"][0], abs=1e-6)
        counts = np.array(record.confusion[way]["counts"])
        assert counts.sum() == record.n_queries[way] == len(record.query_classes[way])
    assert sorted(record.classes) == sorted(record.test_classes) == sorted(set(fold.retrieval.queries.labels))
    assert record.chance["AP()"]["image_query"] < record.average()
    assert record.validation["trials"] == len(ParameterGrid([*entry.grid]))
    assert record.space == "cosine"
    assert record.code_statistics is None
    codes = serial.find("extendable-my-data-seen", "cvh-8", 0)
    assert (codes.n_bits, codes.group, codes.code_statistics["image"]["bytes_per_item"]) == (8, "hashing", 1)


def test_two_runs_give_identical_numbers_however_many_processes(catalogue, serial, tmp_path):
    units = catalogue.units(["extendable-*"], METHODS)
    report = run_benchmark(catalogue, units, ResultFolder(tmp_path), jobs=2)
    assert len(report.done) == len(units) == 16
    assert numbers(ResultFolder(tmp_path)) == numbers(serial)


def test_what_is_done_is_not_repeated_and_a_changed_declaration_is_noticed(catalogue, serial, tmp_path):
    units = catalogue.units(["extendable-*"], ["cca"])
    folder = ResultFolder(tmp_path)
    for unit in units[:3]:
        folder.write(serial.find(unit.task, unit.method, unit.fold))
    folder.write(replace(serial.find(units[0].task, "cca", units[0].fold), fingerprint="another grid"))
    folder.file(units[1].task, "cca", units[1].fold).write_text("cut off")
    report = run_benchmark(catalogue, units, folder)
    assert (len(report.done), report.kept, report.outdated) == (3, 1, 1)
    assert numbers(folder) == {key: value for key, value in numbers(serial).items() if key[1] == "cca"}
    assert run_benchmark(Catalogue(catalogue.plugins, catalogue.data, folds=1), units[:1], folder).kept == 1
    assert run_benchmark(Catalogue(catalogue.plugins, catalogue.data, 1, seed=5), units[:1], folder).outdated == 1


def test_changed_data_are_another_declaration(file, tmp_path):
    arrays = dict(np.load(file))
    np.savez(tmp_path / file.name, **{**arrays, "texts": arrays["texts"] + 1})
    unit = Unit("extendable-my-data-seen", 0, "cca")
    prints = []
    for path in (file, tmp_path / file.name):
        task = Catalogue(data=OwnData(str(path))).task(unit.task)
        prints.append(task.fingerprint(task.method("cca")))
    assert prints[0] != prints[1]


def test_nothing_that_is_asked_later_changes_what_is_learned(catalogue):
    task = catalogue.task("extendable-my-data-unseen")
    splits = task.load()
    fold = task.fold(splits, 0)
    rng = np.random.default_rng(7)
    hidden = np.isin(splits.train.labels, fold.test_classes)

    def spoiled(rows, mask):
        return np.where(mask[:, None], rng.normal(size=rows.shape), rows).astype(np.float32)

    train, test = splits.train, splits.test
    everything = np.ones(test.n_images, dtype=bool)
    other = DatasetSplits(
        train=train.with_features(spoiled(train.images, hidden), spoiled(train.texts, hidden)),
        test=test.with_features(spoiled(test.images, everything), spoiled(test.texts, everything)),
    )
    for key in ("cca", "sm", "cvh-8", "gmlda"):
        first, second = (choose(task.method(key), task.fold(one, 0).training, AP()) for one in (splits, other))
        assert (first.parameters, first.mean) == (second.parameters, second.mean)
        rows = fold.training.pairs.images
        assert np.array_equal(first.model.encode_images(rows), second.model.encode_images(rows))


def test_features_learn_from_the_training_pairs_of_a_fold_alone():
    rng = np.random.default_rng(3)
    words = np.array(["red", "blue", "boat", "tree", "dog", "fish", "sky", "sand"])
    parts = {}
    for part, n in (("train", 64), ("test", 24)):
        texts = [" ".join(rng.choice(words, size=5)) for _ in range(n)]
        parts[part] = Pairs(rng.normal(size=(n, 8)), texts, labels=[f"c{row % 8}" for row in range(n)])
    splits = DatasetSplits(**parts)
    features = Features("learned", components=(6, 4))
    assert features.of_splits(splits) is splits
    first = features.of_fold(UnseenClasses().fold(splits, 0), splits)
    others = replace(splits, test=replace(splits.test, texts=tuple(f"other words {row}" for row in range(24))))
    second = features.of_fold(UnseenClasses().fold(others, 0), others)
    assert first.training.pairs.texts.shape[1] == 4
    assert np.array_equal(first.training.pairs.texts, second.training.pairs.texts)
    assert np.array_equal(first.retrieval.gallery.texts, second.retrieval.gallery.texts)
    assert not np.array_equal(first.retrieval.queries.texts, second.retrieval.queries.texts)


def test_every_method_takes_part_in_every_extendable_task():
    for task in declared_tasks():
        keys = [entry.name for entry in task.methods]
        assert len(keys) == len(set(keys))
        if not task.name.startswith("extendable"):
            continue
        taking_part = {type(entry.method) for entry in task.methods}
        assert {cls.__name__ for cls in model_classes().values() if cls not in taking_part} == {"ConSE"}
        bits = {(type(entry.method), entry.n_bits) for entry in task.methods if entry.n_bits}
        reads_words = {entry.name for entry in task.methods if entry.reads == "words"}
        assert reads_words == (set() if "wikipedia" in task.name else WORD_METHODS)
        hashing = [cls for cls in model_classes().values() if issubclass(cls, HashingModel)]
        assert bits == {(cls, n_bits) for cls in hashing for n_bits in (8, 16, 32)}
    assert all("labels" not in entry.method.needs for entry in Catalogue().task("flickr8k").methods)


def test_a_plugin_takes_part_and_a_failing_one_is_one_line(file, tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(PLUGIN)
    catalogue = Catalogue((Plugin.read(plugin),), OwnData(str(file)), folds=1)
    record = run_unit(catalogue, Unit("extendable-my-data-seen", 0, "coordinates"))
    assert record.group == "plugin"
    assert record.parameters["n_coordinates"] in (1, 4)
    broken = Catalogue((Plugin("mine.py", PLUGIN.replace("[1, 4]", "[1, 9]")),), OwnData(str(file)), folds=1)
    failure = run_unit(broken, Unit("extendable-my-data-seen", 0, "coordinates"))
    assert failure == Failure(failure.unit, "ArithmeticError: too many coordinates")
    with pytest.raises(InvalidInputError, match=r"empty\.py defines no subclass"):
        Plugin("empty.py", "x = 1").classes()
    with pytest.raises(UnknownNameError, match="unknown method 'cda'"):
        catalogue.units(["*"], ["cda"])


def test_the_command_runs_resumes_and_says_what_failed(file, tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(PLUGIN)
    bad.write_text(PLUGIN.replace("Coordinates", "Broken").replace("[1, 4]", "[9]"))
    run = ["run", "--data", str(file), "-t", "extendable-*-seen", "--folds", "1", "-j", "1", "-r", str(tmp_path / "r")]
    methods = ["-m", "coordinates", "-m", "random"]
    first = CliRunner().invoke(app, ["bench", *run, *methods, "--plugin", str(good)])
    assert first.exit_code == 0, first.output
    assert "Coordinates" in first.stdout
    assert "2 run, 0 kept" in first.stderr
    again = CliRunner().invoke(
        app, ["bench", *run, *methods, "-m", "broken", "--plugin", str(good), "--plugin", str(bad)]
    )
    assert again.exit_code == 1
    assert "failed extendable-my-data-seen, broken, fold 0: ArithmeticError: too many coordinates" in again.stderr
    assert "0 run, 2 kept, 1 failed" in again.stderr
    told = json.loads(CliRunner().invoke(app, ["bench", *run, *methods, "--plugin", str(good), "--json"]).stdout)
    assert (told["kept"], len(told["units"])) == (2, 2)
    listed = CliRunner().invoke(app, ["bench", *run, "-m", "cvh-*", "--list"])
    assert listed.stdout.split() == [
        word for bits in ("8", "16", "32") for word in ("extendable-my-data-seen", f"cvh-{bits}", "0")
    ]
