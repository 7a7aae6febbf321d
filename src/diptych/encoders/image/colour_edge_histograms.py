"""Colour and edge histograms on a spatial pyramid: image features without any weights to download."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from PIL import Image

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.picture_decoding import Picture
from diptych.errors import InvalidInputError


@dataclass(kw_only=True, eq=False, repr=False)
class ColourEdgeHistograms(ImageEncoder):
    """Histograms of colour and of edge direction in the cells of a spatial pyramid.

    A pixel with saturation s votes s for its hue, at its brightness, and 1 − s for a shade of
    grey; a pixel with gradient length m votes m/(m + τ) for its unsigned edge direction and
    τ/(m + τ) for "no edge". Votes are shared linearly between the two nearest bins. So every cell holds two
    histograms that are non-negative and sum to one, as χ² and histogram-intersection kernels expect.

    The edge part follows Dalal and Triggs, "Histograms of oriented gradients for human detection", CVPR 2005, the
    pyramid Lazebnik et al., "Beyond bags of features", CVPR 2006. Use it for a first result, for tests and where
    nothing can be downloaded; features of a trained network are far better on photographs.

    Parameters
    ----------
    size:
        Pictures are scaled to ``size`` × ``size`` pixels.
    levels:
        Cells per side of each level of the pyramid.
    hue_bins, brightness_bins, grey_bins:
        Of the colour histogram; it has hue_bins · brightness_bins + grey_bins entries.
    edge_bins:
        Edge directions between 0° and 180°; the edge histogram has one entry more.
    edge_scale:
        τ, the gradient length (brightness from 0 to 1 per pixel) at which a pixel is as much edge as not.
    root:
        Take the square root of every entry (the Hellinger map), which suits methods with linear kernels; the squares
        of a histogram then sum to one.
    batch_size, n_threads:
        Pictures handed on at once, and threads (all cores); neither changes the features.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import ColourEdgeHistograms
    >>> red = np.zeros((8, 8, 3), dtype=np.uint8) + np.array([255, 0, 0], dtype=np.uint8)
    >>> features = ColourEdgeHistograms(levels=(1,)).fit_transform([red])
    >>> features.shape, float(features.sum())
    ((1, 38), 2.0)
    """

    learns: ClassVar[bool] = False
    revision: ClassVar[int] = 2

    size: int = 96
    levels: tuple[int, ...] = (1, 2, 4)
    hue_bins: int = 8
    brightness_bins: int = 3
    grey_bins: int = 4
    edge_bins: int = 9
    edge_scale: float = 0.05
    root: bool = False
    batch_size: int = 64

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return self._n_bins * sum(level**2 for level in self.levels)

    @property
    def reading_side(self) -> int:
        """Twice the size, so that scaling down averages several pixels."""
        return 2 * self.size

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        super().check_parameters()
        for name in ("size", "hue_bins", "brightness_bins", "grey_bins", "edge_bins"):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.levels or any(not 1 <= level <= self.size for level in self.levels):
            raise InvalidInputError(f"levels must lie in 1..size ({self.size}) cells per side, got {self.levels}")
        if self.edge_scale <= 0:
            raise InvalidInputError(f"edge_scale must be positive, got {self.edge_scale}")

    def prepare(self, picture: Picture) -> FloatArray:
        """Return the histograms of one picture; all the work is done here, where threads share it."""
        scaled = Image.fromarray(self.read(picture)).resize((self.size, self.size), Image.Resampling.BOX)
        pixels = np.asarray(scaled, dtype=np.float32) / 255
        votes = [*self._votes_for_colours(pixels), *self._votes_for_edges(pixels)]
        histograms = np.concatenate([means.ravel() for means in self._cell_means(votes)])
        return np.sqrt(histograms) if self.root else histograms

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return the histograms as rows."""
        return np.stack(prepared)

    @property
    def _n_colours(self) -> int:
        return self.hue_bins * self.brightness_bins + self.grey_bins

    @property
    def _n_bins(self) -> int:
        return self._n_colours + self.edge_bins + 1

    def _votes_for_colours(self, pixels: FloatArray) -> _Shares:
        hue, saturation, brightness = (part.ravel() for part in _hue_saturation_brightness(pixels))
        heights = _linear_votes(brightness, self.brightness_bins)
        return [
            *(
                (bin * self.brightness_bins + height, of_hue * of_height * saturation)
                for bin, of_hue in _cyclic_votes(hue, self.hue_bins)
                for height, of_height in heights
            ),
            *(
                (self.hue_bins * self.brightness_bins + grey, of_grey * (1 - saturation))
                for grey, of_grey in _linear_votes(brightness, self.grey_bins)
            ),
        ]

    def _votes_for_edges(self, pixels: FloatArray) -> _Shares:
        grey = np.pad(pixels @ np.array([0.299, 0.587, 0.114], dtype=np.float32), 1, mode="edge")
        across = (grey[1:-1, 2:] - grey[1:-1, :-2]).ravel() / 2
        down = (grey[2:, 1:-1] - grey[:-2, 1:-1]).ravel() / 2
        length = np.hypot(across, down)
        strength = length / (length + self.edge_scale)
        direction = (np.arctan2(down, across) / np.pi) % 1.0
        return [
            *((self._n_colours + bin, share * strength) for bin, share in _cyclic_votes(direction, self.edge_bins)),
            (np.full(len(strength), self._n_colours + self.edge_bins), 1 - strength),
        ]

    def _cell_means(self, votes: _Shares) -> Iterator[FloatArray]:
        """Average the votes over the cells of each level; the mean of unit votes sums to one."""
        n_bins = self._n_bins
        edges = [np.linspace(0, self.size, level + 1).astype(np.int64) for level in self.levels]
        # Votes are summed once, in the pieces that the lines of all levels cut a picture into.
        lines = np.unique(np.concatenate(edges))
        n_pieces = len(lines) - 1
        piece = np.repeat(np.arange(n_pieces), np.diff(lines))
        first_bin = ((piece[:, None] * n_pieces + piece) * n_bins).ravel()
        sums = np.bincount(
            np.concatenate([first_bin + bin for bin, _ in votes]),
            # In float64, for sums need the precision.
            weights=np.concatenate([share for _, share in votes]),
            minlength=n_pieces**2 * n_bins,
        ).reshape(n_pieces, n_pieces, n_bins)
        for of_level in edges:
            starts, counts = np.searchsorted(lines, of_level[:-1]), np.diff(of_level)
            cells = np.add.reduceat(np.add.reduceat(sums, starts, axis=0), starts, axis=1)
            yield cells / (counts[:, None, None] * counts[None, :, None])


