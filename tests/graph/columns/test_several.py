import json

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from neural_brane.graph import encoder
from neural_brane.graph.columns import Column
from neural_brane.graph.encoder import Members, Words

TEXTS = ["A game of chess", "Chess, again: a GAME", None, "chess engine été", "tea", "Engine of été_2; x tea tea"]


def fit_words(texts, least=2):
    return Words.fit(pl.Series(texts, dtype=pl.String), Column("about", "text", "", least))


@pytest.mark.parametrize("block", [1, 2, 100])
def test_words_are_those_of_scikit_learn(block, monkeypatch):
    monkeypatch.setattr(encoder, "BLOCK_ROWS", block)
    known = [text or "" for text in TEXTS]
    vectorizer = CountVectorizer(binary=True, min_df=2, max_df=2)  # words of at most half of the five texts
    expected = vectorizer.fit_transform(known).toarray()
    words = fit_words(TEXTS)
    assert list(words.words) == sorted(vectorizer.vocabulary_)
    found = words.encode(pl.Series(TEXTS))
    matrix = sparse.coo_array((np.ones(len(found.rows)), (found.rows, found.codes)), shape=expected.shape)
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert (np.diff(found.rows * 100 + found.codes) > 0).all()


def test_words_of_too_few_or_too_many_nodes_are_left_out():
    texts = ["common rare0", "common twice", "common twice", "common x1", "common x2"]
    assert fit_words(texts).words == ("twice",)
    assert fit_words(texts, 1).words == ("rare0", "twice", "x1", "x2")


def test_words_are_named_after_their_column_and_new_words_give_no_warning():
    words = fit_words(["tea", "tea", "pie", "pie"])
    assert words.names("about") == ["about:pie", "about:tea"]
    found = words.encode(pl.Series(["coffee tea", None]))
    assert (found.rows.tolist(), found.codes.tolist(), len(found.unknown)) == ([0], [1], 0)


@pytest.mark.parametrize("block", [1, 100])
def test_members_of_lists_and_of_text_are_the_same(block, monkeypatch):
    monkeypatch.setattr(encoder, "BLOCK_ROWS", block)
    text = pl.Series(["b; a", "", None, "c;;b;b", "nan"])
    lists = pl.Series([["b", "a"], [], None, ["c", "b"], None])
    by_text, by_list = (
        Members.fit(values, Column("tags", "list", "", option)) for values, option in ((text, ";"), (lists, None))
    )
    assert by_text.values == by_list.values == ("a", "b", "c")
    assert by_text.names("tags") == ["tags=a", "tags=b", "tags=c"]
    for part, values in ((by_text, text), (by_list, lists)):
        found = part.encode(values)
        assert (found.rows.tolist(), found.codes.tolist()) == ([0, 0, 3, 3], [0, 1, 1, 2])


def test_unknown_members_are_returned():
    part = Members.fit(pl.Series([["a"], ["b"]]), Column("tags", "list", ""))
    found = part.encode(pl.Series([["z", "a"], ["b"]]))
    assert (found.codes.tolist(), found.unknown.to_list()) == ([0, 1], ["z"])


@pytest.mark.parametrize("part", [Members(";", ("a", "b")), Members(None, ()), Words(("tea",))])
def test_json_keeps_everything(part):
    assert type(part).from_dict(json.loads(json.dumps(part.as_dict()))) == part
