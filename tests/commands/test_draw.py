"""`mlpcore draw`: which network, and where the page is."""

import re
import webbrowser
from pathlib import Path
from urllib.request import url2pathname

from mlpcore.__main__ import main


def test_a_run_or_the_network_of_the_package_opens_a_page(call, capsys, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(Path(url2pathname(url[7:]))))
    options = "--dataset digits --arch 8 --epochs 1 --sigma 5.5 --out r"
    call("train", *options.split())
    making, found = call("draw", "r").splitlines()
    assert making == "making the page, which opens in the browser"
    assert found.endswith(f"{opened[0]}")
    content = opened[0].read_bytes()
    assert b"6,826 weights" in content and b'"wrong": {"images"' in content
    assert b'"deformation": {"sigma": 5.5, "alpha": 36.0,' in content
    assert main(["draw"]) == 0
    said = r"note: no network named: using the pretrained net1, .* 0\.\d\d % .*\n"
    assert re.fullmatch(said, capsys.readouterr().err)
    assert b"1,347,510 weights" in opened[1].read_bytes()
