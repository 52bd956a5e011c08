"""
A growing graph
===============

A graph gets new nodes and links. `update` continues the training on the larger graph instead of starting again. This
example measures how far the vectors of the old nodes move.
"""

# %%
# Train on most of a graph
# ------------------------
# The modules of Python's standard library arrive in random order: first 90 % of them, then 2 % at a time.

import numpy as np

from neural_brane import NeuralBrane, load

whole = load("stdlib")
order = np.random.default_rng(0).permutation(len(whole))
shares = [0.9, 0.92, 0.94, 0.96, 0.98, 1.0]
stages = [whole.subgraph(whole.ids[np.sort(order[: round(share * len(whole))])]) for share in shares]
model = NeuralBrane(seed=0).fit(stages[0])
print(stages[0])

# %%
# Update as it grows
# ------------------
# After every update, compare the vectors of the old nodes with their vectors before the update, by cosine.

cosines = []
for graph in stages[1:]:
    before = model.embedding_
    after = model.update(graph).embedding_
    old = np.array([after.row(name) for name in before.ids.tolist()])
    lengths = np.linalg.norm(before.vectors, axis=1) * np.linalg.norm(after.vectors[old], axis=1)
    cosines.append(np.einsum("ij,ij->i", before.vectors, after.vectors[old]) / np.maximum(lengths, 1e-12))
    print(f"{len(before)} → {len(after)} nodes: mean cosine with before {cosines[-1].mean():.3f}")

# %%
# How far old vectors move
# ------------------------
# Each box shows the middle half of the cosines, with the median as a line. A cosine of 1 means that a vector keeps its
# direction.

import matplotlib.pyplot as plt

from neural_brane.evaluate.map import COLOURS

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
boxes = axes.boxplot(cosines, patch_artist=True, showfliers=False, widths=0.5, medianprops={"color": "black"})
for box in boxes["boxes"]:
    box.set(facecolor=COLOURS[5], linewidth=0)
axes.set_xticks(range(1, len(stages)), [f"{len(graph)}" for graph in stages[1:]])
axes.set(xlabel="nodes after the update", ylabel="cosine with the vector before", ylim=(None, 1))
axes.set_title("Vectors of the old nodes")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
