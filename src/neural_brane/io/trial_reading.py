"""Read a Parquet or Arrow file from standard input and print why it cannot be read, if so: a program, not a module.

A damaged file of these formats can end the process that reads it, which no `except` can stop: Polars believes the sizes
that the file claims. So `neural_brane.io.trial` has the file read here first, where nothing is lost with the
process. This program imports nothing of ours, so that it starts at once.
"""

import sys
from io import BytesIO


def main(kind: str, most: int) -> None:
    """Read a file of a kind; `most` is how many bytes of memory may be had, 0 where it is not known."""
    import polars

    if most and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    readers = {"Parquet": polars.read_parquet, "Arrow": polars.read_ipc, "Arrow stream": polars.read_ipc_stream}
    data = BytesIO(sys.stdin.buffer.read())
    try:
        readers[kind](data)
    except BaseException as error:  # a panic of Polars is no Exception
        print((str(error).strip() or type(error).__name__).splitlines()[0])
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
