"""The errors this package raises on purpose.

Every message says what was given, what was expected and how to mend it::

    BraneError
    ├── GraphError           a graph, its attributes or its labels cannot be used (also a ValueError)
    │   └── KindError        a value that is no number stands where one belongs (also a TypeError)
    ├── DatasetError         a named dataset is unknown, absent or damaged (also a ValueError)
    ├── ShardError           a graph in parts is damaged, unfinished or cannot be made (also a ValueError)
    ├── EmbeddingError       vectors, or their match with labels, cannot be used (also a ValueError)
    │   └── PartError        a part of a folder of vectors is missing, damaged or of another version
    ├── ParameterError       a parameter has a value that makes no sense (also a ValueError)
    │   ├── NotFittedError   a method is asked for vectors before it has learned (also an AttributeError, and
    │   │                    where it is raised the NotFittedError of scikit-learn)
    │   ├── CheckpointError  a checkpoint is damaged, in use, or of another run
    │   └── ModelError       a file of a fitted method is damaged, or of another version
    ├── OutOfMemoryError     something does not fit into the memory that is available (also a MemoryError)
    └── DependencyError      an optional package that a method needs is not installed (also an ImportError)

Four warnings have names of their own: UntrainedWarning, ReadingWarning, ZeroVectorWarning and IgnoredAmountsWarning.
Messages may quote ids and names from files: `printable` keeps them from moving a terminal's cursor, and a long one from
filling the screen.
"""

import re
from functools import cache

LONGEST = 2000  # characters of a message
# Control characters, marks that reverse the direction of writing, separators of lines, halves of characters.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: object, *, keep: str = "") -> str:
    """Make a text safe to show on a terminal: characters that would steer the terminal are written as escapes.

    keep: control characters that stay as they are.

    >>> print(printable("\\x1b[2Ja\\nb"), printable("a\\nb", keep="\\n"))
    \\x1b[2Ja\\nb a
    b
    """
    return _UNPRINTABLE.sub(
        lambda found: found[0] if found[0] in keep else found[0].encode("unicode_escape").decode(), str(text)
    )


def shorten(text: str, most: int = LONGEST) -> str:
    """Cut a text to about `most` characters: its beginning and its end.

    >>> shorten("x" * 50 + "; mend it", most=40)
    'xxxxxxxxxxxxxxxxxxxx … (29 characters left out) … x; mend it'
    """
    if len(text) <= most:
        return text
    begin, end = text[: most // 2], text[-(most // 4) :]
    return f"{begin} … ({len(text) - len(begin) - len(end):,} characters left out) … {end}"


class BraneError(Exception):
    """The base of all errors raised on purpose: catch this to catch any of them."""

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(shorten(str(message))))


class GraphError(BraneError, ValueError):
    """A graph, its attributes or its labels cannot be used as given."""


class KindError(GraphError, TypeError):
    """A value that is no number, such as a dict, stands where a number belongs."""


class DatasetError(BraneError, ValueError):
    """A named dataset is unknown, absent or damaged."""


class ShardError(BraneError, ValueError):
    """A folder of a graph in parts cannot be opened, read or written as given."""


class EmbeddingError(BraneError, ValueError):
    """Vectors, or their match with labels, cannot be used as given."""


class PartError(EmbeddingError):
    """A folder of vectors in parts cannot be used: a part is missing, cut off, damaged, or of another version."""


class ParameterError(BraneError, ValueError):
    """A parameter has a value that makes no sense."""


class NotFittedError(ParameterError, AttributeError):
    """A method is asked for vectors before it has learned. `not_fitted` makes one that is scikit-learn's error too."""

    def __reduce__(self) -> tuple[object, ...]:
        return not_fitted, (str(self),)


def not_fitted(message: str) -> NotFittedError:
    """Make the error of a method that has not learned; `except sklearn.exceptions.NotFittedError` catches it too.

    Its class is made when it is first needed, because importing scikit-learn takes longer than all of this package.

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
    """A checkpoint cannot be resumed: it is damaged, in use, or of another run."""


class ModelError(ParameterError):
    """A file of a fitted method cannot be opened or written: it is damaged, of another kind, or of another version."""


class DependencyError(BraneError, ImportError):
    """An optional package that a method needs is not installed."""


class UntrainedWarning(UserWarning):
    """A model has trained without learning: its loss is still that of chance."""


class ReadingWarning(UserWarning):
    """A file could be read in two ways; the warning says which was taken."""


class ZeroVectorWarning(UserWarning):
    """Some nodes have the vector zero, which is as near to one node as to any other."""


class IgnoredAmountsWarning(UserWarning):
    """Nodes differ in how much of an attribute they have, and a method reads only whether they have it."""
