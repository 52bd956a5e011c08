"""
A growing graph
===============

Nodes and links keep coming. `update` goes on from what was learned, instead of learning everything again. How far the
vectors of old nodes move is measured here.
"""

# %%
# Most of a graph
# ---------------
# The modules of the standard library arrive in an order of chance: first nine tenths of them, then a few at a time.

import numpy as np

from neural_brane import NeuralBrane, load

whole = load("stdlib")
order = np.random.default_rng(0).permutation(len(whole))
shares = [0.9, 0.92, 0.94, 0.96, 0.98, 1.0]
stages = [whole.subgraph(whole.ids[np.sort(order[: round(share * len(whole))])]) for share in shares]
model = NeuralBrane(seed=0).fit(stages[0])
print(stages[0])

# %%
# It grows
# --------
# After every step the vectors of the nodes that were there are compared with those before, by their cosine.

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

import matplotlib.pyplot as plt

from neural_brane.evaluate.map import COLOURS

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
boxes = axes.boxplot(cosines, patch_artist=True, showfliers=False, widths=0.5, medianprops={"color": "black"})
for box in boxes["boxes"]:
    box.set(facecolor=COLOURS[5], linewidth=0)
axes.set_xticks(range(1, len(stages)), [f"{len(graph)}" for graph in stages[1:]])
axes.set(xlabel="nodes after the update", ylabel="cosine with the vector before", ylim=(None, 1))
axes.set_title("Vectors of the nodes that were there")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
