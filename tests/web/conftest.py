"""A real browser, in which pages open from the disk. Tests are skipped where there is none."""

import pytest


@pytest.fixture(scope="module")
def browser():
    """Chromium. Its event loop is in the way of tests that have their own, so it ends soon."""
    pytest.importorskip("playwright")
    import headless

    if headless.find_browser() is None:
        pytest.skip("no browser is found: Debian's package chromium has one")
    with headless.browser() as running:
        yield running


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens pages from the disk. They may ask for nothing else, and report no error."""
    file, errors, requests = tmp_path / "page.html", [], set()

    def open_it(content, width=1280, height=900, scheme="light"):
        file.write_bytes(content)
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requests.add(request.url))
        page.goto(file.as_uri())
        return page

    yield open_it
    assert errors == [] and requests == {file.as_uri()}
