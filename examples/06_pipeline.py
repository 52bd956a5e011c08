"""
Use a scikit-learn pipeline
===========================

`NodeEmbedder` takes node ids as X and returns their vectors as features. So it works in pipelines, cross-validation and
parameter searches of scikit-learn.
"""

# %%
# A pipeline
# ----------
# X contains node ids, y their topics. In every fold the embedder sees the links and attributes of all nodes, but no
# labels. The classifier sees only the labels of the training nodes.

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline

from neural_brane import NodeEmbedder, PropagatedAttributes, load

graph = load("stdlib")
labelled = graph.labels != ""
ids, topics = graph.ids[labelled], graph.labels[labelled]
pipeline = Pipeline(
    [
        ("embedder", NodeEmbedder(graph, PropagatedAttributes(seed=0))),
        ("classifier", LogisticRegression(max_iter=2000)),
    ]
)
print(cross_val_score(pipeline, ids, topics, cv=4).round(3))

# %%
# A parameter search
# ------------------
# The parameter `embedder__method__dim` sets the width of the vectors. Vectors are learned once for each width, not
# once for each fold.

widths = [4, 8, 16, 32, 64, 128]
search = GridSearchCV(pipeline, {"embedder__method__dim": widths}, cv=4).fit(ids, topics)
print(search.best_params_)

# %%
# Accuracy by width
# -----------------

import matplotlib.pyplot as plt

from neural_brane.evaluate.map import COLOURS

mean, deviation = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.errorbar(widths, mean, deviation, color=COLOURS[0], marker="o", capsize=3)
axes.set_xscale("log", base=2)
axes.set_xticks(widths, widths)
axes.set(xlabel="dim, the width of a vector", ylabel="accuracy, 4 folds", title="Topics of modules")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
