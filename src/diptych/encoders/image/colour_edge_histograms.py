"""Colour and edge histograms on a spatial pyramid: image features without any weights to download."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from PIL import Image

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.picture_decoding import Picture
from diptych.errors import InvalidInputError


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

    def __init__(
        self,
        *,
        size: int = 96,
        levels: tuple[int, ...] = (1, 2, 4),
        hue_bins: int = 8,
        brightness_bins: int = 3,
        grey_bins: int = 4,
        edge_bins: int = 9,
        edge_scale: float = 0.05,
        root: bool = False,
        batch_size: int = 64,
        n_threads: int | None = None,
    ) -> None:
        self.size = size
        self.levels = levels
        self.hue_bins = hue_bins
        self.brightness_bins = brightness_bins
        self.grey_bins = grey_bins
        self.edge_bins = edge_bins
        self.edge_scale = edge_scale
        self.root = root
        self.batch_size = batch_size
        self.n_threads = n_threads

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        per_cell = self.hue_bins * self.brightness_bins + self.grey_bins + self.edge_bins + 1
        return per_cell * sum(level**2 for level in self.levels)

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
        n_colours = self.hue_bins * self.brightness_bins + self.grey_bins
        # Sums need the precision.
        votes = np.zeros((self.size**2, n_colours + self.edge_bins + 1))
        self._vote_for_colours(pixels, votes[:, :n_colours])
        self._vote_for_edges(pixels, votes[:, n_colours:])
        on_grid = votes.reshape(self.size, self.size, -1)
        histograms = np.concatenate([_cell_means(on_grid, level).ravel() for level in self.levels])
        return np.sqrt(histograms) if self.root else histograms

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return the histograms as rows."""
        return np.stack(prepared)

    def _vote_for_colours(self, pixels: FloatArray, votes: FloatArray) -> None:
        hue, saturation, brightness = (part.ravel() for part in _hue_saturation_brightness(pixels))
        pixel = np.arange(len(votes))
        heights = _linear_votes(brightness, self.brightness_bins)
        for bin, of_hue in _cyclic_votes(hue, self.hue_bins):
            for height, of_height in heights:
                votes[pixel, bin * self.brightness_bins + height] = of_hue * of_height * saturation
        for grey, of_grey in _linear_votes(brightness, self.grey_bins):
            votes[pixel, self.hue_bins * self.brightness_bins + grey] = of_grey * (1 - saturation)

    def _vote_for_edges(self, pixels: FloatArray, votes: FloatArray) -> None:
        grey = np.pad(pixels @ np.array([0.299, 0.587, 0.114], dtype=np.float32), 1, mode="edge")
        across = (grey[1:-1, 2:] - grey[1:-1, :-2]).ravel() / 2
        down = (grey[2:, 1:-1] - grey[:-2, 1:-1]).ravel() / 2
        length = np.hypot(across, down)
        strength = length / (length + self.edge_scale)
        direction = (np.arctan2(down, across) / np.pi) % 1.0
        pixel = np.arange(len(votes))
        for bin, share in _cyclic_votes(direction, self.edge_bins):
            votes[pixel, bin] = share * strength
        votes[:, -1] = 1 - strength


def _hue_saturation_brightness(pixels: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return hue in [0, 1), saturation and brightness in [0, 1] of RGB pixels in [0, 1]."""
    brightest, darkest = pixels.max(axis=2), pixels.min(axis=2)
    spread = brightest - darkest
    red, green, blue = np.moveaxis(pixels, 2, 0)
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


def _cell_means(votes: FloatArray, cells: int) -> FloatArray:
    """Average the votes over a grid of cells × cells; the mean of unit votes sums to one."""
    edges = np.linspace(0, len(votes), cells + 1).astype(np.int64)
    counts = np.diff(edges)
    rows = np.add.reduceat(votes, edges[:-1], axis=0)
    sums = np.add.reduceat(rows, edges[:-1], axis=1)
    return np.asarray(sums / (counts[:, None, None] * counts[None, :, None]))
