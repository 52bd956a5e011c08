"""
Compare methods on your graph
=============================

Which method is best depends on the graph. The command `brane compare` trains several methods on your graph, several
times each, and recommends one. This example does the same in Python, with one training per method.
"""

# %%
# Train and score five methods
# ----------------------------
# All methods are called in the same way. `classify` trains logistic regression on half of the labelled nodes and
# predicts the labels of the others. It repeats this on ten random splits, the same for all methods.

from neural_brane import METHODS, classify, load

graph = load("stdlib")
names = ["neural-brane", "propagated-attributes", "tadw", "deepwalk", "attributes"]
scores = {}
for name in names:
    embedding = METHODS[name](dim=64, seed=0).fit_transform(graph)
    score = classify(embedding.vectors, graph.labels, train=[0.5]).scores[0]
    scores[name] = score.macro.mean, score.macro.sd
    print(f"{name:22} Macro-F1 {score.macro.mean:.3f} ± {score.macro.sd:.3f}")

# %%
# Show the scores
# ---------------
# `attributes` ignores the links, `deepwalk` ignores the attributes, and the other methods use both.

import matplotlib.pyplot as plt

from neural_brane.evaluate.map import COLOURS

ranked = sorted(scores, key=lambda name: scores[name][0])
input_of = {("links", "attributes"): "links and attributes", ("attributes",): "attributes", ("links",): "links"}
colour_of = dict(zip(input_of.values(), COLOURS, strict=False))

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for place, name in enumerate(ranked):
    mean, deviation = scores[name]
    axes.barh(place, mean, xerr=deviation, color=colour_of[input_of[METHODS[name].uses]], capsize=3)
    axes.text(0.01, place, f"{mean:.3f}", va="center", color="white", weight="bold")
axes.set_yticks(range(len(ranked)), ranked)
axes.set(
    xlabel="Macro-F1, half of the nodes for training", xlim=(0, 1), title="Topics of the standard library's modules"
)
axes.spines[["top", "right"]].set_visible(False)
handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colour_of.values()]
axes.legend(handles, list(colour_of), title="uses", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
