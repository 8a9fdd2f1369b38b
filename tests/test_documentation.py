"""The documents are true: examples run, commands parse, linked files exist."""

import argparse
import doctest
import importlib.util
import pkgutil
import re
import shlex
from itertools import pairwise
from pathlib import Path

import joblib
import pytest
from markdown_it import MarkdownIt

import mlpcore
from mlpcore.__main__ import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted([*(ROOT / "benchmarks").glob("*.md"), *(ROOT / "docs").glob("*.md")])

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def tokens(page):
    """All tokens of a page, those inside of paragraphs and tables included."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        yield token
        yield from token.children or ()


def code(page):
    """Lines of shell blocks, and code within sentences."""
    for token in tokens(page):
        if token.type == "fence" and token.info in ("bash", "sh"):
            yield from token.content.replace("\\\n", " ").splitlines()
        elif token.type == "code_inline":
            yield token.content


def test_examples_in_docstrings(tmp_path, monkeypatch):
    """Of compiled modules, too, and of classes that say that they are in mlpcore.

    Modules that need a library which is not installed are left out.
    """
    monkeypatch.chdir(tmp_path)
    names = [each.name for each in pkgutil.walk_packages(mlpcore.__path__, "mlpcore.")]
    for library in ("albumentations", "torchvision"):
        if importlib.util.find_spec(library) is None:
            names.remove(f"mlpcore.transforms.{library}")
    modules = [mlpcore, *map(importlib.import_module, names)]
    for name in mlpcore.__all__:  # imports them
        getattr(mlpcore, name)
    assert [each.__name__ for each in modules if doctest.testmod(each).failed] == []


@each_page
@pytest.mark.filterwarnings("ignore:The loss")
def test_python_blocks(page, tmp_path, monkeypatch):
    """Python blocks run, in order and in one namespace, as a reader would try them."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")  # its pictures, as in a checkout
    monkeypatch.chdir(tmp_path)
    namespace = {}
    with joblib.parallel_config("threading"):  # processes take seconds to start
        for token in tokens(page):
            if token.type == "fence" and token.info == "python":
                lines_before = "\n" * (token.map[0] + 1)  # for the page's line in a traceback
                exec(compile(lines_before + token.content, page, "exec"), namespace)


class Parsed(BaseException):
    """The arguments are understood; nothing more is to be done."""


@each_page
def test_commands(page, monkeypatch):
    """Commands in shell blocks and in sentences parse."""
    for name in ("parse_args", "parse_intermixed_args"):
        real = getattr(argparse.ArgumentParser, name)

        def parse(*arguments, real=real):
            real(*arguments)
            raise Parsed

        monkeypatch.setattr(argparse.ArgumentParser, name, parse)
    for line in code(page):
        found = re.match(rf"(?:\w+=\S+ +)*mlpcore ((?:{'|'.join(COMMANDS)}) .*)", line)
        if found:  # more than a sentence that names a command
            with pytest.raises(Parsed):
                main(shlex.split(found[1], comments=True))


def anchors(page):
    """The anchors of its headings: lower case, dashes for blanks, no punctuation."""
    found = list(tokens(page))
    headings = [next_.content for each, next_ in pairwise(found) if each.type == "heading_open"]
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_links_and_files(page):
    """Links lead to files and headings. Paths in code lead to files, wildcards included."""
    links = [token.attrs["href"] for token in tokens(page) if token.type == "link_open"]
    for link in links:
        if re.match(r"\w+:", link):
            continue
        file, _, heading = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link
    folders = "benchmarks|cpu_simd|cuda|docs|mlpcore|tests|tools"
    named = [line for line in code(page) if re.fullmatch(rf"(?:{folders})/[\w.*/]*", line)]
    assert [name for name in named if not any(ROOT.glob(name))] == []
