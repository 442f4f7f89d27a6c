"""Settings of the documentation site; ``python tools/site_pages.py`` builds it."""

import re

import unmeasured

project = "unmeasured"
author = copyright = "The unmeasured developers"
version = release = unmeasured.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

myst_heading_anchors = 4
myst_enable_extensions = []

add_module_names = False
autodoc_typehints = "none"  # the docstrings have them, in words
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"unmeasured {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"
suppress_warnings = ["ref.python"]  # a word of a type, such as "pairs" in "tuple of pairs", is no reference


def link_pages(app, what, name, obj, options, lines):
    """Lead from docstrings that name a page, such as ``docs/data.md``, to that page."""
    lines[:] = [re.sub(r"``docs/([\w-]+)\.md``", r":doc:`/\1`", line) for line in lines]
    if what == "property":  # else napoleon takes what stands before a colon in the first line for a type
        lines[:0] = [".. a property", ""]


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", link_pages, priority=400)  # before napoleon, at 500
