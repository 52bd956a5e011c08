"""Parameters of Neural-Brane that do not go together."""

from typing import Any

from neural_brane.methods.base import require
from neural_brane.methods.neural_brane.parts import kernel_settings


def check_parameters(values: dict[str, Any], learned: int) -> None:
    """Refuse parameters in force that do not go together; `learned` is the width of the learned part."""
    hidden, attribute_dim = values["hidden"], values["attribute_dim"]
    kept = "none with device='cluster': ranks keep a folder of checkpoints in 'brane embed --cluster'"
    require(values["device"] != "cluster" or values["checkpoint"] is None, "checkpoint", values["checkpoint"], kept)
    if learned:
        require(attribute_dim <= learned, "attribute_dim", attribute_dim, f"0 to {learned}, the learned part of dim")
        square = values["output"] != "hidden" or hidden == learned
        wide = f"{learned}, the learned part of dim, when output='hidden', whose vectors are hidden numbers wide"
        require(square, "hidden", hidden, wide)
    scaled = values["length"] > 0 or not values["spectral_dim"]
    require(scaled, "length", values["length"], "a number above 0 when there is a spectral part")
    if values["batch_size"] is not None:
        kernel = kernel_settings(values)
        shrinks = 2 * kernel.table_rate * kernel.parameter_l2 < 1
        too_large = f"a smaller number: a batch of {values['batch_size']} would shrink rows below nothing"
        require(shrinks, "l2", values["l2"], too_large)
