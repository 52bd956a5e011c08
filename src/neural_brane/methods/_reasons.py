"""Questions that every fitted method can be asked: why, and what next."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from neural_brane.errors import ParameterError
from neural_brane.linalg import inverse_frequency
from neural_brane.reasons import Explanation, Reasons, Suggestion
from neural_brane.reasons.explain import check_top, explain_node, explain_pairs
from neural_brane.reasons.ranking import rank_links, shared_in_graph
from neural_brane.reasons.suggestion import Shared

if TYPE_CHECKING:
    from neural_brane.methods.fitted import Fitted

REASONS = 3  # attributes and neighbours told of each suggestion


class Explained:
    """What a method says of its own vectors."""

    title: ClassVar[str]

    def explain(self, node: Any, other: Any = None, top: int = 10) -> Explanation:
        """Which attributes and neighbours shape a node's vector or, given another node, what makes the two alike.

        The vector of `node` is a sum of terms: in the spectral part what each attribute and each link adds, of the
        node itself or by a neighbour; in the learned part what each row adds that pooling has chosen. A term's share is
        what it adds to the squared length of the vector, divided by that length squared: all shares sum to 1. For two
        nodes it is what a term adds to their cosine, the mean of u's terms seen from v and of v's seen from u; listed
        are attributes and neighbours that both have. An attribute that comes through a neighbour counts to both.

        The first question costs one pass over the graph, others what lies around the nodes asked for.

        Parameters
        ----------
        node, other
            Ids.
        top
            How many attributes and neighbours to list.
        """
        fitted: Fitted = self._require_fitted()  # type: ignore[attr-defined]
        reasons = fitted.reasons
        if reasons is None:
            raise ParameterError(
                f"{self.title} cannot say what its vectors are made of; neural-brane, attributes, smoothed-attributes "
                "and propagated-attributes can"
            )
        embedding, graph = fitted.embedding, fitted.graph
        row = embedding.row(node)
        if other is None:
            return explain_node(reasons, embedding, graph, row, top)
        return explain_pairs(reasons, embedding, graph, row, [embedding.row(other)], top)[0]

    def suggest(self, node: Any, k: int = 10, *, exclude: Iterable[Any] = (), by: str = "all") -> list[Suggestion]:
        """The k nodes that a node is likeliest to be linked to, and is not, with reasons, best first.

        Never the node itself, its neighbours or a node of `exclude`. The score adds two numbers, each brought to mean 0
        and deviation 1 over the nodes that could be linked: one by vectors (the method's own score of the pair where
        it has learned one, or the similarity of the vectors: whichever ranks links of this graph better) and what
        common neighbours tell (Σ 1 / degree), which weighs by how well it ranks links of this graph. `by` asks for one
        alone: "score", "similarity" or "neighbours". The first question looks at 256 links to find these weights.

        The reasons are the attributes and neighbours that add most to the cosine, as `explain(node, other)` has them;
        of a method that cannot explain, the rarest attributes and neighbours that both have.

        >>> from neural_brane import PropagatedAttributes, load
        >>> model = PropagatedAttributes(dim=16, seed=0).fit(load("stdlib"))
        >>> [found.id for found in model.suggest("json.decoder", k=2)]
        ['json.encoder', 'json.tool']
        """
        check_top(k, "k")
        fitted: Fitted = self._require_fitted()  # type: ignore[attr-defined]
        embedding, graph = fitted.embedding, fitted.graph
        row = embedding.row(node)
        rows, scores = rank_links(
            embedding,
            graph,
            row,
            k,
            by=by,
            similarity=fitted.method.similarity,
            weights=lambda: fitted.link_weights,
            exclude=map(embedding.row, exclude),
        )
        others = rows.tolist()
        if fitted.reasons is not None:
            told = explain_pairs(fitted.reasons, embedding, graph, row, others, REASONS)
            shared = [Shared(one.attributes, one.neighbours) for one in told]
        else:
            weights = inverse_frequency(graph.attributes)
            shared = [shared_in_graph(graph, weights, row, other, REASONS) for other in others]
        found = zip(graph.ids[rows].tolist(), scores.tolist(), shared, strict=True)
        return [Suggestion(*one) for one in found]

    def _reasons(self, fitted: "Fitted") -> Reasons | None:
        """What its vectors are made of, for `explain`; None where it cannot say."""
        return None
