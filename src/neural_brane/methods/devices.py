"""The choice between the CPU and an NVIDIA GPU, the same for every method that has it."""

import logging
from collections.abc import Sequence
from importlib.util import find_spec

from neural_brane.errors import ParameterError

_INSTALL = "pip install 'neural-brane[torch]' on a machine with an NVIDIA GPU, or train with device='cpu'"
_log = logging.getLogger("neural_brane")


def resolve(device: str, *, needs: Sequence[str] = ("torch", "triton")) -> str:
    """The device that training runs on; "auto" takes the GPU where there is one, and logs which."""
    missing = None if device in ("cpu", "cluster") else _missing(needs)
    if device == "cuda" and missing:
        raise ParameterError(f"device='cuda' cannot be used: {missing}; {_INSTALL}")
    if device == "auto":
        device = "cpu" if missing else "cuda"
        _log.warning("device='auto': training on the %s", f"CPU ({missing})" if missing else f"GPU ({gpu_name()})")
    return device


def _missing(packages: Sequence[str]) -> str | None:
    """What stands in the way of the GPU, or None."""
    for package in packages:
        if find_spec(package) is None:
            return f"the package {package} is not installed"
    import torch

    return None if torch.cuda.is_available() else f"PyTorch {torch.__version__} sees no GPU"


def gpu_name() -> str:
    """The GPU's name."""
    import torch

    return str(torch.cuda.get_device_name())
