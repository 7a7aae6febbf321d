"""Maps of collections: pictures and captions of the common space in the plane."""

from diptych.service.maps.make_map import make_map
from diptych.service.maps.map_file import has_map, read_map

__all__ = ["has_map", "make_map", "read_map"]
