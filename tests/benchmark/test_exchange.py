"""Run and qrels files, against the tools that read them."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from typer.testing import CliRunner

from diptych.benchmark.exchange import (
    RR,
    LinearNDCG,
    Qrels,
    RankedList,
    export_retrieval,
    find_measure,
    ranked_lists,
    read_qrels,
    read_run,
    score_run,
    write_qrels,
    write_run,
)
from diptych.cli import app
from diptych.data import Pairs
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import AP, NDCG, GradedRelevance, Precision, Recall, SameLabel, SharedLabel, evaluate_scores
from diptych.models import CCA, CVH
from diptych.protocols import EncodedRetrieval, Retrieval, evaluate_retrieval
from diptych.space import DIRECTIONS, Space

# Our name and that of ranx; ir_measures has ours, but for the exponential gain.
SHARED = {
    "AP": "map",
    "AP@7": "map@7",
    "P@5": "precision@5",
    "P@60": "precision@60",
    "R@5": "recall@5",
    "RR": "mrr",
    "nDCG": "ndcg",
    "nDCG@5": "ndcg@5",
    "nDCG-exp": "ndcg_burges",
    "nDCG-exp@5": "ndcg_burges@5",
    "Success@3": "hit_rate@3",
}
CASES = [*itertools.product((False, True), repeat=2)]

Run = dict[str, RankedList]


@pytest.fixture(scope="module")
def interpreted() -> Iterator[None]:
    """Let ranx run as plain Python: compiling it takes longer than all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        yield


def draw(*, tied: bool, graded: bool, seed: int = 0, n_queries: int = 12, n_items: int = 40) -> tuple[Run, Qrels]:
    """Lists of different lengths, which miss relevant items, over judgements that include zeros."""
    rng = np.random.default_rng(seed)
    run, grades = {}, {}
    for number in range(n_queries):
        query, length = f"q{number}", int(rng.integers(10, n_items))
        items = rng.permutation(n_items)[:length]
        scores = rng.integers(0, 5, length) if tied else rng.permutation(length) * 0.37
        run[query] = RankedList.of(query, {f"d{item}": float(one) for item, one in zip(items, scores, strict=True)})
        relevant = rng.permutation(n_items)[: int(rng.integers(1, 12))]
        own = {f"d{item}": 0 for item in rng.permutation(n_items)[:3]}
        grades[query] = own | {f"d{item}": int(rng.integers(1, 4)) if graded else 1 for item in relevant}
    return run, Qrels(grades)


def means(run: Run, qrels: Qrels, names: list[str], **options: str) -> dict[str, float]:
    measures = {name: find_measure(name) for name in names}
    found = score_run(run, qrels, [*measures.values()], **options)
    return {name: found.mean[measure] for name, measure in measures.items()}


def files(folder: Path, run: Run, qrels: Qrels, scores: str = "rank") -> tuple[Path, Path]:
    write_run(folder / "a.run", run.values(), scores=scores)
    write_qrels(folder / "a.qrels", qrels)
    return folder / "a.run", folder / "a.qrels"


@pytest.mark.parametrize(("tied", "graded"), CASES)
@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore:unsafe cast")
def test_ranx_agrees_on_every_shared_measure(tmp_path: Path, tied: bool, graded: bool) -> None:
    ranx = pytest.importorskip("ranx")
    run, qrels = draw(tied=tied, graded=graded)
    run_path, qrels_path = files(tmp_path, run, qrels)
    theirs = ranx.evaluate(
        ranx.Qrels.from_file(str(qrels_path), kind="trec"),
        ranx.Run.from_file(str(run_path), kind="trec"),
        [*SHARED.values()],
    )
    ours = means(read_run(run_path), read_qrels(qrels_path), [*SHARED])
    assert {name: theirs[other] for name, other in SHARED.items()} == pytest.approx(ours, abs=1e-9)
    # The file has one order for tied items, and it is the one that scoring takes for trec_eval's.
    assert means(run, qrels, [*SHARED]) == pytest.approx(ours, abs=1e-12)


