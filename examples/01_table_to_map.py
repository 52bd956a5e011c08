"""
From your CSV to a map
======================

Read a table of edges and a table of nodes, learn a vector for every node, and draw the nodes on a map.
"""

# %%
# Two CSV files
# -------------
# This example writes two small files; you would use your own. There are three clubs of thirty people. Most friends are
# in the same club, and each club has typical hobbies.

import tempfile
from pathlib import Path

import numpy as np

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
clubs = np.repeat(["chess", "choir", "rowing"], 30)
hobbies = {
    "chess": ["go", "maths", "puzzles"],
    "choir": ["opera", "piano", "poetry"],
    "rowing": ["hiking", "ski", "tea"],
}
every = [hobby for those in hobbies.values() for hobby in those]
people = ["name,hobbies"]
for at, club in enumerate(clubs):
    likes = set(rng.choice(hobbies[club], 2, replace=False)) | {rng.choice(every)}
    people.append(f"p{at},{';'.join(sorted(likes))}")
friends = {"source,target"}
while len(friends) < 270:
    a, b = rng.integers(90, size=2)
    if a < b and (clubs[a] == clubs[b] or rng.random() < 0.08):
        friends.add(f"p{a},p{b}")
(folder / "people.csv").write_text("\n".join(people))
(folder / "friends.csv").write_text("\n".join(sorted(friends, reverse=True)))
print("\n".join(people[:4]))

# %%
# Read them
# ---------
# `read` recognises the columns with ids. It turns the hobbies, which are separated by semicolons, into attributes.

from neural_brane import NeuralBrane, read

graph = read(folder / "friends.csv", nodes=folder / "people.csv")
print(graph)

# %%
# Learn vectors
# -------------
# Every person gets a vector of 32 numbers. People with similar friends and hobbies get similar vectors.

embedding = NeuralBrane(dim=32, seed=0).fit_transform(graph)
print(embedding.vectors.shape)
print([(name, round(cosine, 2)) for name, cosine in embedding.nearest("p0", k=3)])

# %%
# Draw a map
# ----------
# Colours show the clubs. The method did not know them.

import matplotlib.pyplot as plt

from neural_brane.evaluate import map_2d
from neural_brane.evaluate.map import COLOURS

club_of = dict(zip((f"p{at}" for at in range(90)), clubs, strict=True))
points = map_2d(embedding.vectors, seed=0)
figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
for club, colour in zip(hobbies, COLOURS, strict=False):
    here = [club_of[name] == club for name in embedding.ids.tolist()]
    axes.scatter(*points[here].T, s=36, color=colour, label=club, linewidths=0)
axes.set(xticks=[], yticks=[], title="Ninety people by their friends and hobbies")
axes.spines[:].set_visible(False)
axes.legend(title="club", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
