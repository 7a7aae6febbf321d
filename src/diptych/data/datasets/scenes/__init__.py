"""Scenes: a generated data set of illustrated little worlds with captions, identical on every machine.

Twelve kinds of things in ten colours, four textures and three sizes stand, fly and swim in ten places. Everything is
drawn by a small NumPy rasteriser from operations whose result IEEE 754 fixes to the last bit, so that picture number
*i* of a seed is the same bytes everywhere. Use it for demonstrations, tests and end-to-end training without a download.

>>> from diptych.data.datasets.scenes import CLASS_NAMES, make_scene
>>> len(CLASS_NAMES), len(make_scene(0).captions)
(12, 5)
"""

from diptych.data.datasets.scenes.backdrops import BACKGROUNDS
from diptych.data.datasets.scenes.folder import write_folder
from diptych.data.datasets.scenes.palette import COLOURS
from diptych.data.datasets.scenes.pictures import PictureSequence
from diptych.data.datasets.scenes.scene import Scene, make_scene
from diptych.data.datasets.scenes.scene_object import SceneObject
from diptych.data.datasets.scenes.textures import TEXTURES
from diptych.data.datasets.scenes.things import CLASS_NAMES

__all__ = [
    "BACKGROUNDS",
    "CLASS_NAMES",
    "COLOURS",
    "TEXTURES",
    "PictureSequence",
    "Scene",
    "SceneObject",
    "make_scene",
    "write_folder",
]
