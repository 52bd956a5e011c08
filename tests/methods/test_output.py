"""Features as input and DataFrames as output, through scikit-learn's interface."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neural_brane import Attributes, Embedding, load_model
from neural_brane.errors import NotFittedError, ParameterError

NUMBERS = (np.random.default_rng(0).random((30, 8)) < 0.5).astype(float)
NUMBERS[:, 0] += NUMBERS.sum(axis=1) == 0  # no row is empty
FRAME = pd.DataFrame(NUMBERS, columns=list("abcdefgh"), index=range(100, 130))


def test_a_frame_comes_out_where_one_is_asked_for():
    plain = Attributes(dim=2, seed=0)
    framed = clone(Attributes(dim=2, seed=0).set_output(transform="pandas"))
    expected = plain.fit_transform(FRAME)
    assert isinstance(expected, np.ndarray)
    frame = framed.fit_transform(FRAME)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(expected, FRAME.index, framed.get_feature_names_out()))
    pd.testing.assert_frame_equal(
        framed.transform(FRAME[:3]), pd.DataFrame(plain.transform(FRAME[:3]), FRAME.index[:3], frame.columns)
    )


def test_polars_goes_in_and_out():
    given = pl.from_pandas(FRAME)
    model = Attributes(dim=2, seed=0).set_output(transform="polars")
    frame = model.fit_transform(given)
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["attributes0", "attributes1"]
    assert model.feature_names_in_.tolist() == list("abcdefgh")
    np.testing.assert_array_equal(frame.to_numpy(), Attributes(dim=2, seed=0).fit_transform(NUMBERS))


def test_the_form_chosen_for_all_estimators_holds_and_a_methods_own_goes_before_it():
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(Attributes(dim=2, seed=0).fit_transform(NUMBERS), pd.DataFrame)
        own = Attributes(dim=2, seed=0).set_output(transform="default")
        assert isinstance(own.set_output().fit_transform(NUMBERS), np.ndarray)


def test_a_graph_gives_an_embedding_whatever_the_form(small_graph):
    assert isinstance(Attributes(dim=2, seed=0).set_output(transform="pandas").fit_transform(small_graph), Embedding)


def test_an_unknown_form_is_refused():
    with pytest.raises(ParameterError, match="transform='csv' makes no sense; give default, pandas, polars or None"):
        Attributes().set_output(transform="csv")


def test_names_go_in_and_come_out(tmp_path):
    model = Attributes(dim=2, seed=0).fit(FRAME)
    model.save(tmp_path / "m.brane")
    for one in (model, load_model(tmp_path / "m.brane")):
        assert one.n_features_in_ == 8
        assert one.feature_names_in_.tolist() == list("abcdefgh")
        assert one.get_feature_names_out(list("abcdefgh")).tolist() == ["attributes0", "attributes1"]
        with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
            one.get_feature_names_out(list("hgfedcba"))
    numbered = Attributes(dim=2, seed=0).fit(NUMBERS)
    assert not hasattr(numbered, "feature_names_in_")
    with pytest.raises(ValueError, match=r"length.*8.*3"):
        numbered.get_feature_names_out(list("abc"))
    with pytest.raises(NotFittedError):
        Attributes().get_feature_names_out()


def test_columns_of_a_table_are_embedded_beside_others():
    words = Attributes(dim=2, seed=0)
    columns = make_column_transformer((words, list("abcde")), (StandardScaler(), list("fgh")))
    frame = make_pipeline(columns).set_output(transform="pandas").fit_transform(FRAME)
    assert frame.columns.tolist() == [
        *("attributes__attributes0", "attributes__attributes1"),
        *(f"standardscaler__{name}" for name in "fgh"),
    ]
    np.testing.assert_array_equal(frame.iloc[:, :2], words.fit_transform(NUMBERS[:, :5]))


def test_a_plain_matrix_needs_no_scikit_learn():
    code = (
        "import sys, numpy, neural_brane; neural_brane.Attributes(dim=2, seed=0).fit_transform(numpy.eye(3)); "
        "assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
