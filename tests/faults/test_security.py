"""No file and no name from elsewhere can run code or put markup into a page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import neural_brane
from neural_brane.embedding import Embedding
from neural_brane.errors import BraneError
from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.compare import Comparison, Standing, write_comparison
from neural_brane.experiments.page import Head, Section, settings, table, text, write_page
from neural_brane.files.graphs.formats import read_graph

SOURCE = Path(neural_brane.__file__).parent
# These calls run code from a file. `re.compile`, `model.eval()` and similar calls do not.
UNSAFE = re.compile(
    r"pickle\.load|import pickle|cPickle|dill|joblib\.load|allow_pickle=True|torch\.load|marshal\.load"
    r"|(?<![\w.])(?:eval|exec)\(|yaml\.load|os\.system|shell=True|extractall"
)
SCRIPT = "<script>alert('1')</script>"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_runs_code_from_a_file(path):
    assert UNSAFE.findall(path.read_text(encoding="utf-8")) == []


def test_no_message_advises_unsafe_loading():
    advice = [path for path in SOURCE.rglob("*.py") if re.search("allow_pickle(?!=False)", path.read_text("utf-8"))]
    assert advice == []


@pytest.mark.parametrize("name", ["v.npz", "v.npy", "g.npz"])
def test_python_objects_in_arrays_are_refused_without_mentioning_pickle(name, tmp_path):
    objects = np.array([[print, None]], dtype=object)
    path = tmp_path / name
    if path.suffix == ".npy":
        np.save(path, objects, allow_pickle=True)
    else:
        np.savez(path, vectors=objects, ids=objects[0], adj_data=objects, allow_pickle=True)
    with pytest.raises(BraneError, match="Python objects") as caught:
        (read_graph if name == "g.npz" else Embedding.load)(path)
    assert "pickle" not in str(caught.value)


def test_a_page_escapes_text(tmp_path):
    body = table([Head("name", "text")], [[text(SCRIPT), text(settings({SCRIPT: SCRIPT}))]])
    section = Section("a", SCRIPT, body)
    write_page(tmp_path / "page.html", title=SCRIPT, warning=SCRIPT, lead="", sections=[section])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("&lt;script&gt;alert(") > 5
    assert "<script>alert(" not in page


def test_a_comparison_escapes_the_names_of_graphs_methods_and_failures(tmp_path):
    graph = {"name": SCRIPT, "digest": "0" * 16, "nodes": 2, "edges": 1, "attributes": 0, "classes": 2}
    scores = Repeats((0.5, 0.6))
    good = Standing(method=SCRIPT, measures={"nmi": scores}, ranked_by="nmi", seconds=scores, peak_mb=1.0)
    comparison = Comparison(
        graph=graph,
        runs=2,
        standings={"cluster": (good, Standing(method=SCRIPT, failure=SCRIPT))},
        parameters={SCRIPT: {"dim": SCRIPT}},
        machines=(),
        notes=(SCRIPT,),
    )
    write_comparison(comparison, tmp_path / "compare.html")
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert page.count("&lt;script&gt;alert(") > 5
    assert "<script>alert(" not in page
