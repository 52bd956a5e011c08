"""The errors this package raises on purpose.

Every message says what was given, what was expected and how to mend it::

    BraneError
    ├── GraphError           a graph, its attributes or its labels cannot be used
    ├── DatasetError         a named dataset is unknown, absent or damaged
    ├── EmbeddingError       vectors, or their match with labels, cannot be used
    ├── ParameterError       a parameter has a value that makes no sense (also a ValueError)
    │   └── NotFittedError   a method is asked for vectors before it has learned (also an AttributeError)
    └── DependencyError      an optional package that a method needs is not installed (also an ImportError)

Four warnings have names of their own: UntrainedWarning, ReadingWarning, ZeroVectorWarning and IgnoredAmountsWarning.
"""


class BraneError(Exception):
    """The base of all errors raised on purpose: catch this to catch any of them."""


class GraphError(BraneError):
    """A graph, its attributes or its labels cannot be used as given."""


class DatasetError(BraneError):
    """A named dataset is unknown, absent or damaged."""


class EmbeddingError(BraneError):
    """Vectors, or their match with labels, cannot be used as given."""


class ParameterError(BraneError, ValueError):
    """A parameter has a value that makes no sense."""


class NotFittedError(ParameterError, AttributeError):
    """A method is asked for vectors before it has learned."""


class DependencyError(BraneError, ImportError):
    """An optional package that a method needs is not installed."""


class UntrainedWarning(UserWarning):
    """A model has trained and not learned: its loss is still that of chance."""


class ReadingWarning(UserWarning):
    """A file could be read in two ways; the warning says which was taken."""


class ZeroVectorWarning(UserWarning):
    """Some nodes have the vector zero, which is as near to one node as to any other."""


class IgnoredAmountsWarning(UserWarning):
    """Nodes differ in how much of an attribute they have, and a method reads only whether they have it."""
