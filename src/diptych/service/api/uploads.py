"""Pictures to search with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Response, status

from diptych.service.context import Context
from diptych.service.schemas.upload_document import UploadDocument
from diptych.service.schemas.upload_form import UploadForm
from diptych.service.security.guards import Clicking, Reading

router = APIRouter(prefix="/v1", tags=["uploads"], dependencies=[Reading])

_PREVIEW: dict[int | str, dict[str, Any]] = {
    200: {"description": "A small JPEG.", "content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}}}
}


@router.post("/uploads", operation_id="upload", status_code=status.HTTP_201_CREATED, dependencies=[Clicking])
def upload(
    context: Context, form: Annotated[UploadForm, Form(media_type="multipart/form-data")], response: Response
) -> UploadDocument:
    """Send a picture to search with; it is kept for a while and then forgotten."""
    kept = context.uploads.keep(form.picture.file)
    context.metrics.count_upload()
    response.headers["Location"] = f"/v1/uploads/{kept.id}"
    expires = datetime.fromtimestamp(int(kept.expires), UTC).isoformat()
    return UploadDocument(id=kept.id, width=kept.width, height=kept.height, expires=expires)


@router.get("/uploads/{upload_id}", operation_id="getUpload", response_class=Response, responses=_PREVIEW)
def get_upload(
    context: Context, upload_id: Annotated[str, Path(description="Id of the upload.", max_length=400)]
) -> Response:
    """Return a small JPEG of a picture that was sent."""
    kept, preview = context.uploads.read_preview(upload_id)
    headers = {"Cache-Control": "private, max-age=3600", "ETag": f'"{kept.id}"'}
    return Response(preview, media_type="image/jpeg", headers=headers)