@pytest.mark.parametrize(("tied", "graded"), CASES)
@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore:unsafe cast")
def test_ir_measures_agrees_on_every_shared_measure(tmp_path: Path, tied: bool, graded: bool) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    pandas = pytest.importorskip("pandas")
    run, qrels = draw(tied=tied, graded=graded, seed=1)
    run_path, qrels_path = files(tmp_path, run, qrels)
    names = {name: name.replace("nDCG-exp", "nDCG(dcg='exp-log2')") for name in SHARED}
    measures = {name: ir_measures.parse_measure(other) for name, other in names.items()}
    # ranx, whose code ir_measures asks here, wants columns of plain objects.
    judged, ranked = (
        pandas.DataFrame(rows).astype({"query_id": object, "doc_id": object})
        for rows in (ir_measures.read_trec_qrels(str(qrels_path)), ir_measures.read_trec_run(str(run_path)))
    )
    theirs = ir_measures.ranx.calc_aggregate([*measures.values()], judged, ranked)
    ours = means(read_run(run_path), read_qrels(qrels_path), [*SHARED])
    assert {name: theirs[measure] for name, measure in measures.items()} == pytest.approx(ours, abs=1e-9)


@pytest.mark.parametrize("scores", ["rank", "model"])
@pytest.mark.parametrize(("tied", "graded"), CASES)
def test_trec_eval_agrees_even_where_scores_tie(tmp_path: Path, tied: bool, graded: bool, scores: str) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="there are no packages of trec_eval for every machine")
    run, qrels = draw(tied=tied, graded=graded, seed=2)
    run_path, qrels_path = files(tmp_path, run, qrels, scores)
    names = {
        "AP": "map",
        "AP@7": "map_cut_7",
        "P@5": "P_5",
        "P@60": "P_60",
        "R@5": "recall_5",
        "RR": "recip_rank",
        "nDCG": "ndcg",
        "nDCG@5": "ndcg_cut_5",
        "Success@3": "success_3",
    }
    asked = {"map", "map_cut.7", "P.5,60", "recall.5", "recip_rank", "ndcg", "ndcg_cut.5", "success.3"}
    with run_path.open() as run_file, qrels_path.open() as qrels_file:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(qrels_file), asked)
        found = evaluator.evaluate(pytrec_eval.parse_run(run_file))
    theirs = {name: np.mean([found[query][other] for query in qrels.grades]) for name, other in names.items()}
    assert means(run, qrels, [*names]) == pytest.approx(theirs, abs=1e-9)


def test_ties_are_broken_by_the_later_name_in_single_precision() -> None:
    found = RankedList.of("q", {"b": 1.0, "a": 1.0, "c": 1.0 + 1e-12, "d": 0.5})
    assert found.in_order().items.tolist() == ["c", "b", "a", "d"]
    assert found.in_order(single_precision=True).items.tolist() == ["c", "b", "a", "d"]
    near = RankedList.of("q", {"z": 1.0, "a": 1.0 + 1e-12})
    assert near.in_order().items.tolist() == ["a", "z"]
    assert near.in_order(single_precision=True).items.tolist() == ["z", "a"]
    qrels = Qrels({"q": {"a": 1}})
    assert score_run({"q": near}, qrels, [AP()]).mean[AP()] == 0.5
    assert score_run({"q": near}, qrels, [AP()], ties="expected").mean[AP()] == 1.0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.booleans(), st.booleans())
def test_whole_lists_score_as_the_scores_themselves(seed: int, tied: bool, graded: bool) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (5, 15)).astype(float) if tied else rng.permutation(75).reshape(5, 15) / 7
    grades = rng.integers(0, 4 if graded else 2, (5, 15))
    grades[:, 0] = 1
    queries, items = [f"q{row}" for row in range(5)], [f"i{column}" for column in range(15)]
    run = {
        query: RankedList.of(query, dict(zip(items, row, strict=True)))
        for query, row in zip(queries, scores.tolist(), strict=True)
    }
    relevance = GradedRelevance(sparse.csr_array(grades))
    qrels = Qrels.from_relevance(relevance, queries, items)
    measures = [AP(), AP(4), Precision(3), Recall(6), RR(), NDCG(5, "ideal"), LinearNDCG(5), LinearNDCG()]
    for ties in ("expected", "optimistic", "pessimistic", "random"):
        ours = score_run(run, qrels, measures, ties=ties)
        direct = evaluate_scores(scores, relevance, measures, ties=ties)
        for measure in measures:
            np.testing.assert_allclose(ours.values[measure], direct.values[measure], rtol=0, atol=1e-12)


