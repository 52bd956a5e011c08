"""Fit in this process, a forked pool and threads; print the threading layer and the number of different results."""

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

from numba import threading_layer
from threadpoolctl import threadpool_info

from neural_brane import METHODS, synthetic
from neural_brane.errors import DependencyError

SETTINGS = {"neural-brane": {"epochs": 1, "batches_per_epoch": 3}, "deepwalk": {"walks_per_node": 1}}


def fit(name):
    return METHODS[name](dim=16, seed=3, **SETTINGS[name]).fit_transform(synthetic(400)).vectors.tobytes()


def blas_threads():
    return {one["filepath"]: one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def main(name):
    found = {fit(name)}
    before = blas_threads()  # the first fit has loaded all libraries
    try:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found |= set(pool.map(fit, [name] * 2))
    except DependencyError as error:
        print(f"refused: {error}")
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            found |= set(pool.map(fit, [name] * 2))
    restored = before == {path: count for path, count in blas_threads().items() if path in before}
    print(f"{threading_layer()}: {len(found)} result, BLAS {'restored' if restored else 'limited'}")


if __name__ == "__main__":
    main(sys.argv[1])
