"""A search with a picture that is sent along."""

from __future__ import annotations

from fastapi import UploadFile

from diptych.service.schemas.search_options import SearchOptions


class PictureSearch(SearchOptions):
    """A picture and how to search with it."""

    picture: UploadFile
    """The picture: JPEG, PNG, GIF, WebP, AVIF, TIFF, BMP or PPM."""
