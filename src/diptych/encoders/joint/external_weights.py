"""Weights that an ONNX file keeps in other files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diptych.encoders.network.inner_names import leads_outside
from diptych.errors import MissingPackageError, ModelFileError


def external_files(file: Path) -> list[Path]:
    """Return the files beside an ONNX file that hold its weights, whatever they are called, in order of their names."""
    try:
        import onnx
    except ImportError as error:
        raise MissingPackageError("reading an exported network", "onnx") from error
    try:
        model = onnx.load(file, load_external_data=False)
    except Exception as error:
        # The parser's errors have no base in common with those of the file system.
        raise ModelFileError(f"{file} cannot be read as ONNX ({error}); copy the file again") from error
    locations = sorted(set(_locations(model.graph)))
    for location in locations:
        if leads_outside(location):
            raise ModelFileError(f"{file} keeps weights in {location!r}, outside its folder; do not use this model")
        if not (file.parent / location).is_file():
            raise ModelFileError(
                f"{file.parent} lacks {location}, which {file.name} needs; copy the whole model folder"
            )
    return [file.parent / location for location in locations]


def _locations(graph: Any) -> Iterator[str]:
    for tensor in _tensors(graph):
        for entry in tensor.external_data:
            if entry.key == "location":
                yield entry.value


def _tensors(graph: Any) -> Iterator[Any]:
    """Yield the arrays of a graph, of its nodes' attributes and of the graphs inside these."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)
