import json
import platform

import numpy as np

from neural_brane.experiments.store import _processor, describe_machine, machine_name


def test_a_record_of_the_machine_is_json_and_names_what_computes():
    found = json.loads(json.dumps(describe_machine()))
    assert found["python"] == platform.python_version()
    assert found["packages"]["numpy"] == np.__version__
    assert found["processor"]
    assert found["cores"] >= 1
    assert found["memory_gb"] >= 1


def test_a_machine_in_a_line():
    machine = {"processor": "Abacus 3000", "cores": 2, "memory_gb": 8}
    assert machine_name(machine) == "Abacus 3000, 2 cores, 8 GB"
    assert machine_name(machine | {"gpu": "Beads"}) == "Abacus 3000, 2 cores, 8 GB, Beads"


def test_a_name_that_several_processors_have_is_told_with_family_and_model(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text("cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\ncpu family\t: 26\n")
    assert _processor(path) == "AMD EPYC (family 26, model 2)"
    path.write_text("cpu family\t: 6\nmodel\t\t: 106\nmodel name\t: Xeon @ 2.80GHz\n")
    assert _processor(path) == "Xeon @ 2.80GHz"
    assert _processor(tmp_path / "none")
