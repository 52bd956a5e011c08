"""Check the ids of nodes and the names of attributes, and find their positions."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import numpy as np

from neural_brane.errors import BraneError, GraphError
from neural_brane.graph.lazy import check_polars, pl


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN of any type, NaT or pandas' NA.

    >>> is_missing(float("nan")), is_missing(np.datetime64("NaT")), is_missing("nan"), is_missing(0)
    (True, True, False, False)
    """
    if value is None or type(value).__name__ == "NAType":
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # an array
        return False


def as_array(
    values: Any, what: str, error: type[BraneError] = GraphError, expected: str = "a list or an array of one kind"
) -> np.ndarray:
    """Return values as an array with no entry changed, of objects if they are mixed; refuse masked entries."""
    if np.ma.isMaskedArray(values):
        if hidden := int(np.ma.count_masked(values)):
            raise error(f"{what}: {hidden} entries are masked; fill them with array.filled(...) or drop them")
        values = values.data
    try:
        array = np.asarray(values)
        if array.dtype.kind in "Ufiu" and isinstance(values, list | tuple):
            objects = np.array(values, dtype=object)
            mixed = array.dtype.kind in "Uf" or not {bool, np.bool_}.isdisjoint(map(type, objects.flat))
            array = objects if mixed else array
    except (TypeError, ValueError, OverflowError) as problem:
        raise error(f"{what} cannot be converted to an array ({problem}); give {expected}") from problem
    return array.astype(object) if array.dtype.kind == "T" else array


MOST_COMPARED = 50_000  # ids that are compared with an unknown id


def describe_unknown(ids: np.ndarray, node: Any) -> str:
    """Return the message for an unknown id: some known ids, and those that look like the unknown one.

    >>> describe_unknown(np.array(["ann", "bob"]), "Ann")
    "no node 'Ann' here; ids are strings, such as 'ann', 'bob'; did you mean 'ann'?"
    """
    kind = "integers" if ids.dtype.kind == "i" else "strings"
    known = ", ".join(map(repr, ids[:3].tolist())) or "none"
    message = f"no node {node!r} here; ids are {kind}, such as {known}"
    text = str(node).casefold()
    if not text or not isinstance(node, str | int | np.integer):
        return message
    # Comparing all ids would be slow: compare only ids with the same first letter, in either case.
    names = ids if ids.dtype.kind == "U" else ids.astype(str)
    alike = np.flatnonzero(np.char.startswith(names, text[0]) | np.char.startswith(names, text[0].upper()))
    spelled: dict[str, int] = {}
    for row in alike[:MOST_COMPARED].tolist():
        spelled.setdefault(str(names[row]).casefold(), row)
    close = [repr(ids[spelled[name]].item()) for name in get_close_matches(text, spelled)]
    return f"{message}; did you mean {' or '.join(close)}?" if close else message


MANY = 100_000  # from this many strings, hashes find duplicates faster than sorting does
SLICE = 500_000  # strings that `Numbering` takes at a time
LARGE = 4_000_000  # from this many strings, compiled code saves more time than loading it takes
LARGEST = int(np.iinfo(np.int64).max)
NAMELESS = (bool, np.bool_, float, np.floating, complex, np.complexfloating)
# A plain integer. '007' and '+7' remain strings, because as integers they would be equal to 7.
INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
WHOLE = rf"{INTEGER[:-1]}(\.0*)?$"  # programs write 7.0 where a column has missing values
# Programs write these words for missing values, so none is an id or a label. NA is absent: it is a country code.
MISSING = ("nan", "NaN", "NAN", "null", "NULL", "None", "<NA>", "NaT")


def as_integers(words: pl.Series) -> pl.Series | None:
    """Return words as Int64 if each is a whole number, such as 7 or 7.0, that fits in 64 bits; else None.

    >>> as_integers(pl.Series(["7", "8.0"])).to_list(), as_integers(pl.Series(["7", "8.1"]))
    ([7, 8], None)
    """
    if not (words.head(100).str.contains(WHOLE).all() and words.str.contains(WHOLE).all()):
        return None
    if words.str.contains(".", literal=True).any():
        words = words.str.replace(r"\.0*$", "")
    numbers = words.cast(pl.Int64, strict=False)
    return numbers if numbers.null_count() == words.null_count() else None


def all_integers(words: pl.Series) -> bool:
    """Return whether every word is a plain integer, such as 7 and not 7.0, that fits in 64 bits; ignore nulls."""
    return bool(words.str.contains(INTEGER).all()) and as_integers(words) is not None