def test_reciprocal_rank_is_the_mean_over_all_orders_of_tied_items() -> None:
    scores, relevant = [2, 1, 1, 1, 1, 0], [0, 1, 0, 1, 0, 1]
    ranks = []
    for order in itertools.permutations(range(1, 5)):
        ranked = [relevant[item] for item in (0, *order, 5)]
        ranks.append(1 / (ranked.index(1) + 1))
    found = evaluate_scores([scores], GradedRelevance([relevant]), [RR()])
    assert found[RR()] == pytest.approx(np.mean(ranks), abs=1e-14)


def test_linear_gain_by_hand() -> None:
    relevance = GradedRelevance([[1, 0, 3]])
    expected = (1 + 3 / 2) / (3 + 1 / np.log2(3))
    assert evaluate_scores([[3, 2, 1]], relevance, [LinearNDCG()])[LinearNDCG()] == pytest.approx(expected)
    with pytest.raises(InvalidInputError, match="cutoff must be a whole number"):
        LinearNDCG(0)


def test_what_is_missing_counts_as_not_found() -> None:
    run = {"q1": RankedList.of("q1", {"a": 1.0}), "q3": RankedList.of("q3", {"a": 1.0})}
    qrels = Qrels({"q1": {"a": 1, "z": 1}, "q2": {"a": 2}, "q4": {"a": 0}})
    scores = score_run(run, qrels, [AP(), Precision(4)])
    assert scores.queries == ("q1", "q2", "q4")
    assert scores.values[AP()].tolist()[:2] == [0.5, 0.0]
    assert scores.values[Precision(4)].tolist()[:2] == [0.25, 0.0]
    assert np.isnan(scores.values[AP()][2])
    assert (scores.mean[AP()], scores.unanswered, scores.unjudged, scores.without_relevant) == (0.25, 2, 1, 1)
    assert score_run(run, qrels, [AP()], missing="skip").mean[AP()] == 0.5
    assert score_run(run, qrels, [AP()], empty="zero").mean[AP()] == pytest.approx(0.5 / 3)


def test_grades_below_the_level_are_not_relevant_but_stay_gains() -> None:
    qrels = Qrels({"q": {"a": 1, "b": 2, "c": -2}})
    assert qrels.at_least(2).grades == {"q": {"a": 0, "b": 1, "c": 0}}
    run = {"q": RankedList.of("q", {"c": 3.0, "a": 2.0, "b": 1.0})}
    measures = [RR(), LinearNDCG()]
    first, second, binary = (
        score_run(run, qrels, measures, level=level, gains=gains).mean
        for level, gains in ((1, "grades"), (2, "grades"), (2, "binary"))
    )
    assert (first[RR()], second[RR()]) == (0.5, pytest.approx(1 / 3))
    ideal = 2 + 1 / np.log2(3)
    assert first[LinearNDCG()] == second[LinearNDCG()] == pytest.approx((1 / np.log2(3) + 2 / 2) / ideal)
    assert binary[LinearNDCG()] == pytest.approx(1 / 2)


