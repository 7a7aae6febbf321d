"""Captions of a user's own pictures, in the formats people have them."""

from diptych.data.caption_files.captioned_picture import CaptionedPicture
from diptych.data.caption_files.captioned_pictures import CaptionedPictures
from diptych.data.caption_files.reading import CAPTION_FORMATS, CaptionFormat, read_captions

__all__ = ["CAPTION_FORMATS", "CaptionFormat", "CaptionedPicture", "CaptionedPictures", "read_captions"]
