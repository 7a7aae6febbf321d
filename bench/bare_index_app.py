"""The least that could answer: the same vectors in a bare faiss index, behind the same web framework.

Started by ``service_load.py``. It encodes the query with the same retriever and answers with a document as large as the
service's, without filters, calibration, paging, guards, logs or clicks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from diptych.collection import Collection


class Question(BaseModel):
    """What to look for."""

    query: str
    limit: int = 30


def bare_app(folder: Path, padding: int) -> FastAPI:
    """Return an application with one route."""
    collection = Collection.open(folder)
    retriever = collection.retriever
    ids, points = collection.points("image")
    vectors = np.array(points, dtype=np.float32)
    faiss.normalize_L2(vectors)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    faiss.omp_set_num_threads(1)
    app = FastAPI()
    extra = "x" * padding

    @app.post("/v1/collections/bare/search")
    def search(question: Question) -> dict[str, Any]:
        point = np.array(retriever.encode_texts([question.query]), dtype=np.float32)
        faiss.normalize_L2(point)
        scores, rows = index.search(point, question.limit)
        found = zip(rows[0], scores[0], strict=True)
        return {"answers": [{"id": ids[row], "score": float(score), "about": extra} for row, score in found]}

    return app


if __name__ == "__main__":
    uvicorn.run(
        bare_app(Path(sys.argv[1]), int(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[3]), log_level="warning"
    )
