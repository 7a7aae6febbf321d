"""Pictures that were sent to search with."""

from diptych.service.uploads.upload import Upload
from diptych.service.uploads.upload_store import UploadStore

__all__ = ["Upload", "UploadStore"]
