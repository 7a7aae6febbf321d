"""Scenes: a generated data set of illustrated little worlds with captions, identical on every machine.

Eight kinds of things in ten colours and three sizes stand, fly and swim in six places. A small NumPy rasteriser draws
them by operations whose result IEEE 754 fixes to the last bit, so that picture number *i* of a seed is the same bytes
everywhere. Use it for demonstrations, tests and end-to-end training without a download.
"""

from diptych.data.datasets.scenes.backdrops import BACKGROUNDS
from diptych.data.datasets.scenes.canvas import COLOURS
from diptych.data.datasets.scenes.composition import SceneObject
from diptych.data.datasets.scenes.scene import PictureSequence, Scene, make_scene, write_folder
from diptych.data.datasets.scenes.things import CLASS_NAMES

__all__ = [
    "BACKGROUNDS",
    "CLASS_NAMES",
    "COLOURS",
    "PictureSequence",
    "Scene",
    "SceneObject",
    "make_scene",
    "write_folder",
]
