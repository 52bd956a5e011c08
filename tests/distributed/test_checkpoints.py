"""Any number of ranks can read a checkpoint; damaged checkpoints and those of another run are refused."""

import json

import pytest

pytest.importorskip("torch", reason="ranks need torch: pip install 'neural-brane[torch]'")


@pytest.fixture(scope="module")
def kept(tmp_path_factory, ranks_module):
    output = tmp_path_factory.mktemp("checkpoints")
    ranks_module.run_ranks("checkpoint_program.py", output)
    return json.loads((output / "found.json").read_text())


def test_without_checkpoints_none_is_found(kept):
    assert kept["nothing"] == {"none": True}


def test_the_last_two_checkpoints_are_kept(kept):
    assert kept["folders"] == ["LATEST", "step-00000020", "step-00000030"]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_any_number_of_ranks_reads_what_two_have_saved(kept, ranks):
    assert kept[f"read by {ranks}"] == {
        "step": 30,
        "ranks": 2,
        "numbers": {"sum": 3.0},
        "names": ["table", "weight"],
        "whole": True,
        "warned": [],
    }


def test_checkpoints_of_another_run_are_refused(kept):
    assert "dim was 4, now 8" in kept["other parameter"]["error"]
    assert "another graph" in kept["other graph"]["error"]
    assert kept["free parameter"]["step"] == 30


def test_if_the_newest_is_damaged_the_one_before_is_used_with_a_warning(kept):
    assert (kept["one damaged"]["step"], kept["one damaged"]["whole"]) == (20, True)
    (warning,) = kept["one damaged"]["warned"]
    assert "step-00000030/__1_0.distcp" in warning
    assert "step-00000020" in warning
    assert kept["not whole"]["step"] == 20
    assert "step-00000030" in kept["not whole"]["warned"][0]
    assert "checkpoint.json" in kept["not whole"]["warned"][0]


def test_a_changed_description_is_damage_and_the_checkpoint_before_is_used(kept):
    assert (kept["edited"]["step"], kept["edited"]["whole"]) == (20, True)
    assert "step-00000030/checkpoint.json: is damaged" in kept["edited"]["warned"][0]


def test_python_objects_are_refused_in_our_own_words(kept):
    error = kept["objects"]["error"]
    assert "step-00000030: cannot be read (one of its files contains Python objects" in error
    assert "weights_only" not in error


def test_if_all_are_damaged_the_error_names_each_file(kept):
    error = kept["all damaged"]["error"]
    assert "step-00000030/__1_0.distcp" in error
    assert "step-00000020/__0_0.distcp" in error


def test_a_folder_that_another_run_writes_to_is_refused(kept):
    assert "another run" in kept["two runs"]
