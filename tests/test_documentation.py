"""What users read is true: examples run, commands and options exist, so do linked files."""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib
import io
import json
import pkgutil
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from safetensors import safe_open

import mlpcore
from mlpcore import backends, commands
from mlpcore.commands import COMMANDS
from mlpcore.store import run_folder as checkpoint
from mlpcore.store import weights
from mlpcore.training.trainer import Trainer
from small_runs import make_config, make_dataset

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / "docs", ROOT / "benchmarks"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += [page for folder in FOLDERS for page in sorted(folder.glob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text()

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def tokens(page: Path) -> Iterator[Token]:
    """All tokens of a page, those inside of paragraphs and tables included."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        yield token
        yield from token.children or ()


def code(page: Path) -> Iterator[str]:
    """Lines of shell blocks, and code within sentences."""
    for token in tokens(page):
        if token.type == "fence" and token.info in ("bash", "sh"):
            yield from token.content.replace("\\\n", " ").splitlines()
        elif token.type == "code_inline":
            yield token.content


# ---- Python --------------------------------------------------------------------------------


def test_examples_in_docstrings(tmp_path, monkeypatch):
    """Compiled modules included, which pytest's own collector passes over."""
    monkeypatch.chdir(tmp_path)
    names = [each.name for each in pkgutil.walk_packages(mlpcore.__path__, "mlpcore.")]
    modules = [mlpcore, *map(importlib.import_module, names)]
    assert [each.__name__ for each in modules if doctest.testmod(each).failed] == []


@pytest.mark.parametrize(
    "name",
    [
        "mlpcore",
        "mlpcore.network.architecture:parse_hidden_layers",
        "mlpcore.backends:get",
        "mlpcore.data.dataset:load",
        "mlpcore.deformation:deform",
        "mlpcore.evaluation:evaluate",
        "mlpcore.network:Network",
        "mlpcore.philox:permutation",
        "mlpcore.training:Trainer",
        "mlpcore.store.weights",
    ],
)
def test_main_entry_points_have_examples(name):
    found = doctest.DocTestFinder(recurse=False).find(pkgutil.resolve_name(name), name)
    assert any(test.examples for test in found)


@each_page
def test_python_blocks(page, tmp_path, monkeypatch):
    """In their order and in one namespace, as a reader would try them."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for token in tokens(page):
        if token.type == "fence" and token.info == "python":
            lines_before = "\n" * (token.map[0] + 1)  # so that a traceback tells the page's line
            exec(compile(lines_before + token.content, page, "exec"), namespace)


def test_the_readme_has_python():
    assert any(token.info == "python" for token in tokens(ROOT / "README.md"))


def test_the_files_of_a_run_are_told(tmp_path):
    """Each, and each name in them, by the docstrings of the modules that write them."""
    config, data = make_config(epochs=1), make_dataset()
    trainer = Trainer(config, data, backends.get("scalar"))
    run = checkpoint.Run.create(tmp_path / "run", config, data, "", trainer.state)
    trainer.observers = (run,)
    with contextlib.closing(run):
        trainer.run()
    names = {file.name for file in run.folder.iterdir()}
    names |= json.loads((run.folder / checkpoint.CONFIG).read_text()).keys()
    for file in (checkpoint.BEST, checkpoint.LAST):
        with safe_open(run.folder / file, framework="np") as content:
            names |= content.metadata().keys()
            names |= set(filter(re.compile(r"layers\.0\.").match, content.keys()))
    told = checkpoint.__doc__ + weights.__doc__
    assert [name for name in sorted(names) if f"``{name}``" not in told] == []


# ---- commands ------------------------------------------------------------------------------


class Parsed(BaseException):
    """The arguments were understood; nothing is to be done."""


def parse(tool: str, arguments: list[str], monkeypatch) -> None:
    """Runs a tool up to the end of its parsing."""
    real = argparse.ArgumentParser.parse_args

    def parse_args(self, *positional, **keywords):
        real(self, *positional, **keywords)
        raise Parsed

    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_args)
        patch.setattr(sys, "argv", [tool, *arguments])
        patch.syspath_prepend(str(ROOT / "tools"))
        with pytest.raises(Parsed):
            if tool == "mlpcore":
                commands.main(arguments)
            else:
                runpy.run_path(str(ROOT / tool), run_name="__main__")


def check_make(words: list[str], monkeypatch) -> None:
    """Targets and variables are in the Makefile; ARGS suit the tool that the target runs."""
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    for name in variables:
        assert f"$({name})" in MAKEFILE
    for target in (word for word in words if "=" not in word):
        recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
        assert recipe, f"make {target}: no such target"
        if "ARGS" in variables:
            tool = re.search(r"tools/\w+\.py", recipe[1])
            parse(tool[0], shlex.split(variables["ARGS"]), monkeypatch)


@each_page
def test_commands(page, monkeypatch, capsys):
    """Those of shell blocks and of sentences, as far as parsing them goes."""
    for line in code(page):
        variables = re.match(r"(?:\w+=\S+ +)*", line)
        line = line[variables.end() :]
        if not re.match(rf"make |\S*python tools/|tools/|mlpcore ({'|'.join(COMMANDS)})\b", line):
            continue
        command, *words = shlex.split(line, comments=True)
        if command == "make":
            check_make(words, monkeypatch)
        elif command == "mlpcore" and not words[1:]:  # a sentence that names a command
            assert words[0] in COMMANDS
        elif command.endswith("python"):
            parse(words[0], words[1:], monkeypatch)
        elif words:  # else a file that a sentence names
            parse(command, words, monkeypatch)


@pytest.fixture(scope="module")
def options() -> set[str]:
    """Of all commands and tools, as their help tells them."""
    found = set(re.findall(r"--[\w-]+", commands.HELP))
    for tool in sorted((ROOT / "tools").glob("*.py")):
        if "__main__" not in tool.read_text():
            continue  # not a command
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(io.StringIO()) as out,
        ):
            patch.setattr(sys, "argv", [str(tool), "--help"])
            patch.syspath_prepend(str(tool.parent))
            with pytest.raises(SystemExit):
                runpy.run_path(str(tool), run_name="__main__")
        found |= set(re.findall(r"--[\w-]+", out.getvalue()))
    return found


@each_page
def test_options(page, options):
    """Those that sentences name; commands have been parsed."""
    named = {word for line in code(page) for word in re.findall(r"^--[\w-]+", line)}
    assert named <= options


@each_page
def test_variables_and_extras(page):
    """Variables of the environment are somewhere in the code; pip finds the extras."""
    places = [ROOT / "Makefile", ROOT / "setup.py"]
    for folder in ("cuda", "mlpcore", "tests"):
        places += (ROOT / folder).rglob("*.py")
    sources = "".join(each.read_text() for each in places)
    extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    for line in code(page):
        assert [name for name in re.findall(r"MLPCORE_\w+", line) if name not in sources] == []
        assert set(re.findall(r"(?:\.|mlpcore)\[(\w+)\]", line)) <= set(extras)


# ---- files ---------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """What its headings are linked by: lower case, dashes for blanks, no punctuation."""
    found = list(tokens(page))
    headings = [next_.content for each, next_ in pairwise(found) if each.type == "heading_open"]
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_links_and_files(page):
    """Links into the repository with their headings, and files by their path from its root,
    wildcards included."""
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
