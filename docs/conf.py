"""The site's settings. `make docs` builds it without a network; every warning is an error."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import neural_brane
from neural_brane.cli.app import GROUPS, app

project = "Neural-Brane"
copyright = "the Neural-Brane developers, MIT licence"
release = version = neural_brane.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
myst_links_external_new_tab = True
suppress_warnings = ["myst.xref_missing"]  # links that work on a code host and leave the site, as ../benchmarks/
autosummary_generate = False
autodoc_default_options = {"members": True}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
numpydoc_show_class_members = False
maximum_signature_line_length = 88
default_role = "code"  # `name` in a docstring is code

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\d\d_",  # all of them are run, each time the site is built from nothing
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
    "image_srcset": ["2x"],
}

html_theme = "pydata_sphinx_theme"
html_title = "Neural-Brane"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
templates_path = ["_templates"]
html_sidebars = {"**": ["site-navigation.html"]}
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
}

REFERENCE = re.compile(r"<!-- reference: (\S+) *([^>]*?) *-->")  # a module, and the names of it that are public
COMMANDS = "<!-- commands -->"


def public_names(module: str, chosen: str) -> list[str]:
    """List public names by their shortest path: those chosen, else `__all__`, else the classes of the module."""
    home = import_module(module)
    own = [name for name, thing in vars(home).items() if inspect.isclass(thing) and thing.__module__ == module]
    names = chosen.split() or getattr(home, "__all__", own)
    if module == "neural_brane.methods":  # what all share comes first, then the methods in the order of every list
        listed = [method.__name__ for method in neural_brane.METHODS.values()]
        names = [*(name for name in names if name not in listed), *listed]
    return [f"neural_brane.{name}" if name in neural_brane.__all__ else f"{module}.{name}" for name in names]


def reference(module: str, chosen: str) -> str:
    """Make a table of a module's public names, and then each of them in full."""
    table, full = [], []
    for path in public_names(module, chosen):
        thing = getattr(import_module(path.rpartition(".")[0]), path.rpartition(".")[2])
        kind = "class" if inspect.isclass(thing) else "function" if inspect.isroutine(thing) else "data"
        table.append(f"   ~{path}")
        full.append(f".. auto{kind}:: {path}" + ("\n   :no-value:" if kind == "data" else ""))
    listed = "\n".join([".. autosummary::", "   :nosignatures:", "", *table])
    return f"```{{eval-rst}}\n{listed}\n\n" + "\n\n".join(full) + "\n```"


def command_help() -> str:
    """Return a section for every command with its help, as a terminal with 80 columns shows it."""
    terminal = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    listed = [(one.__name__.replace("_", "-"),) for group in GROUPS.values() for one in group]
    sections = []
    for name in [*listed, ("distributed", "embed")]:
        shown = CliRunner().invoke(app, [*name, "--help"], prog_name="brane", env=terminal)
        lines = "\n".join(line.rstrip() for line in shown.output.strip("\n ").splitlines())
        sections.append(f"## brane {' '.join(name)}\n\n```console\n{lines}\n```\n")
    return "\n".join(sections)


def fill_generated(sphinx: Sphinx, page: str, source: list[str]) -> None:
    """Fill in the parts of a page that are generated: the reference of a module, the help of the commands."""
    source[0] = REFERENCE.sub(lambda found: reference(found[1], found[2]), source[0])
    if COMMANDS in source[0]:
        source[0] = source[0].replace(COMMANDS, command_help())


def setup(sphinx: Sphinx) -> dict[str, Any]:
    """Register the function that fills in generated parts."""
    sphinx.connect("source-read", fill_generated)
    return {"parallel_read_safe": True}