def test_comments_and_words_after_the_tag_are_read_over(tmp_path: Path) -> None:
    """Three queries of which one has no relevant item and one is not ranked: four conventions, four means of AP."""
    run, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    run.write_text("# made by hand\nq1 Q0 a 1 2.0 tag more words\nq1 Q0 b 2 1.0 tag\n\nq2 Q0 a 1 1.0 tag x\n")
    qrels.write_text("# judged by hand\nq1 0 b 1\nq2 0 a 0\n  # more\nq3 0 a 1\n")
    means = {
        (missing, empty): score_run(read_run(run), read_qrels(qrels), [AP()], missing=missing, empty=empty).mean[AP()]
        for missing in ("zero", "skip")
        for empty in ("zero", "skip")
    }
    assert means == {
        ("zero", "zero"): pytest.approx(0.5 / 3),
        ("zero", "skip"): pytest.approx(0.5 / 2),
        ("skip", "zero"): pytest.approx(0.5 / 2),
        ("skip", "skip"): pytest.approx(0.5),
    }
    asked = ["bench", "trec", "score", str(run), str(qrels), "-m", "AP", "--empty", "zero", "--missing", "skip"]
    scored = CliRunner().invoke(app, [*asked, "--json"])
    assert json.loads(scored.stdout)["mean"]["AP"] == 0.25
    assert "1 queries have no relevant item and count as nothing found" in CliRunner().invoke(app, asked).stderr


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    rng = np.random.default_rng(3)
    labels = np.array(["art", "music", "sport"])[np.arange(40) % 3]
    topics = rng.normal(size=(40, 4)) + 2 * (labels == "art")[:, None]
    owners = np.repeat(np.arange(40), 2)
    texts = topics[owners] + 0.3 * rng.normal(size=(80, 4))
    return Pairs(topics @ rng.normal(size=(4, 6)), texts, labels=labels, owners=owners)


@pytest.mark.parametrize("relevant", ["label", "instance"])
def test_an_exported_model_scores_as_before(tmp_path: Path, pairs: Pairs, relevant: str) -> None:
    model = CCA().fit(*pairs.aligned())
    asked, searched = pairs.select(range(10)), pairs.select(range(30) if relevant == "instance" else range(10, 40))
    retrieval = Retrieval(asked, searched)
    written = export_retrieval(model, retrieval, tmp_path, relevant=relevant)
    assert written.n_lines == {"image_query": 10 * 60, "text_query": 20 * 30}
    measures = [AP(), Precision(5), Recall(5), NDCG(10, "ideal")]
    direct = evaluate_retrieval(model, retrieval, measures, relevant=relevant)
    for way in DIRECTIONS:
        scored = score_run(read_run(written.runs[way]), read_qrels(written.qrels[way]), measures)
        for measure in measures:
            np.testing.assert_allclose(scored.values[measure], direct[way].values[measure], rtol=0, atol=1e-12)


def test_model_scores_survive_the_file_to_the_last_digit(tmp_path: Path, pairs: Pairs) -> None:
    model = CCA().fit(*pairs.aligned())
    written = export_retrieval(model, Retrieval(pairs, pairs), tmp_path, scores="model", tag="my model")
    run = read_run(written.runs["image_query"])
    images, texts = model.encode_images(pairs.images), model.encode_texts(pairs.texts)
    scores = model.space.compare(images, texts)
    for row, query in enumerate(pairs.ids):
        expected = dict(zip(pairs.text_ids.tolist(), scores[row].astype(float).tolist(), strict=True))
        assert dict(zip(run[query].items.tolist(), run[query].scores.tolist(), strict=True)) == pytest.approx(expected)
    first = written.runs["image_query"].read_text().splitlines()[0].split()
    assert (first[1], first[3], first[5]) == ("Q0", "1", "my%20model")


def test_codes_that_tie_are_written_in_one_order(tmp_path: Path, pairs: Pairs) -> None:
    model = CVH(n_bits=4).fit(*pairs.aligned())
    retrieval = Retrieval(pairs.select(range(10)), pairs)
    for gallery in ("view", "unified"):
        written = export_retrieval(model, retrieval, tmp_path / gallery, gallery=gallery)
        bounds = [
            evaluate_retrieval(model, retrieval, gallery=gallery, ties=ties) for ties in ("pessimistic", "optimistic")
        ]
        for way in DIRECTIONS:
            scored = score_run(read_run(written.runs[way]), read_qrels(written.qrels[way]), [AP()]).mean[AP()]
            assert bounds[0][way][AP()] - 1e-12 <= scored <= bounds[1][way][AP()] + 1e-12
            ties = {"trec": scored, "expected": scored}
            run, qrels = read_run(written.runs[way]), read_qrels(written.qrels[way])
            assert {name: score_run(run, qrels, [AP()], ties=name).mean[AP()] for name in ties} == pytest.approx(ties)


