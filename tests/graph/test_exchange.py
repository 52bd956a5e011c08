import warnings

import networkx as nx
import pytest

from neural_brane import AttributedGraph
from neural_brane.errors import GraphError


def people() -> nx.Graph:
    graph = nx.Graph([("ann", "bob"), ("bob", "cid")])
    nx.set_node_attributes(graph, {"ann": 31, "bob": 22, "cid": float("nan")}, "age")
    nx.set_node_attributes(graph, {"ann": "IN", "bob": "FR", "cid": "IN"}, "country")
    nx.set_node_attributes(graph, {"ann": ["tea", "chess"], "bob": ["tea"]}, "likes")
    return graph


def test_typed_data_of_networkx_becomes_attributes():
    graph = AttributedGraph.from_networkx(people(), attributes=["age", "country", "likes"])
    names = ["age=22", "age=31", "country=FR", "country=IN", "likes=chess", "likes=tea"]
    assert graph.attribute_names.tolist() == names
    assert graph.attributes.toarray().tolist() == [[0, 1, 0, 1, 1, 1], [1, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 0]]
    assert graph.encoder is not None
    with pytest.raises(GraphError, match=r"node.*'graph'.*'town'.*'age'"):
        AttributedGraph.from_networkx(people(), attributes=["town"])


def test_unused_data_gives_a_warning():
    with pytest.warns(UserWarning, match=r"nodes.*'age', 'country', 'likes'"):
        graph = AttributedGraph.from_networkx(people())
    assert graph.attributes.shape == (3, 0)


@pytest.mark.parametrize("node", [float("nan"), True])
def test_nodes_that_cannot_be_ids_are_refused(node):
    with pytest.raises(GraphError, match=r"ids\[1\] is"):
        AttributedGraph.from_networkx(nx.Graph([(5, node)]))


def test_weights_of_networkx_are_checked():
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=1e-300)
    with pytest.raises(GraphError, match=r"weight.*0.*0"):
        AttributedGraph.from_networkx(graph)


def test_there_and_back(small_graph):
    other = small_graph.to_networkx()
    assert other.name == "small"
    assert other.edges["dan", "eve"]["weight"] == 3
    assert other.nodes["joy"]["attributes"] == {"beer": 2.0, "tea": 1.0}
    assert AttributedGraph.from_networkx(other).digest() == small_graph.digest()


def test_igraph():
    igraph = pytest.importorskip("igraph", reason="these are graphs of igraph")
    graph = igraph.Graph([(0, 1), (1, 2), (2, 1)], directed=True)
    assert AttributedGraph.from_igraph(graph).ids.tolist() == [0, 1, 2]
    graph.es["weight"] = [2.0, 1.0, 5.0]
    graph.vs["name"] = ["ann", "bob", "cid"]
    graph.vs["label"] = ["x", None, "y"]
    graph.vs["age"] = [31, 22, None]
    found = AttributedGraph.from_igraph(graph, attributes=["age"], duplicates="sum")
    assert found.ids.tolist() == ["ann", "bob", "cid"]
    assert found.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 6], [0, 6, 0]]
    assert found.labels.tolist() == ["x", "", "y"]
    assert found.attribute_names.tolist() == ["age=22", "age=31"]


@pytest.fixture
def data():
    geometric = pytest.importorskip("torch_geometric.data", reason="these are graphs of PyTorch Geometric")
    import torch

    return geometric.Data(
        edge_index=torch.tensor([[0, 1, 1], [1, 0, 2]]),
        edge_weight=torch.tensor([2.0, 2.0, 0.5]),
        x=torch.tensor([[1.0, 0], [0, -1], [0, 0], [0, 2]], requires_grad=True),
        y=torch.tensor([0, 1, 1, 0]),
    )


def test_pytorch_geometric(data):
    graph = AttributedGraph.from_geometric(data)
    assert graph.adjacency.toarray().tolist() == [[0, 2, 0, 0], [2, 0, 0.5, 0], [0, 0.5, 0, 0], [0, 0, 0, 0]]
    assert graph.attributes.toarray().tolist() == [[1, 0], [0, -1], [0, 0], [0, 2]]
    assert graph.labels.tolist() == ["0", "1", "1", "0"]


def test_labels_of_a_whole_graph_are_ignored_with_a_warning(data):
    data.y = data.y[:1]
    with pytest.warns(UserWarning, match=r"shape.*4 nodes"):
        assert AttributedGraph.from_geometric(data).labels is None


def test_heterogeneous_graphs_are_refused(data):
    from torch_geometric.data import HeteroData

    with pytest.raises(GraphError, match=r"HeteroData.*edge_index"):
        AttributedGraph.from_geometric(HeteroData())


def test_a_subgraph_has_the_chosen_nodes_in_their_order(small_graph):
    mask = small_graph.ids < "d"
    part = small_graph.subgraph(mask)
    assert part.ids.tolist() == ["ann", "bob", "cat"]
    assert part.adjacency.toarray().tolist() == [[1, 1, 2], [1, 0, 0.5], [2, 0.5, 0]]
    assert part.labels.tolist() == ["town"] * 3
    assert part.attribute_names.tolist() == small_graph.attribute_names.tolist()
    turned = small_graph.subgraph(["cat", "ann", "bob"])
    assert turned.ids.tolist() == ["cat", "ann", "bob"]
    assert turned.adjacency.toarray().tolist() == [[0, 2, 0.5], [2, 1, 1], [0.5, 1, 0]]
    assert turned.subgraph(["ann", "bob", "cat"]).digest() == part.digest()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert small_graph.subgraph(small_graph.ids).digest() == small_graph.digest()


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (["ann", "zoe"], "node 'zoe'.*'ann'"),
        ([True, False], r"mask.*\(2,\).*12 nodes"),
        (["ann", "ann"], "ids.*'ann' twice"),
        (["ann", None], r"nodes\[1\] is missing"),
    ],
)
def test_a_subgraph_of_other_nodes_is_refused(nodes, message, small_graph):
    with pytest.raises(GraphError, match=message):
        small_graph.subgraph(nodes)
