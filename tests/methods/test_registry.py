import sys

import pytest

from neural_brane import METHODS, NeuralBrane
from neural_brane.errors import ParameterError
from neural_brane.methods import find_method, untrainable


def test_an_unknown_method_is_answered_with_the_likeliest():
    assert find_method("neural-brane") is NeuralBrane
    with pytest.raises(ParameterError, match=r"method 'atributes' is unknown \(did you mean 'attributes'\?\)"):
        find_method("atributes")


def test_methods_whose_package_is_missing_cannot_be_trained(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # what Python keeps for a package that is not installed
    assert untrainable() == [name for name in METHODS if METHODS[name].extra == "torch"]
