"""Why a vector is what it is, why two are alike, and which links are likely: answers with reasons.

Methods hand over what they learned as arrays; nothing here knows a method.
"""

from neural_brane.reasons.contributions import Contributions, Reasons, Terms
from neural_brane.reasons.explanation import Explanation
from neural_brane.reasons.suggestion import Suggestion

__all__ = ["Contributions", "Explanation", "Reasons", "Suggestion", "Terms"]