def test_several_labels_and_a_cut_list(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    indicator = rng.integers(0, 2, (20, 4))
    indicator[:, 0] |= indicator.sum(axis=1) == 0
    rows = rng.normal(size=(20, 3))
    pairs = Pairs(rows, rows + 0.1 * rng.normal(size=(20, 3)), labels=indicator)
    written = export_retrieval(CCA().fit(*pairs.aligned()), Retrieval(pairs, pairs), tmp_path, depth=5)
    assert written.n_lines == {"image_query": 100, "text_query": 100}
    expected = Qrels.from_relevance(SharedLabel(indicator, indicator), pairs.ids.tolist(), pairs.text_ids.tolist())
    assert read_qrels(written.qrels["image_query"]) == expected
    encoded = EncodedRetrieval.of(CCA().fit(*pairs.aligned()), Retrieval(pairs, pairs))
    top = next(
        ranked_lists(
            encoded.queries["image_query"],
            encoded.gallery["text_query"],
            encoded.space,
            pairs.ids.tolist(),
            pairs.text_ids.tolist(),
            depth=5,
        )
    )
    assert read_run(written.runs["image_query"])["0"].items.tolist() == top.items.tolist()


def test_judged_irrelevant_items_are_written_as_zero() -> None:
    judged = sparse.csr_array(([3, 0], ([0, 0], [1, 2])), shape=(1, 4))
    relevance = GradedRelevance(judged, judged_only=True)
    assert Qrels.from_relevance(relevance, ["q"], list("abcd")).grades == {"q": {"b": 3, "c": 0}}
    with pytest.raises(InvalidInputError, match="whole grades"):
        Qrels.from_relevance(GradedRelevance([[0.5, 1]]), ["q"], ["a", "b"])
    with pytest.raises(InvalidInputError, match="1 queries and 2 items"):
        Qrels.from_relevance(SameLabel([1], [1, 2]), ["q"], ["a"])


def test_names_with_spaces_and_compressed_files(tmp_path: Path) -> None:
    run = [RankedList.of("my query", {"a cat.jpg": 1.0, "50%.jpg": 0.5, "日本": 0.1})]
    write_run(tmp_path / "a.run.gz", run)
    write_qrels(tmp_path / "a.qrels.gz", Qrels({"my query": {"50%.jpg": 2}}))
    assert gzip.decompress((tmp_path / "a.run.gz").read_bytes()).decode().startswith("my%20query Q0 a%20cat.jpg 1 3 ")
    found = score_run(read_run(tmp_path / "a.run.gz"), read_qrels(tmp_path / "a.qrels.gz"), [RR()])
    assert found.mean[RR()] == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 a 1 0.5\n", "line 1 has 5 words, expected 6: query Q0 item rank score tag"),
        ("\nq Q0 a 1 high t\n", "line 2 has the score 'high'"),
        ("q Q0 a 1 nan t\n", "line 1 has the score 'nan'"),
        ("q Q0 a 1 2 t\nq Q0 a 2 1 t\n", "line 2 ranks 'a' again for query 'q'"),
        ("\n# nothing\n", "holds no line of the form"),
    ],
)
def test_broken_run_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.run").write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        read_run(tmp_path / "a.run")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q 0 a\n", "line 1 has 3 words, expected 4"),
        ("q 0 a 1 more\n", "line 1 has 5 words, expected 4"),
        ("q 0 a 1.5\n", "grade '1.5', expected a whole number"),
        ("q 0 a 1\nq 0 a 0\n", "line 2 judges 'a' again"),
        ("", "holds no line"),
    ],
)
def test_broken_qrels_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.qrels").write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        read_qrels(tmp_path / "a.qrels")


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_run(tmp_path / "none.run")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match="not a text file"):
        read_qrels(tmp_path / "binary")
    (tmp_path / "broken.gz").write_bytes(b"not compressed")
    with pytest.raises(InvalidInputError, match="not a text file"):
        read_run(tmp_path / "broken.gz")
    with pytest.raises(InvalidInputError, match="scores must be one of rank, model"):
        write_run(tmp_path / "x.run", [], scores="rnak")
    with pytest.raises(InvalidInputError, match="empty name"):
        write_run(tmp_path / "x.run", [RankedList.of("q", {"": 1.0})])
    (tmp_path / "file").write_text("")
    pairs = Pairs(np.eye(3), np.eye(3))
    with pytest.raises(InvalidInputError, match="choose another folder"):
        export_retrieval(CCA().fit(*pairs.aligned()), Retrieval(pairs, pairs), tmp_path / "file")


