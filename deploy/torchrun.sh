#!/bin/sh
# One job on two hosts, by torchrun. Run it on both, with the name of the first:
#
#   deploy/torchrun.sh HOST1 2 /shared/graph /shared/vectors
#
# The arguments: the host that ranks meet at, ranks on each host (one for each GPU), the graph in parts (brane shard),
# and the folder of vectors. Vectors and checkpoints are in a folder that both hosts see. A host that is lost may join
# again: start this on it once more. The first host must stay, since the ranks meet there.
set -eu
first=$1 ranks=$2 graph=$3 vectors=$4
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1  # else a lost host is not replaced
export OMP_NUM_THREADS=$(($(nproc) / ranks > 0 ? $(nproc) / ranks : 1))
exec torchrun --nnodes 1:2 --nproc-per-node "$ranks" --max-restarts 10 \
    --rdzv-backend c10d --rdzv-endpoint "$first:29400" --rdzv-id neural-brane \
    -m neural_brane distributed embed "$graph" -o "$vectors" \
    --checkpoint "$vectors.kept" --metrics "$vectors.metrics" --device auto --seed 0
