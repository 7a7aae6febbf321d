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

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.benchmark.exchange.run_scoring import RR as RR
    from diptych.benchmark.exchange.run_scoring import LinearNDCG as LinearNDCG
    from diptych.benchmark.exchange.run_scoring import Missing as Missing
    from diptych.benchmark.exchange.run_scoring import RunScores as RunScores
    from diptych.benchmark.exchange.run_scoring import RunTies as RunTies
    from diptych.benchmark.exchange.run_scoring import find_measure as find_measure
    from diptych.benchmark.exchange.run_scoring import score_run as score_run
    from diptych.benchmark.exchange.split_files import export_splits as export_splits
    from diptych.benchmark.exchange.trec_files import ExportedFiles as ExportedFiles
    from diptych.benchmark.exchange.trec_files import Qrels as Qrels
    from diptych.benchmark.exchange.trec_files import RankedList as RankedList
    from diptych.benchmark.exchange.trec_files import Scores as Scores
    from diptych.benchmark.exchange.trec_files import export_retrieval as export_retrieval
    from diptych.benchmark.exchange.trec_files import ranked_lists as ranked_lists
    from diptych.benchmark.exchange.trec_files import read_qrels as read_qrels
    from diptych.benchmark.exchange.trec_files import read_run as read_run
    from diptych.benchmark.exchange.trec_files import write_qrels as write_qrels
    from diptych.benchmark.exchange.trec_files import write_run as write_run
else:
    # Each is imported when it is asked for.
    __getattr__, __all__ = declared_exports(__name__)