def as_ids(
    values: Any, *, what: str = "ids", error: type[BraneError] = GraphError, where: Callable[[int], str] | None = None
) -> np.ndarray:
    """Return any list of ids or names as a flat int64 or string array; raise `error` if that is impossible.

    If an integer does not fit in int64, all integers become strings. Missing values, booleans and floats are errors;
    `where` describes the entry at a position for the message.

    >>> as_ids(["bob", "ann"])
    array(['bob', 'ann'], dtype='<U3')
    """
    array = as_array(values, what, error)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iuUSO":
        cause = " (a missing value turns integers into floats: drop it)" if array.dtype.kind == "f" else ""
        raise error(f"{what} have dtype {array.dtype}, shape {array.shape}; give a list of integers or strings{cause}")
    if array.dtype.kind == "O":
        return _names_of_objects(array, error, where or (lambda at: f"{what}[{at}]"))
    if array.dtype.kind == "S":
        try:
            return np.char.decode(array, "utf-8")
        except UnicodeDecodeError as problem:
            raise error(f"{what} are bytes that are not UTF-8 ({problem}); decode them first") from None
    wide = array.dtype.kind == "u" and int(array.max()) > LARGEST
    return array.astype(str if wide or array.dtype.kind == "U" else np.int64, copy=False)


def _names_of_objects(array: np.ndarray, error: type[BraneError], where: Callable[[int], str]) -> np.ndarray:
    """Return objects as an array of integers if all are integers, else as strings."""
    kinds = set(map(type, array))
    if any(issubclass(kind, NAMELESS) for kind in kinds) or not all(issubclass(kind, str | int) for kind in kinds):
        for at, value in enumerate(array):
            if is_missing(value):
                raise error(f"{where(at)} is missing ({value}); give an integer or a string, or drop it")
            if isinstance(value, NAMELESS):
                raise error(f"{where(at)} is {value!r}, a {type(value).__name__}; give a list of integers or strings")
    if all(issubclass(kind, int | np.integer) for kind in kinds):
        numbers = [int(value) for value in array]
        fits = min(numbers) >= -LARGEST - 1 and max(numbers) <= LARGEST
        return np.array(numbers if fits else list(map(str, numbers)))
    try:
        words = [value.decode() if isinstance(value, bytes) else str(value) for value in array]
        whole = "\n".join(words).encode()
    except UnicodeError as problem:
        raise error(f"a name cannot be encoded as UTF-8 ({problem}); decode names as UTF-8") from None
    if b"\0" in whole:
        at = next(at for at, word in enumerate(words) if "\0" in word)
        raise error(f"{where(at)} is {words[at]!r}, which contains the character NUL; remove it")
    return np.array(words)


def encode(values: np.ndarray | pl.Series, *, large: int = LARGE) -> tuple[np.ndarray, np.ndarray]:
    """Return a code per value, and the distinct values by code: integers increasing, strings by first appearance."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        if high - low > 4 * len(values):
            distinct, codes = np.unique(values, return_inverse=True)
            return codes, distinct
        # If the integers are close together, a table lookup is many times faster than sorting.
        present = np.zeros(high - low + 1, dtype=bool)
        present[values - low] = True
        return (np.cumsum(present) - 1)[values - low], np.flatnonzero(present) + low
    texts = pl.Series(values, dtype=pl.String)
    if len(texts) >= large:
        from neural_brane.graph.numbering import Numbering, names_in_bytes

        numbering = Numbering()
        for at in range(0, len(texts), SLICE):
            numbering.add(names_in_bytes(texts.slice(at, SLICE)))
        return numbering.finish()
    # Equal strings have the same category, and sorting integers is far faster than sorting strings.
    categories = texts.cast(pl.Categorical).to_physical().to_numpy()
    _, first, codes = np.unique(categories, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], texts.gather(first[order]).to_numpy().astype(str)


def locate(ids: np.ndarray | pl.Series, wanted: np.ndarray | pl.Series) -> np.ndarray:
    """Return the position of each wanted id among distinct ids, or -1 if it is absent.

    An integer also matches its string, so node 7 is found as "7".

    >>> locate(np.array(["a", "b"]), np.array(["b", "z"]))
    array([ 1, -1])
    """
    check_polars()
    known, sought = pl.Series("id", ids), pl.Series("id", wanted)
    if known.dtype != sought.dtype:
        known, sought = known.cast(pl.String), sought.cast(pl.String)
    places = pl.DataFrame({"id": known, "place": np.arange(len(known))})
    found = sought.to_frame().join(places, on="id", how="left", maintain_order="left")
    return found["place"].fill_null(-1).to_numpy().astype(np.int64)


def repeated(ids: np.ndarray) -> Any | None:
    """Return an id that occurs twice, or None when all are distinct."""
    if len(ids) < 2 or (ids.dtype.kind == "i" and bool((ids[1:] > ids[:-1]).all())):
        return None
    if len(ids) > MANY and ids.dtype.kind == "U":
        hashed: np.ndarray = np.zeros(len(ids), np.uint64)
        for letter in np.ascontiguousarray(ids).view(np.uint32).reshape(len(ids), -1).T:
            hashed = (hashed ^ letter ^ (hashed >> 32)) * 0xD6E8FEB86659FD93
        hashed.sort()
        if (hashed[1:] != hashed[:-1]).all():
            return None
    ordered = np.sort(ids)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    return ordered[twice[0]].item() if len(twice) else None
