"""Pictures to feature vectors; the public names are those of `diptych.encoders`, and may be imported from here too."""

from diptych.lazy_exports import lazy_exports

__getattr__ = lazy_exports(
    __name__,
    {
        "diptych.encoders": (
            "ColourEdgeHistograms EfficientNetLite EncodedBatch ImageEncoder ImageNetLabels ResNet50 SiftWords "
            "imagenet_labels read_picture thumbnail"
        ),
        "diptych.encoders.image.imagenet_classes": "ImageNetLabel",
        "diptych.encoders.image.picture_decoding": "Picture",
        "diptych.encoders.image.picture_formats": "PICTURE_FORMATS open_regular_file",
    },
)
