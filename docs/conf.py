"""The site: `make docs` reads the Markdown that GitHub shows, and docstrings of the library."""

from pathlib import Path

from sphinx.addnodes import pending_xref

from twotowers import __version__

project = "Two Towers"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "benchmarks/*.md",
    "config/README.md",
    "figures/README.md",
    "papers/*/README.md",
]
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_copyright = False
# Headings have the anchors that GitHub gives them.
myst_heading_anchors = 4
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_use_ivar = True
default_role = "code"  # of `names` in docstrings


def folders(app, doctree):
    """A folder has no page: its name stays, without a link."""
    here = Path(app.env.doc2path(app.env.docname)).parent
    for link in list(doctree.findall(pending_xref)):
        if (here / link["reftarget"]).is_dir():
            link.replace_self(link.children)


def formulas(app, what, name, thing, options, lines):
    """An indented paragraph of a docstring is a formula or code, so it is shown as it is."""
    for at in range(len(lines) - 1, 1, -1):
        begins = lines[at].startswith("    ") and not lines[at - 1]
        if begins and lines[at - 2] and not lines[at - 2].startswith(" "):
            lines[at:at] = ["::", ""]


def setup(app):
    app.connect("doctree-read", folders)
    app.connect("autodoc-process-docstring", formulas, priority=400)  # before napoleon
