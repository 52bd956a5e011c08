"""node2vec: DeepWalk whose walks turn back, or away, on purpose."""

from neural_brane.graph import AttributedGraph
from neural_brane.methods.deepwalk import DeepWalk
from neural_brane.methods.parameters import number, whole
from neural_brane.sampling.walks import WalkSampler


class Node2Vec(DeepWalk):
    """node2vec: scalable feature learning for networks (Grover, Leskovec; 2016).

    A walk that came from t to v goes on to a neighbour x of v in proportion to the edge's weight times 1/p if x is t,
    1 if x is a neighbour of t, and 1/q otherwise. The transitions are exact, drawn by rejection; no table of
    them is ever made. Everything else but the number and length of walks is DeepWalk's, which is the case p = q = 1.
    """

    title = "node2vec"
    paper = "Grover, Leskovec: node2vec, 2016"
    # Its own paper searches p and q, which decide more than the length: 0.25, 0.5, 1, 2, 4. The length stays at that
    # paper's 80, and p and q take the ends and the middle of the range (and q its default here, 0.5): 12 settings.
    shortlisted = False
    grid = {"learning_rate": [], "p": [0.25, 1.0, 4.0], "q": [0.25, 0.5, 1.0, 4.0]}

    # Fewer and longer walks than DeepWalk's: each paper's own.
    walks_per_node: int = whole("Walks that start at each node.", default=10)
    walk_length: int = whole("Nodes in a walk.", default=80)
    p: float = number("Return parameter: the higher, the rarer a walk steps back.", default=1.0, above=0)
    q: float = number("In-out parameter: below 1 walks explore, above 1 they stay near.", default=0.5, above=0)

    def _walks(self, graph: AttributedGraph, seed: int) -> WalkSampler:
        return WalkSampler(graph.adjacency, length=self.walk_length, p=self.p, q=self.q, seed=seed)
