"""A click log as distinct queries and their clicks."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from diptych.data.clicks import ClickLog
from diptych.encoders.text.clean_query import clean_query
from diptych.errors import InvalidInputError
from diptych.models.clicks.word_sets import WordSets


def query_table(log: ClickLog) -> tuple[WordSets, csr_array]:
    """Return the distinct queries of a log as sets of words, and the (queries, pictures) matrix of clicks.

    Log queries of the same words are one query, whose clicks on a picture are added. The most clicked come first, and
    queries without a word that counts are left out.

    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models.clicks.query_table import query_table
    >>> log = ClickLog.from_triads(["cat", "red boat", "boats, red"], ["1.jpg", "2.jpg", "2.jpg"], [3, 2, 2])
    >>> sets, clicks = query_table(log)
    >>> sets[0], clicks.toarray().tolist()
    (('boat', 'red'), [[0.0, 4.0], [3.0, 0.0]])
    """
    sets, owners = WordSets.of(clean_query(query) for query in log.queries)
    if len(sets) == 0:
        raise InvalidInputError("no query of the log has a word left after cleaning; pass a log with words")
    rows = owners[log.query_ids]
    entries = (log.clicks[rows >= 0].astype(np.float64), (rows[rows >= 0], log.image_ids[rows >= 0]))
    table = csr_array(entries, shape=(len(sets), len(log.images)))
    table.sum_duplicates()
    order = np.argsort(-table.sum(axis=1), kind="stable")
    return sets.reordered(order), table[order]
