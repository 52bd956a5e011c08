"""
Suggest friends
===============

Who should get to know whom? `suggest` ranks new links by how likely they are, and gives reasons for each.
"""

# %%
# A small town
# ------------
# There are sixty people in three groups with different hobbies. People in the same group know each other more often.

import numpy as np

from neural_brane import AttributedGraph, NeuralBrane

rng = np.random.default_rng(3)
hobbies = [["chess", "go", "maths"], ["choir", "opera", "piano"], ["rowing", "hiking", "ski"]]
ENDS = ("a", "da", "la", "na", "ra", "va", "lie", "nia", "sa", "ta")
names = [first + last for first in ("An", "Be", "Cle", "Do", "El", "Fi") for last in ENDS]
group = np.arange(60) % 3
likes = {name: rng.choice(hobbies[here], 2, replace=False).tolist() for name, here in zip(names, group, strict=True)}
chance = np.where(group[:, None] == group, 0.3, 0.02)
knows = np.argwhere(np.triu(rng.random((60, 60)) < chance, 1))
graph = AttributedGraph.from_edges([(names[a], names[b]) for a, b in knows], attributes=likes, ids=names)
print(graph)

# %%
# Suggestions with reasons
# ------------------------
# Each line shows a person, the score of the link, common friends, and hobbies of both people or of their friends.

person = "Bela"
model = NeuralBrane(dim=32, seed=0).fit(graph)
suggestions = model.suggest(person, k=5)
print(f"{person} likes {' and '.join(likes[person])}.")
for suggestion in suggestions:
    print(suggestion)

# %%
# Draw the suggestions
# --------------------
# Bela's friends are on the left, suggested people on the right. Grey lines are existing friendships: a suggested person
# often knows several of Bela's friends.

import matplotlib.pyplot as plt

from neural_brane.evaluate.map import COLOURS

friends = graph.ids[graph.adjacency[[names.index(person)]].indices].tolist()
suggested = [one.id for one in suggestions]
place = {person: (0.0, 0.0)}
for side, circle in ((-1, friends), (1, suggested)):
    for name, angle in zip(circle, np.linspace(-1.25, 1.25, len(circle)), strict=True):
        place[name] = (side * np.cos(angle), np.sin(angle))

figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
for a, b in ((names[a], names[b]) for a, b in knows):
    if a in place and b in place:
        axes.plot(*zip(place[a], place[b], strict=True), color="#BBBBBB", linewidth=1, zorder=0)
for name in suggested:
    axes.plot(*zip(place[person], place[name], strict=True), "--", color=COLOURS[3], linewidth=1.8, zorder=1)
for name, (x, y) in place.items():
    axes.scatter(x, y, s=90, color=COLOURS[group[names.index(name)]], linewidths=0, zorder=2)
    side, away = ("center", (0, 11)) if name == person else ("right", (-9, 0)) if x < 0 else ("left", (9, 0))
    axes.annotate(name, (x, y), away, textcoords="offset points", ha=side, va="center")
axes.set(xlim=(-1.3, 1.3), xticks=[], yticks=[], title=f"Friends of {person}, and whom to meet (dashes)")
axes.spines[:].set_visible(False)
plt.show()
