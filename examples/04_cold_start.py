"""
Embed new nodes (cold start)
============================

A node arrives after training, with attributes, links, or both. `transform` computes its vector without training again.
"""

# %%
# Train without some nodes
# ------------------------
# Sixty modules of Python's standard library are hidden from the training. Each has links and a docstring.

import numpy as np

from neural_brane import AttributedGraph, NeuralBrane, load

whole = load("stdlib")
complete = (np.diff(whole.adjacency.indptr) > 5) & (np.diff(whole.attributes.indptr) > 5) & (whole.labels != "")
hidden = np.sort(np.random.default_rng(0).choice(np.flatnonzero(complete), 60, replace=False))
seen = np.setdiff1d(np.arange(len(whole)), hidden)
known = whole.subgraph(whole.ids[seen])
model = NeuralBrane(seed=0).fit(known)

# %%
# Embed the hidden nodes
# ----------------------
# The hidden nodes are embedded three times: from attributes and links, from attributes alone, and from links alone.
# `made_from` tells which of them each vector was computed from.

both = model.transform(whole)
described = model.transform(
    AttributedGraph.from_sparse(
        whole.adjacency * 0, whole.attributes, ids=whole.ids, attribute_names=whole.attribute_names
    )
)
linked = model.transform(AttributedGraph.from_sparse(whole.adjacency, ids=whole.ids))
for name, embedding in {"both": both, "attributes": described, "links": linked}.items():
    kinds, counts = np.unique(embedding.made_from[hidden], return_counts=True)
    print(f"{name:10}", dict(zip(kinds.tolist(), counts.tolist(), strict=True)))

# %%
# How good are these vectors?
# ---------------------------
# A classifier learns the topics of the other modules and predicts the topics of the hidden modules.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from neural_brane.evaluate.map import COLOURS

train = seen[whole.labels[seen] != ""]
classifier = LogisticRegression(max_iter=2000).fit(both.vectors[train], whole.labels[train])
given = {"attributes and links": both, "attributes": described, "links": linked}
shares = {name: classifier.score(e.vectors[hidden], whole.labels[hidden]) for name, e in given.items()}
commonest = np.unique(whole.labels[train], return_counts=True)[1].max() / len(train)

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
bars = axes.barh(list(shares), list(shares.values()), color=COLOURS[0])
axes.bar_label(bars, fmt="%.2f", padding=4)
axes.axvline(commonest, color=COLOURS[3], linestyle="--", label="always predict the commonest topic")
axes.invert_yaxis()
axes.set(xlim=(0, 1), xlabel="share of correctly predicted topics", title="Vectors of hidden modules, computed from …")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.25))
plt.show()
