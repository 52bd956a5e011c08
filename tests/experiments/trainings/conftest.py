"""Make trainings that take a fraction of a second."""

import pytest

from neural_brane.experiments.store import Training

SCORING = {"classes": {"train": [0.3, 0.7], "splits": 2}, "clusters": {"starts": 3}}


@pytest.fixture
def training():
    """Return a function that makes a small training on the package's own graph."""

    def training(method="attributes", seed=0, scoring=SCORING, **parameters):
        return Training(method, {"dim": 4} | parameters, "stdlib", seed, scoring)

    return training
