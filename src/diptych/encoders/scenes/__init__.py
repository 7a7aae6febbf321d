"""Generated scenes to facts about them, and words to the facts that they ask for; see `diptych.encoders`."""

from diptych.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__, {"diptych.encoders": "SceneThings SceneWords"})
