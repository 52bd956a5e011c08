"""
Find similar papers
===================

Which papers are similar to a given paper, in their text and in their citations? The data here are not papers but the
modules of Python's standard library: a docstring is the text, and an import is a citation.
"""

# %%
# Learn a vector per module
# -------------------------

from neural_brane import NeuralBrane, load

graph = load("stdlib")
embedding = NeuralBrane(seed=0).fit_transform(graph)
print(graph)

# %%
# Find the nearest modules
# ------------------------
# The cosine of two vectors measures how similar two nodes are; 1 is the highest value.

for query in ("json", "threading", "email.message"):
    found = ", ".join(f"{name} {cosine:.2f}" for name, cosine in embedding.nearest(query, k=4))
    print(f"{query}: {found}")

# %%
# Compare a group of modules
# --------------------------
# The picture shows the cosine of every pair of nine modules. Dark squares are similar modules.

import matplotlib.pyplot as plt
import numpy as np

chosen = ["json", "csv", "pickle", "threading", "queue", "asyncio.tasks", "email.message", "smtplib", "http.client"]
rows = embedding.vectors[[embedding.row(name) for name in chosen]]
units = rows / np.linalg.norm(rows, axis=1, keepdims=True)

figure, axes = plt.subplots(figsize=(7, 5.5), layout="constrained")
image = axes.imshow(units @ units.T, cmap="Blues", vmin=0, vmax=1)
axes.set_xticks(range(len(chosen)), chosen, rotation=40, ha="right")
axes.set_yticks(range(len(chosen)), chosen)
axes.set_title("Cosines between modules")
figure.colorbar(image, label="cosine")
plt.show()
