"""Measure converting a table of nodes to attributes, compared with only reading the CSV file with polars.

    python benchmarks/node_table.py [--nodes 1000000] [--json]

Writes a table as CSV, with two categories (200 and 20,000 values), two numbers and a text of eight words, then reads
and encodes it in a new process. Prints

    polars_s          seconds of polars.read_csv, whose data frame takes frame_mb
    read_s            seconds of our reader for the same file
    infer_s, fit_s    seconds to infer the kinds of columns, and to fit bins, values and words
    encode_s          seconds to make the sparse matrix, which takes matrix_mb
    peak_mb           peak memory of the process; held_mb is the part before reading
    over_polars       the sum of our times divided by polars_s
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from neural_brane.experiments.compute import peak_memory, run
from neural_brane.experiments.store import describe_machine

WORDS = 20_000
TEXT = 8  # words per text


def make(task: tuple[int, Path]) -> None:
    """Write the table; task: (nodes, path)."""
    nodes, path = task
    random = np.random.default_rng(0)
    words = np.minimum(random.zipf(1.3, TEXT * nodes), WORDS)
    texts = pl.Series(words).cast(pl.String).reshape((nodes, TEXT)).cast(pl.List(pl.String))
    columns = {
        "id": np.arange(nodes),
        "country": "c" + pl.Series(random.integers(0, 200, nodes)).cast(pl.String),
        "city": "t" + pl.Series(random.integers(0, 20_000, nodes)).cast(pl.String),
        "age": random.integers(0, 90, nodes),
        "income": random.lognormal(8, 1, nodes),
        "about": "w" + texts.list.join(" w"),
    }
    pl.DataFrame(columns).write_csv(path)


def encode(path: Path) -> dict[str, float]:
    """Read and encode the table, and return the measurements."""
    from neural_brane.files.tables import read_frame
    from neural_brane.graph.columns import infer_columns
    from neural_brane.graph.encoder import Encoder

    clock = [time.perf_counter()]
    held = peak_memory()
    size = pl.read_csv(path).estimated_size("mb")
    clock.append(time.perf_counter())
    frame = read_frame(path, what="table of nodes").frame
    clock.append(time.perf_counter())
    columns = infer_columns(frame, id="id")
    clock.append(time.perf_counter())
    encoder = Encoder.fit(frame, columns)
    clock.append(time.perf_counter())
    matrix, _ = encoder.encode(frame)
    clock.append(time.perf_counter())
    seconds = dict(zip(("polars_s", "read_s", "infer_s", "fit_s", "encode_s"), np.diff(clock).tolist(), strict=True))
    arrays = sum(part.nbytes for part in (matrix.data, matrix.indices, matrix.indptr))
    counts = {"nodes": matrix.shape[0], "attributes": matrix.shape[1], "entries": int(matrix.nnz)}
    memory = {"frame_mb": size, "matrix_mb": arrays / 1e6, "held_mb": held, "peak_mb": peak_memory()}
    ours = sum(seconds.values()) - seconds["polars_s"]
    return counts | seconds | memory | {"over_polars": ours / seconds["polars_s"]}


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nodes.csv"
        for function, task in ((make, (options.nodes, path)), (encode, path)):
            (ended,) = run(function, [task], jobs=1)
            if ended.failure:
                raise SystemExit(f"{function.__name__}: {ended.failure}")
    result = {name: round(value, 2) for name, value in ended.result.items()}
    if options.json:
        print(json.dumps({"machine": describe_machine(), "result": result}, indent=1))
    else:
        print("\n".join(f"{name:12} {value:>14,}" for name, value in result.items()))


if __name__ == "__main__":
    main()
