"""A picture to search with, as sent."""

from __future__ import annotations

from fastapi import UploadFile

from diptych.service.schemas.document import Document


class UploadForm(Document):
    """A picture to search with."""

    picture: UploadFile
    """The picture: JPEG, PNG, GIF, WebP, AVIF, TIFF, BMP or PPM."""
