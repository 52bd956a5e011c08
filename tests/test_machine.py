import json
import platform

import numpy as np

from neural_brane.machine import describe_machine, machine_name


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
