"""Model folders: bit-exact round trips, and one clear error for anything that is not a whole model."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.linear_model import LogisticRegression

from diptych.errors import InvalidInputError, ModelFileError
from diptych.models import CCA, SM, load_model
from diptych.models.files import model_digest


def test_round_trip_is_bit_exact_for_every_model(model, problem, tmp_path):
    fitted = problem.fitted(model)
    fitted.save(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["arrays.safetensors", "model.json"]
    again = load_model(tmp_path / "model")
    assert type(again) is type(fitted)
    assert repr(again) == repr(fitted)
    assert again.space == fitted.space
    for dtype in (np.float64, np.float32):
        images, texts = problem.images.astype(dtype), problem.texts.astype(dtype)
        np.testing.assert_array_equal(again.encode_images(images), fitted.encode_images(images))
        np.testing.assert_array_equal(again.encode_texts(texts), fitted.encode_texts(texts))
        np.testing.assert_array_equal(again.similarity(images, texts), fitted.similarity(images, texts))


def test_a_loaded_model_saves_the_same_arrays_again(model, problem, tmp_path):
    problem.fitted(model).save(tmp_path / "one")
    load_model(tmp_path / "one").save(tmp_path / "two")
    first, second = ((tmp_path / name / "arrays.safetensors").read_bytes() for name in ("one", "two"))
    assert first == second


@pytest.fixture
def folder(problem, tmp_path) -> Path:
    problem.fit(SM()).save(tmp_path / "sm")
    return tmp_path / "sm"


def rewrite(path: Path, **changes) -> None:
    """Change fields of model.json and sign it again, as somebody who knows the format could."""
    from diptych.models.files import _checksum

    document = json.loads(path.read_text())
    document.update(changes)
    document["checksum"] = _checksum(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("name", ["model.json", "arrays.safetensors"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "delete", "empty", "append"])
def test_damaged_files_are_refused(folder, name, damage):
    path = folder / name
    content = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        middle = len(content) // 2
        changed = {
            "truncate": content[:middle],
            "flip": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "empty": b"",
            "append": content + b"x",
        }
        path.write_bytes(changed[damage])
    with pytest.raises(ModelFileError) as problem:
        load_model(folder)
    assert str(folder) in str(problem.value)
    assert "\n" not in str(problem.value)


def test_every_truncation_is_refused(folder):
    for name in ("model.json", "arrays.safetensors"):
        content = (folder / name).read_bytes()
        for length in range(0, len(content) - 1, max(1, len(content) // 25)):
            (folder / name).write_bytes(content[:length])
            with pytest.raises(ModelFileError):
                load_model(folder)
        (folder / name).write_bytes(content)
    load_model(folder)


def test_foreign_folders_are_refused(tmp_path):
    with pytest.raises(ModelFileError, match=r"model\.json is missing"):
        load_model(tmp_path)
    (tmp_path / "model.json").write_text("[1, 2]")
    with pytest.raises(ModelFileError, match="not written by Diptych"):
        load_model(tmp_path)
    (tmp_path / "model.json").write_text('{"format": "other"}')
    with pytest.raises(ModelFileError, match="not written by Diptych"):
        load_model(tmp_path)
    (tmp_path / "model.json").write_text("[" * 100_000)
    with pytest.raises(ModelFileError, match="not valid JSON"):
        load_model(tmp_path)


def test_other_versions_say_what_to_do(folder):
    rewrite(folder / "model.json", format_version=99, versions={"diptych": "9.0"})
    with pytest.raises(ModelFileError, match=r"version 99.*install Diptych 9\.0 or fit the model again"):
        load_model(folder)


@pytest.mark.parametrize(
    "content",
    [
        {"class": "os.system", "parameters": {}, "learned": {}},
        {"class": "CCA", "parameters": {"no_such": 1}, "learned": {}},
        {"class": "CCA", "parameters": {}, "learned": {"fit": 1}},
        {"class": "CCA", "parameters": {}, "learned": {"__class__": "x"}},
        {"class": "CCA", "parameters": {}, "learned": {"correlations_": {"$array": "no_such"}}},
        {"class": "CCA", "parameters": {}, "learned": {"correlations_": {"$eval": "1"}}},
        {"class": "CCA", "parameters": {}, "learned": {}},
        {"parameters": {}},
        {"class": "CCA", "parameters": {}, "learned": {"a_": {"$strings": ["x" * 100_000] + [""] * 20_000}}},
        {"class": "CCA", "parameters": {}, "learned": {"a_": {"$strings": 3}}},
        [],
        "CCA",
    ],
)
def test_well_signed_nonsense_is_refused_too(folder, content):
    rewrite(folder / "model.json", model=content)
    with pytest.raises(ModelFileError):
        load_model(folder)


@pytest.mark.parametrize("version", [1, True, 2.0, "2", None, [2], 10**400])
def test_what_is_no_version_is_refused(folder, version):
    rewrite(folder / "model.json", format_version=version)
    with pytest.raises(ModelFileError, match="version"):
        load_model(folder)


def replace_array(folder, name, kind, shape, content):
    """Put another array into the file of a model, of a kind that NumPy may not have, and sign it as a whole."""
    path = folder / "arrays.safetensors"
    kinds = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "bool": "BOOL", "uint8": "U8"}
    arrays = {key: (kinds[str(one.dtype)], one.shape, one.tobytes()) for key, one in load_file(path).items()}
    about, body = {}, b""
    for key, (dtype, size, data) in {**arrays, name: (kind, shape, content)}.items():
        about[key] = {"dtype": dtype, "shape": list(size), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    head = json.dumps(about).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + body)
    rewrite(folder / "model.json", arrays_sha256=hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.mark.parametrize(
    ("kind", "shape", "content"),
    [
        ("BF16", (2, 2), bytes(8)),
        ("F8_E4M3", (2, 2), bytes(4)),
        ("F64", (2, 2), np.full(4, np.nan).tobytes()),
        ("F64", (3, 2), bytes(48)),
        ("F64", (4,), bytes(32)),
        ("F64", (2, 2), bytes(16)),
        ("F64", (2**40, 2), bytes(32)),
        ("nonsense", (2, 2), bytes(32)),
    ],
)
def test_arrays_that_are_not_those_of_the_model_are_refused(tmp_path, kind, shape, content):
    rng = np.random.default_rng(0)
    CCA(n_components=2).fit(rng.normal(size=(30, 2)), rng.normal(size=(30, 2))).save(tmp_path)
    assert load_file(tmp_path / "arrays.safetensors")["image_projection_"].shape == (2, 2)
    replace_array(tmp_path, "image_projection_", "F64", (2, 2), np.eye(2).tobytes())
    load_model(tmp_path)
    replace_array(tmp_path, "image_projection_", kind, shape, content)
    with pytest.raises(ModelFileError):
        load_model(tmp_path)


def test_a_number_that_is_none_is_refused(folder):
    document = json.loads((folder / "model.json").read_text())
    document["model"]["learned"]["n_pairs_"] = float("nan")
    rewrite(folder / "model.json", model=document["model"])
    with pytest.raises(ModelFileError, match="not valid JSON"):
        load_model(folder)


def test_loading_as_the_wrong_class_is_refused(folder):
    with pytest.raises(ModelFileError, match="holds a SM, not a CCA"):
        CCA.load(folder)
    assert isinstance(SM.load(folder), SM)


def test_saving_replaces_a_model_but_never_other_files(problem, folder, tmp_path):
    problem.fit(CCA()).save(folder)
    assert isinstance(load_model(folder), CCA)
    assert [path.name for path in tmp_path.iterdir()] == ["sm"]
    mine = tmp_path / "photos"
    mine.mkdir()
    (mine / "cat.jpg").write_bytes(b"precious")
    with pytest.raises(InvalidInputError, match="other files"):
        problem.fit(CCA()).save(mine)
    with pytest.raises(InvalidInputError, match="is a file"):
        problem.fit(CCA()).save(mine / "cat.jpg")
    assert (mine / "cat.jpg").read_bytes() == b"precious"


def test_a_folder_that_only_looks_like_a_model_is_left_alone(problem, tmp_path):
    foreign = tmp_path / "tensorflow"
    foreign.mkdir()
    (foreign / "model.json").write_text('{"format": "layers-model"}')
    with pytest.raises(InvalidInputError, match="other files"):
        problem.fit(CCA()).save(foreign)
    ours = tmp_path / "ours"
    problem.fit(CCA()).save(ours)
    (ours / "notes.txt").write_text("precious")
    with pytest.raises(InvalidInputError, match="other files"):
        problem.fit(CCA()).save(ours)
    assert (ours / "notes.txt").read_text() == "precious"
    load_model(ours)


def test_neighbours_with_similar_names_are_left_alone(problem, tmp_path):
    (tmp_path / "m.previous").mkdir()
    (tmp_path / "m.previous" / "thesis.txt").write_text("precious")
    for _ in range(2):
        problem.fit(CCA()).save(tmp_path / "m")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "m.previous"]
    assert (tmp_path / "m.previous" / "thesis.txt").read_text() == "precious"


def test_saving_through_a_link_keeps_the_link(problem, tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for _ in range(2):
        problem.fit(CCA()).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert isinstance(load_model(tmp_path / "real"), CCA)
    monkeypatch.chdir(tmp_path / "real")
    problem.fit(SM()).save(".")
    assert isinstance(load_model(tmp_path / "link"), SM)


# Forked processes, because each that starts from nothing imports for seconds.
SAVE_OFTEN = """
import os, sys, numpy as np
from diptych.models import CCA
rng = np.random.default_rng(0)
model = CCA().fit(rng.normal(size=(40, 6)), rng.normal(size=(40, 4)))
children = []
while len(children) < 3:
    child = os.fork()
    if child == 0:
        for _ in range(40):
            model.save(sys.argv[1])
        os._exit(0)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
