"""`mlpcore draw`: which network, and where the page is."""

import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from mlpcore.__main__ import main


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """The pages that were opened."""
    files = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(
        webbrowser, "open", lambda url: files.append(Path(unquote(urlparse(url).path)))
    )
    return files


def test_a_run_or_the_network_of_the_package_opens_a_page(call, opened, capsys):
    options = "--dataset digits --arch 8 --epochs 1 --sigma 5.5 --out r"
    call("train", *options.split())
    assert call("draw", "r").endswith(f"{opened[0]}\n")
    content = opened[0].read_bytes()
    assert b'"r: 841-8-10"' in content and b'"wrong": {"images"' in content
    assert b'"deformation": {"sigma": 5.5, "alpha": 36.0,' in content
    assert main(["draw"]) == 0
    assert capsys.readouterr().err.startswith("note: no network is named: that of the package")
    assert b'"net1: 841-1000-500-10"' in opened[1].read_bytes()
