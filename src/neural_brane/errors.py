"""All errors and warnings of this package.

Every message says what was given, what was expected and what to do::

    BraneError
    ├── GraphError           a graph, its attributes or its labels cannot be used (also a ValueError)
    │   └── KindError        a value has another type where a number is expected (also a TypeError)
    ├── DatasetError         a named dataset is unknown, missing or damaged (also a ValueError)
    ├── ShardError           a folder of shards is damaged or incomplete, or cannot be made (also a ValueError)
    ├── EmbeddingError       vectors cannot be used, or do not match their labels (also a ValueError)
    │   └── PartError        a file in a folder of vectors is missing, damaged or of another version
    ├── ParameterError       a parameter has a value that is not allowed (also a ValueError)
    │   ├── NotFittedError   a method was used before it was fitted (also an AttributeError, and the
    │   │                    NotFittedError of scikit-learn)
    │   ├── CheckpointError  a checkpoint is damaged, in use, or belongs to another training
    │   └── ModelError       a saved model is damaged or of another version
    ├── OutOfMemoryError     something does not fit into the available memory (also a MemoryError)
    └── DependencyError      an optional package is not installed (also an ImportError)

There are four warnings: UntrainedWarning, ReadingWarning, ZeroVectorWarning and IgnoredAmountsWarning.
Messages may quote ids and names from files. So `printable` escapes characters that would control the terminal, and
`shorten` cuts a message that would fill the screen.
"""

import re
from functools import cache

LONGEST = 2000  # characters of a message
# Control characters, marks that reverse the direction of writing, line separators and surrogates are unprintable.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: object, *, keep: str = "") -> str:
    r"""Return a text that is safe to print: characters that would control the terminal become escape sequences.

    Characters in `keep` are not replaced.

    >>> print(printable("\x1b[2Ja\nb"), printable("a\nb", keep="\n"))
    \x1b[2Ja\nb a
    b
    """
    return _UNPRINTABLE.sub(
        lambda found: found[0] if found[0] in keep else found[0].encode("unicode_escape").decode(), str(text)
    )


def shorten(text: str, most: int = LONGEST) -> str:
    """Return the beginning and the end of a text, about `most` characters in all.

    >>> shorten("x" * 50 + "; mend it", most=40)
    'xxxxxxxxxxxxxxxxxxxx … (29 characters left out) … x; mend it'
    """
    if len(text) <= most:
        return text
    begin, end = text[: most // 2], text[-(most // 4) :]
    return f"{begin} … ({len(text) - len(begin) - len(end):,} characters left out) … {end}"


class BraneError(Exception):
    """The base class of all errors of this package: catch it to catch any of them."""

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(shorten(str(message))))


class GraphError(BraneError, ValueError):
    """A graph, its attributes or its labels cannot be used as given."""


class KindError(GraphError, TypeError):
    """A value is not a number, but for example a dict, where a number is expected."""


class DatasetError(BraneError, ValueError):
    """A named dataset is unknown, missing or damaged."""


class ShardError(BraneError, ValueError):
    """A folder of shards cannot be opened, read or written."""


class EmbeddingError(BraneError, ValueError):
    """Vectors cannot be used as given, or do not match their labels."""


class PartError(EmbeddingError):
    """A folder of vectors cannot be used: one of its files is missing, cut off, damaged or of another version."""


class ParameterError(BraneError, ValueError):
    """A parameter has a value that is not allowed."""


class NotFittedError(ParameterError, AttributeError):
    """A method was used before it was fitted. Create it with `not_fitted`, which makes it scikit-learn's error too."""

    def __reduce__(self) -> tuple[object, ...]:
        return not_fitted, (str(self),)


def not_fitted(message: str) -> NotFittedError:
    """Return the error for a method that is not fitted; `except sklearn.exceptions.NotFittedError` catches it too.

    Its class is created on first use, because importing scikit-learn takes longer than importing this package.

    >>> from sklearn.exceptions import NotFittedError as ScikitLearns
    >>> isinstance(not_fitted("call fit first"), ScikitLearns)
    True
    """
    return _not_fitted_of_both()(message)


@cache
def _not_fitted_of_both() -> type[NotFittedError]:
    from sklearn.exceptions import NotFittedError as ScikitLearns

    return type("NotFittedError", (NotFittedError, ScikitLearns), {"__module__": __name__})


class OutOfMemoryError(BraneError, MemoryError):
    """Something does not fit into the available memory; nothing was allocated for it."""


class CheckpointError(ParameterError):
    """A checkpoint cannot be resumed: it is damaged, in use, or belongs to another training."""


class ModelError(ParameterError):
    """A saved model cannot be read or written: the file is damaged, of another kind or of another version."""


class DependencyError(BraneError, ImportError):
    """An optional package that is needed is not installed."""


class UntrainedWarning(UserWarning):
    """A model was trained but learned nothing: its loss is that of random guessing."""


class ReadingWarning(UserWarning):
    """Part of the data is not used, looks odd or can be read in two ways; the warning says what was done."""


class ZeroVectorWarning(UserWarning):
    """Some nodes have the vector zero, so that all other nodes are equally near to them."""


class IgnoredAmountsWarning(UserWarning):
    """Nodes have different amounts of an attribute, but the method uses only whether they have it."""
