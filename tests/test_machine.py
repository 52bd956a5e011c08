import json
import platform

import numpy as np

from neural_brane.machine import describe_machine


def test_a_record_of_the_machine_is_json_and_names_what_computes():
    found = json.loads(json.dumps(describe_machine()))
    assert found["python"] == platform.python_version()
    assert found["packages"]["numpy"] == np.__version__
    assert found["processor"]
    assert found["cores"] >= 1
    assert found["memory_gb"] >= 1