def _hue_saturation_brightness(pixels: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return hue in [0, 1), saturation and brightness in [0, 1] of RGB pixels in [0, 1]."""
    red, green, blue = np.ascontiguousarray(np.moveaxis(pixels, 2, 0))
    brightest, darkest = np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)
    spread = brightest - darkest
    safe = np.where(spread > 0, spread, 1)
    sixths = np.where(
        brightest == red,
        ((green - blue) / safe) % 6,
        np.where(brightest == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    saturation = spread / np.where(brightest > 0, brightest, 1)
    return (sixths / 6) % 1.0, saturation, brightest


# The bin and the share of each vote, for each of the bins that a vote is shared between.
_Shares = list[tuple[IntArray, FloatArray]]


def _cyclic_votes(position: FloatArray, bins: int) -> _Shares:
    """Share each vote between the two nearest of ``bins`` centres on a circle of length 1."""
    place = position * bins
    lower = np.floor(place).astype(np.int64)
    return _shared(lower % bins, (lower + 1) % bins, place - lower, bins)


def _linear_votes(position: FloatArray, bins: int) -> _Shares:
    """Share each vote between the two nearest of ``bins`` centres spread evenly from 0 to 1."""
    place = position * (bins - 1)
    lower = np.minimum(np.floor(place).astype(np.int64), max(0, bins - 2))
    return _shared(lower, np.minimum(lower + 1, bins - 1), place - lower, bins)


def _shared(lower: IntArray, upper: IntArray, share: FloatArray, bins: int) -> _Shares:
    share = share.astype(np.float32)
    return [(lower, 1 - share), (upper, share)] if bins > 1 else [(lower, 1 - share + share)]
