"""Groups of nodes whose vectors lie together, found without labels and named by what their nodes have."""

from neural_brane.groups.clusters import Cluster, Clusters, find_clusters

__all__ = ["Cluster", "Clusters", "find_clusters"]
