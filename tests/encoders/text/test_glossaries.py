"""Czech by a glossary: endings, accents, phrases, which queries it takes, and what it says of words it lacks."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest

from diptych.data import load_dataset
from diptych.encoders import MultilingualSentences, SentenceEncoder, UniversalSentenceEncoder, guess_language
from diptych.encoders.text import glossaries
from diptych.encoders.text.glossaries import Glossary, english_of, glossary, glossary_languages
from diptych.encoders.text.languages import language_note
from diptych.encoders.text.universal_sentence_encoder import UNDERSTOOD
from diptych.retriever import Retriever

QUERIES = Path(__file__).parents[3] / "bench" / "language_queries.tsv"
SHORT = Path(__file__).with_name("short_queries.tsv")
SENTENCES = {
    "Dva hnědí psi si hrají ve sněhu.": "two brown dogs playing in the snow",
    "Muž v modré košili stojí na oranžovém žebříku a opravuje světlo.": (
        "man in blue shirt standing on orange ladder and repairing light"
    ),
    "Malá holčička ve žlutém tričku jede na kole": "little girl in yellow t-shirt riding on a bicycle",
    "Skupina lidí čeká na vlak": "group of people waiting for train",
    "Fotbalista v zelenobílém dresu kope do míče": "soccer player in green and white jersey kicking into ball",
    "žena se slunečními brýlemi": "woman with sunglasses",
    "žena se dívá na moře": "woman looking at sea",
    "několik mladých žen sedí u kulatého stolu": "several young women sitting by round table",
    "dítě na kolenou utírá dlaždice": "child on knees wiping tile",
    "chlapec skáče do bazénu": "boy jumping into pool",
    "chlapci skákali přes překážky": "boys jumping over obstacles",
}


def without_accents(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))


def queries_by_language() -> list[tuple[str, str]]:
    languages, *rows = (line.split("\t") for line in QUERIES.read_text(encoding="utf-8").splitlines())
    asked = [pair for row in rows for pair in zip(languages, row, strict=True)]
    for line in SHORT.read_text(encoding="utf-8").splitlines():
        language, *queries = line.split("\t")
        asked += [(language, query) for query in queries]
    return asked


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences_come_in_english_words(text: str) -> None:
    translation = glossary("cs").translated(text)
    assert translation.text == SENTENCES[text]
    assert translation.unknown == ()


@pytest.mark.parametrize("text", SENTENCES)
def test_accents_may_be_left_out(text: str) -> None:
    assert glossary("cs").translated(without_accents(text)).text == SENTENCES[text]


@pytest.mark.parametrize(
    ("forms", "english"),
    [
        ("pes psa psovi psem", "dog"),
        ("psů psům psech", "dogs"),
        ("muž muže mužem muze", "man"),
        ("kůň koně koněm kone", "horse"),
        ("ulice ulici ulicí", "street"),
        ("ulicích ulicemi", "streets"),
        ("žena ženě ženu ženou", "woman"),
        ("dítě dítěte dítěti dítětem", "child"),
        ("štěně štěněte štěněti štěnětem", "puppy"),
        ("štěňata štěňat štěňatům štěňaty", "puppies"),
        ("dívek dívkám dívkách dívkami", "girls"),
        ("matka matce matku matkou", "mother"),
        ("velký velká velké velkého velkému velkém velkým velkou velcí velkých velkými", "big"),
        ("anglický anglická angličtí", "english"),
        ("běžet běží běžel běžela běželo běželi běžely běžící běžícího běžícím", "running"),
        ("malovat maluje malují maloval malovala malovali malující malování", "painting"),
        ("skákat skáče skáčou skákal skákala skákali", "jumping"),
        ("jít jde jdou šel šla šli jdoucí", "walking"),
        ("sedět sedí seděl seděla sedící", "sitting"),
        ("oblečený oblečená oblečen oblečena oblečeni oblečených", "dressed"),
    ],
)
def test_all_forms_of_a_word_mean_the_same(forms: str, english: str) -> None:
    found = {form: glossary("cs").translated(form).text for form in forms.split()}
    assert found == dict.fromkeys(forms.split(), english)


def test_a_number_and_what_is_before_a_noun_decide_between_one_and_many() -> None:
    czech = glossary("cs")
    assert czech.translated("ženy sedí").text == "women sitting"
    assert czech.translated("vedle mladé ženy").text == "next to young woman"
    assert czech.translated("muži na pláži").text == "men on the beach"
    assert czech.translated("pět velkých aut").text == "five big cars"


def test_czech_queries_are_translated_and_those_of_other_languages_are_not() -> None:
    taken = [(language, query) for language, query in queries_by_language() if english_of(query) is not None]
    assert {language for language, _ in taken} == {"cs"}
    assert len(taken) == 45


@pytest.mark.parametrize("text", ["", "42", "?!", "a dog", "host", "stary most", "dos perros", "dwa psy", "Hund"])
def test_what_is_not_czech_stays_as_it_is(text: str) -> None:
    assert english_of(text) is None


def test_one_word_is_enough_where_its_letters_are_czech() -> None:
    assert [english_of(word) for word in ("kůň", "dítě", "člověk", "říše")] == ["horse", "child", "person", None]


def test_unknown_words_stay_and_are_told() -> None:
    translation = glossary("cs").translated("Karel a pes")
    assert translation.text == "Karel and dog"
    assert translation.unknown == ("Karel",)
    assert translation.is_understood
    assert not glossary("cs").translated("zeměpisná šířka je veličina").is_understood
    assert not glossary("cs").translated("").is_understood


def test_a_text_with_too_many_unknown_words_is_not_understood() -> None:
    encoder = MultilingualSentences()
    assert encoder.understood_languages == UNDERSTOOD | {"cs"}
    known, unknown = "dva psi na pláži", "přezkoumatelnost rozhodnutí dle občanského zákoníku"
    assert guess_language(known) == guess_language(unknown) == "cs"
    assert language_note(known, encoder.understood_in(known)) is None
    note = language_note(unknown, encoder.understood_in(unknown))
    assert note == "This looks like Czech, which the search model does not understand well; try English."


def test_a_czech_text_is_encoded_as_its_english_words() -> None:
    encoder = MultilingualSentences(n_threads=1)
    czech, english = encoder.transform(["dva psi běží po pláži", "two dogs running along beach"])
    assert english_of("dva psi běží po pláži") == "two dogs running along beach"
    np.testing.assert_allclose(czech, english, atol=1e-5)


def test_stored_points_stay_valid() -> None:
    """What collections were encoded with is named as it was before there were glossaries."""
    encoder = MultilingualSentences()
    parts = SentenceEncoder(), UniversalSentenceEncoder()
    assert (encoder.identity, encoder.revision) == ("MultilingualSentences(english='minilm')", 1)
    assert encoder.weights_digest == " ".join(part.fingerprint for part in parts)


@pytest.mark.data("flickr8k")
def test_czech_and_english_find_the_same_picture() -> None:
    retriever = Retriever.ready_made("light")
    pictures = retriever.encode_images(list(load_dataset("flickr8k").test.images[:30]))
    asked = [line.split("\t") for line in QUERIES.read_text(encoding="utf-8").splitlines()[1:]]
    english, czech = (
        np.argsort(-retriever.space.compare(retriever.encode_texts(list(texts)), pictures, "text_query"), axis=1)
        for texts in zip(*((row[0], row[3]) for row in asked), strict=True)
    )
    same = [first in others for first, others in zip(czech[:, 0], english[:, :3], strict=True)]
    assert np.mean(same) >= 0.85


def test_every_line_of_a_glossary_is_complete() -> None:
    for language in glossary_languages():
        file = Path(glossaries.__file__).with_name(f"glossary_{language}.tsv")
        lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
        assert lines[0][0] == "letters"
        entries = [cells for cells in lines if cells[0] in ("fixed", "noun", "verb", "adjective")]
        assert len({english for _, english, _ in entries}) > 2500
        assert all(lemmas.strip() and lemmas == lemmas.lower() for _, _, lemmas in entries)
        assert file.stat().st_size < 150_000


def test_another_language_is_another_table() -> None:
    made_up = Glossary(
        [
            "letters\tø",
            "endings\tthing\t- +r",
            "stem\tnoun\t()\t\\1\tthing",
            "fixed\ttwo\tdu",
            "noun\tdog\thunto",
            "noun\tsea dog\tmar_hunto",
        ]
    )
    assert made_up.translated("Huntor").text == "dogs"
    assert made_up.translated("du hunto, mar huntor?").text == "two dogs sea dog"
