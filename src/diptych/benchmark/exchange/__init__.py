"""Rankings and judgements in the files that other tools of information retrieval read and write.

A run file has a line ``query Q0 item rank score tag`` for every item of every ranking, a qrels file a line
``query 0 item grade`` for every judged pair. What is written here is read by trec_eval, ``ranx`` and ``ir_measures``,
and what they write is read and scored here:

>>> from diptych.benchmark.exchange import Qrels, RankedList, find_measure, score_run
>>> run = {"q1": RankedList.of("q1", {"a": 0.9, "b": 0.5, "c": 0.1})}
>>> scores = score_run(run, Qrels({"q1": {"a": 1, "c": 1}}), [find_measure("AP"), find_measure("P@2")])
>>> {measure.label: round(value, 4) for measure, value in scores.mean.items()}
{'MAP': 0.8333, 'P@2': 0.5}
"""

from diptych.benchmark.exchange.run_scoring import RR, LinearNDCG, Missing, RunScores, RunTies, find_measure, score_run
from diptych.benchmark.exchange.trec_files import (
    ExportedFiles,
    Qrels,
    RankedList,
    Scores,
    export_retrieval,
    ranked_lists,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)

__all__ = [
    "RR",
    "ExportedFiles",
    "LinearNDCG",
    "Missing",
    "Qrels",
    "RankedList",
    "RunScores",
    "RunTies",
    "Scores",
    "export_retrieval",
    "find_measure",
    "ranked_lists",
    "read_qrels",
    "read_run",
    "score_run",
    "write_qrels",
    "write_run",
]
