"""An error names the packages that distributed training lacks, and the commands that install them."""

from importlib.metadata import PackageNotFoundError

import pytest

from neural_brane.distributed.launch import require_packages
from neural_brane.errors import DependencyError

FITTING = {
    "torch": "2.13.0+cpu",
    "tensordict": "0.15.3",
    "pyre-extensions": "0.0.32",
    "torchrec": "1.8.0",
    "fbgemm-gpu-cpu": "1.8.0",
}


def versions(**changes):
    found = FITTING | {name.replace("_", "-"): value for name, value in changes.items()}

    def installed(name):
        if found.get(name) is None:
            raise PackageNotFoundError(name)
        return found[name]

    return installed


def test_matching_versions_are_accepted():
    require_packages(versions())
    require_packages(versions(fbgemm_gpu_cpu=None, fbgemm_gpu="1.8.0"))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"torchrec": None}, "torchrec is not installed"),
        ({"torch": "2.12.1"}, "torch is 2.12.1, not 2.13.x"),
        ({"fbgemm_gpu_cpu": None}, "fbgemm-gpu-cpu is not installed"),
        ({"fbgemm_gpu_cpu": "1.9.0"}, "fbgemm-gpu-cpu is 1.9.0, not 1.8.x"),
        ({"fbgemm_gpu_cpu": None, "fbgemm_gpu": "1.7.0"}, "fbgemm-gpu is 1.7.0, not 1.8.x"),
    ],
)
def test_the_error_names_the_wrong_version_and_the_commands_to_run(changes, problem):
    with pytest.raises(DependencyError) as caught:
        require_packages(versions(**changes))
    assert problem in str(caught.value)
    assert "pip install 'neural-brane[distributed]'" in str(caught.value)
    assert "pip install --no-deps torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0" in str(caught.value)
