"""The documentation site: `make docs` builds it into build/docs, without network, GPU or MNIST.

Pages are Markdown. The gallery's scripts run during the build. The reference is made of docstrings.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning
from sphinx.application import Sphinx
from sphinx_gallery import notebook
from sphinx_gallery.sorting import ExplicitOrder

from mlpcore.version import __version__

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tools"))  # for `figure_style`

project, author = "mlpcore", "the mlpcore authors"
version = release = __version__
project_copyright = f"{author}, MIT licence"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery"]
templates_path = ["_templates"]
default_role = "py:obj"  # of `names` in docstrings

myst_enable_extensions = ["colon_fence"]
myst_disable_syntax = ["myst_line_comment"]  # a line may begin with "%"
myst_heading_anchors = 4

autosummary_generate = True
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the templates list members themselves
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "mlpcore"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"tutorial": [], "changelog": [], "contributing": []}
html_theme_options = {
    "logo": {"text": "mlpcore"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

#: The examples, in this order.
GALLERY = "first_network", "few_digits", "deformation", "grid_search", "stream"

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "backreferences_dir": "generated/uses",
    "doc_module": ("mlpcore",),
    "within_subsection_order": ExplicitOrder([f"plot_{name}.py" for name in GALLERY]),
    "reset_modules": ("matplotlib", "figure_style.apply"),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "nested_sections": False,
}

# Examples train for seconds only, and the warning would show a path of the building machine.
warnings.filterwarnings("ignore", category=ConvergenceWarning)

# Errors of training may differ in the last digit between machines; nothing else may vary.
os.environ.setdefault("MLPCORE_BACKEND", "cpu")


def rest(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Turns what docstrings have of Markdown, its tables, into reStructuredText.

    A bar or an underscore that reStructuredText would take for markup is escaped.
    """
    found: list[str] = []
    for line in lines:
        if not line.startswith("|"):
            escaped = line if ">>>" in line else re.sub(r"\|(?=\w)", r"\\|", line)
            found.append(re.sub(r"\((\w+)_,\)", r"(\1\\_,)", escaped))
        elif not re.fullmatch(r"[|: -]+", line):
            if not (found and found[-1].startswith("     -")):
                found += [".. list-table::", "   :header-rows: 1", ""]
            first, *others = [cell.strip() for cell in line.strip("|").split("|")]
            found += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    lines[:] = found


def skip(app: Sphinx, what: str, name: str, obj: object, skipped: bool, options: object) -> bool:
    """Leaves out scikit-learn's methods of metadata routing, which refer to its own pages."""
    return skipped or bool(re.fullmatch(r"set_\w+_request", name))


def as_site(app: Sphinx, page: str, source: list[str]) -> None:
    """Turns pictures for light and dark and links to the gallery, as on GitHub, into the site's."""
    picture = r'<picture>\s*<source .*srcset="(.*)">\s*<img src="(.*?)" alt="(.*?)".*>\s*</picture>'
    image = "```{{image}} \\{}\n:class: only-{}\n:alt: \\3\n```\n"
    both = image.format(2, "light") + image.format(1, "dark")
    text = re.sub(picture, both, source[0])
    text = re.sub(r"\(gallery/(plot_\w+)\.py\)", r"(generated/gallery/\1.rst)", text)
    text = text.replace("(gallery/GALLERY_HEADER.rst)", "(generated/gallery/index.rst)")
    notebook = "{download}`tutorial.ipynb <generated/tutorial.ipynb>`"
    source[0] = text.replace("`tutorial.ipynb`", notebook)


def tutorial(app: Sphinx) -> None:
    """Writes the tutorial as a notebook to run in a clone, where the package is installed."""
    written = notebook.jupyter_notebook_skeleton()
    page = (DOCS / "tutorial.md").read_text()
    page = re.sub(r'(?<=\]\(|=")(?=images/|gallery/|[\w-]+\.md)', "docs/", page)
    text, *blocks = re.split(r"^```(sh|python)\n(.*?)^```\n", page, flags=re.MULTILINE | re.DOTALL)
    notebook.add_markdown_cell(written, text)
    for kind, code, text in zip(blocks[::3], blocks[1::3], blocks[2::3]):
        if "venv" in code:
            notebook.add_markdown_cell(written, f"```sh\n{code}```")
        else:
            code = re.sub("^", "!", code.strip(), flags=re.MULTILINE) if kind == "sh" else code
            notebook.add_code_cell(written, code)
        notebook.add_markdown_cell(written, text)
    notebook.save_notebook(written, DOCS / "generated" / "tutorial.ipynb")


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", tutorial)
    app.connect("source-read", as_site)
    app.connect("autodoc-process-docstring", rest, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", skip)
