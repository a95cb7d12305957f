# SPDX-License-Identifier: MIT
"""How Sphinx makes the manual of the sources that `make` has gathered; every value that differs from its default."""
import importlib.util
import pathlib
import re

here = pathlib.Path(__file__).resolve().parent
project = "Tidepool"
author = "the Tidepool authors"
version = release = (here / "version").read_text()
extensions = ["myst_parser"]
myst_heading_anchors = 3
default_role = "code"
highlight_language = "c"
html_theme = "furo" if importlib.util.find_spec("furo") else "alabaster"
html_copy_source = False
html_show_copyright = False
nitpicky = False
# Names that a declaration names and no page describes: types of C, of CUDA, of the library's inside.
suppress_warnings = ["ref.c", "misc.highlighting_failure"]
man_pages = [("guide", "tidepool", "temporary arrays for hot loops", author, 7)]
for page in sorted((here / "headers").glob("*.rst")):
    title = page.read_text().splitlines()[0]
    name = "tidepool_" + page.stem if "." not in page.stem else page.stem
    man_pages.append((f"headers/{page.stem}", name, title.split(" – ")[1], author, 3))
