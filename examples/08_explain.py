"""
Explain a recommendation
========================

Why are two nodes similar? `explain` lists the attributes and neighbours that they share, ranked by how much each adds
to the cosine of their vectors.
"""

# %%
# Find two similar modules
# ------------------------

from neural_brane import NeuralBrane, load

graph = load("stdlib")
model = NeuralBrane(seed=0).fit(graph)
one = "smtplib"
other, cosine = model.embedding_.nearest(one, k=1)[0]
print(f"the nearest module to {one} is {other}: cosine {cosine:.2f}")

# %%
# List the reasons
# ----------------
# The number after a name is what it adds to the cosine.

why = model.explain(one, other, top=8)
print("attributes:", ", ".join(f"{name} {share:.2f}" for name, share in why.attributes[:5]))
print("neighbours:", ", ".join(f"{name} {share:.2f}" for name, share in why.neighbours[:5]))

# %%
# Draw the reasons
# ----------------

import matplotlib.pyplot as plt

from neural_brane.evaluate.map import COLOURS

figure, panels = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharex=True)
for axes, reasons, title, colour in zip(
    panels, (why.attributes, why.neighbours), ("shared attributes", "shared neighbours"), COLOURS, strict=False
):
    axes.barh([str(name) for name, _ in reasons], [share for _, share in reasons], color=colour)
    axes.invert_yaxis()
    axes.set(title=title, xlabel="added to the cosine")
    axes.spines[["top", "right"]].set_visible(False)
figure.suptitle(f"Why {one} and {other} are similar")
plt.show()