def test_wrong_input_says_what_to_do() -> None:
    run, qrels = draw(tied=False, graded=False)
    with pytest.raises(InvalidInputError, match="nothing to measure"):
        score_run(run, qrels, [])
    with pytest.raises(InvalidInputError, match="missing must be one of zero, skip"):
        score_run(run, qrels, [AP()], missing="no")
    with pytest.raises(InvalidInputError, match="ties must be one of"):
        score_run(run, qrels, [AP()], ties="luck")
    with pytest.raises(InvalidInputError, match="none of the judged queries"):
        score_run(run, Qrels({"other": {"a": 1}}), [AP()], missing="skip")
    with pytest.raises(InvalidInputError, match="no item is relevant"):
        score_run(run, Qrels({"q1": {"a": 0}}), [AP()])
    with pytest.raises(InvalidInputError, match="NaN or infinity"):
        RankedList.of("q", {"a": float("nan")})
    with pytest.raises(InvalidInputError, match="more than once"):
        RankedList("q", np.array(["a", "a"]), np.array([1.0, 2.0]))
    with pytest.raises(InvalidInputError, match="2 items and 1 scores"):
        RankedList("q", np.array(["a", "b"]), np.array([1.0]))
    with pytest.raises(InvalidInputError, match="depth must be at least 1"):
        next(ranked_lists(np.eye(2), np.eye(2), Space("dot"), ["a", "b"], ["c", "d"], depth=0))
    with pytest.raises(InvalidInputError, match="need as many names"):
        next(ranked_lists(np.eye(2), np.eye(2), Space("dot"), ["a", "b"], ["c"]))


def test_measures_by_name() -> None:
    assert find_measure("ndcg@10") == LinearNDCG(10)
    assert find_measure("nDCG-exp@10") == NDCG(10, "ideal")
    assert find_measure("AP@50") == AP(50)
    with pytest.raises(UnknownNameError, match="unknown measure 'MAPP'"):
        find_measure("MAPP")
    with pytest.raises(InvalidInputError, match=r"'P' needs a cutoff; add one, such as P@10"):
        find_measure("P")
    with pytest.raises(InvalidInputError, match=r"'RR@5' has no cutoff; leave the cutoff out: RR"):
        find_measure("RR@5")


def test_commands(tmp_path: Path) -> None:
    terminal = CliRunner()
    options = ["--dataset-option", "n_train=30", "--dataset-option", "n_test=12", "--dataset-option", "size=32"]
    words = ["bench", "trec", "export", "-d", "scenes", "-m", "cca", "-o", str(tmp_path), *options, "-q", "--json"]
    written = terminal.invoke(app, words, catch_exceptions=False)
    assert written.exit_code == 0
    assert json.loads(written.stdout)["text_query"]["run"] == str(tmp_path / "text_query.run")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "image_query.qrels",
        "image_query.run",
        "text_query.qrels",
        "text_query.run",
    ]
    run, qrels, numbers = (str(tmp_path / name) for name in ("text_query.run", "text_query.qrels", "numbers.json"))
    asked = ["bench", "trec", "score", run, qrels, "-m", "AP", "-m", "P@5", "-o", numbers]
    scored = terminal.invoke(app, asked)
    expected = score_run(read_run(run), read_qrels(qrels), [AP()]).mean[AP()]
    assert f"{expected:.4f}" in scored.stdout
    document = json.loads(Path(numbers).read_text())
    assert json.loads(terminal.invoke(app, [*asked, "--json"]).stdout) == document
    assert document["mean"]["AP"] == pytest.approx(expected)
    assert len(document["queries"]["P@5"]) == 60
