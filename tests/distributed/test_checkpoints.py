"""Checkpoints of a job: read by any number of ranks, kept by two, refused where they are damaged or of another run."""

import json

import pytest

pytest.importorskip("torch", reason="ranks need torch: pip install 'neural-brane[torch]'")


@pytest.fixture(scope="module")
def kept(tmp_path_factory, ranks_module):
    output = tmp_path_factory.mktemp("checkpoints")
    ranks_module.run_ranks("checkpoint_program.py", output)
    return json.loads((output / "found.json").read_text())


def test_nothing_is_found_where_nothing_was_saved(kept):
    assert kept["nothing"] == {"none": True}


def test_the_last_two_stay_and_the_newest_is_named(kept):
    assert kept["folders"] == ["LATEST", "step-00000020", "step-00000030"]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_what_two_ranks_saved_any_number_reads(kept, ranks):
    assert kept[f"read by {ranks}"] == {
        "step": 30,
        "ranks": 2,
        "numbers": {"sum": 3.0},
        "names": ["table", "weight"],
        "whole": True,
        "warned": [],
    }


def test_those_of_another_run_are_refused(kept):
    assert "dim was 4, now 8" in kept["other parameter"]["error"]
    assert "is of another graph" in kept["other graph"]["error"]
    assert kept["free parameter"]["step"] == 30


def test_where_the_newest_is_damaged_the_one_before_is_used_and_told(kept):
    assert (kept["one damaged"]["step"], kept["one damaged"]["whole"]) == (20, True)
    (told,) = kept["one damaged"]["warned"]
    assert "step-00000030/__1_0.distcp: is damaged" in told
    assert "the checkpoint before it, step-00000020, is used" in told
    assert kept["not whole"]["step"] == 20
    assert "step-00000030: has no checkpoint.json" in kept["not whole"]["warned"][0]


def test_where_all_are_damaged_each_is_named(kept):
    error = kept["all damaged"]["error"]
    assert "step-00000030/__1_0.distcp: is damaged" in error
    assert "step-00000020/__0_0.distcp: is missing" in error


def test_a_folder_that_another_run_writes_to_is_refused(kept):
    assert "another run saves its checkpoints there too" in kept["two runs"]
