"""Test the launcher files: their shell parses, and their commands and fields exist."""

import ast
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from neural_brane import NeuralBrane
from neural_brane.cli.app import app

DEPLOY = Path(__file__).parents[1] / "deploy"
# These are the fields of a PyTorchJob, from the types of Kubeflow's training operator (kubeflow.org/v1).
JOB = {"runPolicy", "elasticPolicy", "pytorchReplicaSpecs", "nprocPerNode"}
ELASTIC = {"minReplicas", "maxReplicas", "rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId", "rdzvConf", "maxRestarts"}
REPLICA = {"replicas", "template", "restartPolicy"}
# This program replaces a missing one, and prints its arguments and environment.
STUB = f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps([sys.argv, dict(os.environ)]))\n"


def called(tmp_path, script, arguments, **environment):
    """Return the arguments and the environment with which a script starts torchrun."""
    for name in ("torchrun", "nproc"):
        (tmp_path / name).write_text(STUB if name == "torchrun" else "#!/bin/sh\necho 8\n")
    (tmp_path / "srun").write_text('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"\n')
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho first\necho second\n")
    for path in tmp_path.iterdir():
        path.chmod(0o755)
    environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [shutil.which("bash"), DEPLOY / script, *arguments]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    words, found = json.loads(printed)
    return words[1:], found


def require_command(words):
    """Raise an error if `brane` does not accept the arguments."""
    group, command, *arguments = words
    assert (group, command) == ("distributed", "embed")
    values = get_command(app).commands[group].commands[command].make_context(command, arguments).params
    assert values["checkpoint"]
    assert values["metrics"]
    return values


@pytest.mark.parametrize(
    ("script", "arguments", "environment"),
    [
        ("torchrun.sh", ["first", "2", "graph", "vectors"], {}),
        (
            "slurm.sbatch",
            ["graph", "vectors"],
            {
                "SLURM_JOB_NODELIST": "n[1-2]",
                "SLURM_JOB_NUM_NODES": "2",
                "SLURM_JOB_ID": "7",
                "SLURM_GPUS_ON_NODE": "2",
                "SLURM_CPUS_PER_TASK": "8",
            },
        ),
    ],
)
def test_scripts_start_torchrun_with_what_a_job_needs(tmp_path, script, arguments, environment):
    words, found = called(tmp_path, script, arguments, **environment)
    at = words.index("-m")
    options = dict(zip(words[:at:2], words[1:at:2], strict=True))
    assert options["--rdzv-backend"] == "c10d"
    assert options["--rdzv-endpoint"] == "first:29400"
    assert options["--nnodes"] == "1:2"
    assert options["--nproc-per-node"] == "2"
    assert int(options["--max-restarts"]) > 0
    assert found["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert found["OMP_NUM_THREADS"] == "4"
    assert words[at + 1] == "neural_brane"
    values = require_command(words[at + 2 :])
    assert (values["source"], str(values["output"])) == ("graph", "vectors")


def test_the_job_of_kubeflow_has_fields_that_exist():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((DEPLOY / "pytorchjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    assert set(job["spec"]) <= JOB
    assert isinstance(job["spec"]["nprocPerNode"], str)
    assert set(job["spec"]["elasticPolicy"]) <= ELASTIC
    assert job["spec"]["elasticPolicy"]["rdzvBackend"] == "c10d"
    (replica,) = job["spec"]["pytorchReplicaSpecs"].values()
    assert set(replica) <= REPLICA
    (container,) = replica["template"]["spec"]["containers"]
    assert container["name"] == "pytorch"
    assert {"name": "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "value": "1"} in container["env"]
    torchrun, _, module, *words = container["command"] + container["args"]
    assert (torchrun, module) == ("torchrun", "neural_brane")
    require_command(words)


def test_the_program_for_ray_gives_parameters_that_exist():
    pytest.importorskip("torch")
    from neural_brane.distributed.embedding import embed_shards

    calls = [node for node in ast.walk(ast.parse((DEPLOY / "ray_train.py").read_text())) if isinstance(node, ast.Call)]
    (call,) = [node for node in calls if getattr(node.func, "id", "") == "embed_shards"]
    given = {keyword.arg for keyword in call.keywords}
    assert given <= set(inspect.signature(embed_shards).parameters) | set(NeuralBrane.parameters())
    assert {"job", "checkpoint", "metrics"} <= given
