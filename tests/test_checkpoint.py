import numpy as np
import pytest

from neural_brane import NeuralBrane
from neural_brane.errors import ParameterError

RUN = {"dim": 10, "epochs": 6, "batches_per_epoch": 20, "batch_size": 30, "seed": 3, "spectral_dim": 0}


def stop_in(epoch):
    """A progress report that stops the run, as a person would."""

    def report(progress):
        if progress.epoch == epoch:
            raise KeyboardInterrupt

    return report


def stopped_run(graph, path, **parameters):
    with pytest.raises(KeyboardInterrupt):
        NeuralBrane(checkpoint=path, progress=stop_in(4), **RUN | parameters).fit(graph)


@pytest.mark.parametrize("regularise", ["hidden", "parameters"])
def test_a_stopped_run_goes_on_to_the_same_vectors(small_graph, tmp_path, regularise):
    path = tmp_path / "run.safetensors"
    whole = NeuralBrane(regularise=regularise, **RUN).fit(small_graph)
    stopped_run(small_graph, path, regularise=regularise)
    seen = []
    resumed = NeuralBrane(checkpoint=path, progress=seen.append, regularise=regularise, **RUN).fit(small_graph)
    np.testing.assert_array_equal(resumed.embedding_.vectors, whole.embedding_.vectors)
    assert resumed.loss_history_ == whole.loss_history_
    assert seen[0].epoch > 1


def test_a_finished_run_can_be_made_longer(small_graph, tmp_path):
    path = tmp_path / "run.safetensors"
    NeuralBrane(checkpoint=path, **RUN | {"epochs": 2}).fit(small_graph)
    longer = NeuralBrane(checkpoint=path, **RUN).fit(small_graph)
    np.testing.assert_array_equal(longer.embedding_.vectors, NeuralBrane(**RUN).fit_transform(small_graph).vectors)


def test_another_run_is_refused(small_graph, tmp_path):
    path = tmp_path / "run.safetensors"
    stopped_run(small_graph, path)
    with pytest.raises(ParameterError, match=r"is of another run \(learning_rate was 0.5, now 0.1\); remove it"):
        NeuralBrane(checkpoint=path, learning_rate=0.1, **RUN).fit(small_graph)
    with pytest.raises(ParameterError, match="is of another run"):
        NeuralBrane(checkpoint=path, **RUN).fit((small_graph.adjacency, small_graph.attributes[:, :2]))


def test_a_damaged_file_and_a_missing_seed_are_refused(small_graph, tmp_path):
    path = tmp_path / "run.safetensors"
    path.write_bytes(b"no tensors here")
    with pytest.raises(ParameterError, match=r"cannot be read .*; remove it to start afresh"):
        NeuralBrane(checkpoint=path, **RUN).fit(small_graph)
    with pytest.raises(ParameterError, match="seed=None makes no sense; give a number when there is a checkpoint"):
        NeuralBrane(checkpoint=path, **RUN | {"seed": None}).fit(small_graph)