"""


def test_processes_that_save_to_one_folder_do_not_disturb_each_other(tmp_path):
    assert subprocess.run([sys.executable, "-c", SAVE_OFTEN, str(tmp_path / "model")]).returncode == 0
    assert isinstance(load_model(tmp_path / "model"), CCA)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_class_of_the_same_name_does_not_take_over(problem, tmp_path):
    problem.fit(SM(C=3.0)).save(tmp_path / "theirs")

    class Mine(SM):
        pass

    Mine.__name__ = "SM"
    assert type(load_model(tmp_path / "theirs")) is SM
    problem.fit(Mine()).save(tmp_path / "mine")
    assert type(load_model(tmp_path / "mine")) is Mine


def test_a_class_that_has_moved_since_is_found_and_no_other_is_imported(folder):
    model = json.loads((folder / "model.json").read_text())["model"]
    rewrite(folder / "model.json", model={**model, "module": "diptych.models.semantic.sm"})
    program = (
        "import sys\n"
        "from diptych.models import SM, load_model\n"
        "assert type(load_model(sys.argv[1])) is SM\n"
        "assert not any(name.startswith('diptych.models.hashing.') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)


def test_strange_version_fields_are_explained(folder):
    rewrite(folder / "model.json", format_version=99, versions="x")
    with pytest.raises(ModelFileError, match="version 99"):
        load_model(folder)


def test_parameters_no_file_can_hold_are_refused_before_anything_is_written(problem, tmp_path):
    model = problem.fit(CCA())
    model.strange_ = object()
    with pytest.raises(InvalidInputError, match=r"strange_ is a object"):
        model.save(tmp_path / "model")
    model.strange_ = LogisticRegression()
    with pytest.raises(InvalidInputError, match=r"strange_ is a LogisticRegression"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


SAVE_FOREVER = """
import os, sys, numpy as np
from diptych.models import CCA
rng = np.random.default_rng(0)
models = [CCA(n_components=k).fit(rng.normal(size=(400, 300)), rng.normal(size=(400, 200))) for k in (1, 2)]
models[0].save(sys.argv[1])
for _ in sys.stdin:
    child = os.fork()
    while child == 0:
        for model in models:
            model.save(sys.argv[1])
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_save_killed_at_any_moment_never_leaves_a_broken_model(tmp_path):
    folder = tmp_path / "model"
    command = [sys.executable, "-c", SAVE_FOREVER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for delay in (0.0, 0.003, 0.011, 0.02, 0.037):
            print(file=process.stdin, flush=True)
            child = int(process.stdout.readline())
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
            assert int(process.stdout.readline()) == -signal.SIGKILL
            found = folder if folder.exists() else next(tmp_path.glob(".model.previous-*"))
            assert load_model(found).n_components in (1, 2)
            if found != folder:
                with pytest.raises(ModelFileError, match="interrupted save"):
                    load_model(folder)
                os.rename(found, folder)
        process.stdin.close()
    assert process.returncode == 0


def test_a_digest_does_not_hold_where_a_class_lives(problem, tmp_path):
    model = problem.fit(CCA(n_components=2))
    moved = type("CCA", (CCA,), {"__module__": "elsewhere", "__init__": CCA.__init__})
    other = moved(n_components=2)
    vars(other).update(vars(model))
    assert model_digest(other) == model_digest(model)
    model.save(tmp_path / "model")
    assert model_digest(load_model(tmp_path / "model")) == model_digest(model)
