"""Read a Parquet, Arrow or HDF5 file from standard input and print why it cannot be read, if so: a program.

A damaged file of these formats can end the process that reads it, which no `except` can stop: Polars and HDF5 believe
the sizes that the file claims. So `neural_brane.files.trial` has the file read here first, where nothing is lost with the
process. This program imports nothing of ours, so that it starts at once.
"""

import sys
from io import BytesIO


def read_frame(kind: str, data: BytesIO) -> None:
    """Read a data frame."""
    import polars

    readers = {"Parquet": polars.read_parquet, "Arrow": polars.read_ipc, "Arrow stream": polars.read_ipc_stream}
    readers[kind](data)


def read_hdf5(data: BytesIO) -> None:
    """Read every array and every attribute."""
    import h5py

    def read(_: str, item: object) -> None:
        dict(item.attrs)  # type: ignore[attr-defined]
        if isinstance(item, h5py.Dataset):
            item[()]

    with h5py.File(data, "r") as file:
        dict(file.attrs)
        file.visititems(read)


def main(kind: str, most: int) -> None:
    """Read a file of a kind; `most` is how many bytes of memory may be had, 0 where it is not known."""
    if most and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    data = BytesIO(sys.stdin.buffer.read())
    try:
        read_hdf5(data) if kind == "HDF5" else read_frame(kind, data)
    except BaseException as error:  # a panic of Polars is no Exception
        print((str(error).strip() or type(error).__name__).splitlines()[0])
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
