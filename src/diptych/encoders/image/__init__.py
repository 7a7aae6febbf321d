"""Pictures to feature vectors."""

from diptych.encoders.encoder import EncodedBatch
from diptych.encoders.image.colour_edge_histograms import ColourEdgeHistograms
from diptych.encoders.image.efficientnet_lite import EfficientNetLite
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.imagenet_labels import ImageNetLabel, ImageNetLabels, imagenet_labels
from diptych.encoders.image.picture_decoding import Picture, read_picture, thumbnail
from diptych.encoders.image.picture_formats import PICTURE_FORMATS, open_regular_file
from diptych.encoders.image.resnet50 import ResNet50
from diptych.encoders.image.sift_words import SiftWords

__all__ = [
    "PICTURE_FORMATS",
    "ColourEdgeHistograms",
    "EfficientNetLite",
    "EncodedBatch",
    "ImageEncoder",
    "ImageNetLabel",
    "ImageNetLabels",
    "Picture",
    "ResNet50",
    "SiftWords",
    "imagenet_labels",
    "open_regular_file",
    "read_picture",
    "thumbnail",
]
