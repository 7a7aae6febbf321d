"""Pictures to feature vectors."""

from diptych.encoders.image.colour_edge_histograms import ColourEdgeHistograms
from diptych.encoders.image.pictures import Picture, read_picture

__all__ = ["ColourEdgeHistograms", "Picture", "read_picture"]
