"""node2vec: DeepWalk with walks that prefer to return or to explore."""

from neural_brane.graph import AttributedGraph
from neural_brane.methods.deepwalk import DeepWalk
from neural_brane.methods.parameters import number, whole
from neural_brane.sampling.walks import WalkSampler


class Node2Vec(DeepWalk):
    """Learn similar vectors for nodes that occur together on walks that prefer to return or to explore.

    node2vec: scalable feature learning for networks (Grover, Leskovec; 2016). A walk that came from t to v goes to a
    neighbour x of v in proportion to the edge's weight times 1/p if x is t, 1 if x is a neighbour of t, and 1/q
    otherwise. Rejection sampling draws these transitions exactly, without a table of them. With p = q = 1 the method
    is DeepWalk, except for the number and length of walks. It is good for graphs without attributes.
    """

    title = "node2vec"
    paper = "Grover, Leskovec: node2vec, 2016"
    shortlisted = False
    grid = {"learning_rate": [], "p": [0.25, 1.0, 4.0], "q": [0.25, 0.5, 1.0, 4.0]}  # within the paper's 0.25 to 4

    # The paper's walks are fewer and longer than those of DeepWalk.
    walks_per_node: int = whole("Walks that start at each node.", default=10)
    walk_length: int = whole("Nodes in a walk.", default=80)
    p: float = number("Return parameter; the higher it is, the less often a walk steps back.", default=1.0, above=0)
    q: float = number("In-out parameter; below 1 walks explore, above 1 they stay near.", default=0.5, above=0)

    def _walks(self, graph: AttributedGraph, seed: int) -> WalkSampler:
        return WalkSampler(graph.adjacency, length=self.walk_length, p=self.p, q=self.q, seed=seed)
