"""
Find alike papers
=================

Which papers resemble this one, by what they say and by what they cite? Here modules of Python's standard library
stand in for papers: their docstrings are the text, their imports the citations.
"""

# %%
# Vectors of all
# --------------

from neural_brane import NeuralBrane, load

graph = load("stdlib")
embedding = NeuralBrane(seed=0).fit_transform(graph)
print(graph)

# %%
# The nearest
# -----------
# The cosine of two vectors says how alike two nodes are.

for query in ("json", "threading", "email.message"):
    found = ", ".join(f"{name} {cosine:.2f}" for name, cosine in embedding.nearest(query, k=4))
    print(f"{query}: {found}")

# %%
# How alike a group is
# --------------------
# Some modules against each other: dark squares are those that belong together.

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
