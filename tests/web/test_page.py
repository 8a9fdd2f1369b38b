"""Actions of a user of the page, and what it shows."""

import base64
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from mlpcore import Network, backends, dataset
from mlpcore.__main__ import main
from mlpcore.data.dataset import MNIST
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.inference.classifier import TrainedClassifier, load
from mlpcore.store.trained import TrainedNetwork
from mlpcore.web.html import to_page
from pictures import encoded

DRAWN = Path(__file__).parents[2] / "docs" / "images" / "drawn.png"
BACKEND = backends.get("cpu", 1)

#: Digits as strokes of points in a square of side 1.
STROKES = {
    1: [[(0.47, 0.2), (0.49, 0.5), (0.5, 0.8)]],
    5: [
        [(0.36, 0.2), (0.33, 0.46), (0.46, 0.42), (0.61, 0.47), (0.68, 0.6), (0.6, 0.77),
         (0.46, 0.81), (0.32, 0.74)],
        [(0.36, 0.2), (0.5, 0.19), (0.68, 0.18)],
    ],
    7: [[(0.3, 0.22), (0.7, 0.2), (0.6, 0.45), (0.5, 0.82)]],
}  # fmt: skip


def placed(strokes, size, x, y):
    """Strokes in another size, about another place than the middle."""
    return [[(x + size * (a - 0.5), y + size * (b - 0.5)) for a, b in each] for each in strokes]


def draw(page, strokes, pen=0.07):
    """Draws on the page with the mouse."""
    page.locator("#pen").fill(str(pen))
    page.locator("#drawing").scroll_into_view_if_needed()  # else the mouse may miss a part
    box = page.locator("#drawing").bounding_box()
    for stroke in strokes:
        for x, y in stroke:
            page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
            page.mouse.down()  # which is down after the first point
        page.mouse.up()
    wait_for_answer(page)


def act(page, what):
    """Presses a key, or a button by its #name."""
    if what.startswith("#"):
        page.locator(what).click()
    else:
        page.keyboard.press(what)
    wait_for_answer(page)


def wait_for_answer(page):
    """The page answers before it paints the next frame, and then computes the deformed forms."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    page.wait_for_function("() => document.getElementById('forms').ariaBusy !== 'true'")


def text(page, name):
    return page.locator(f"#{name}").inner_text()


def pixels(page, canvases):
    """The pixels of canvases, each as text."""
    script = """(all) => all.map((canvas) => canvas
        .getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.join())"""
    return page.locator(canvases).evaluate_all(script)


@pytest.fixture(scope="module")
def pretrained():
    """The page of the network in the package."""
    return to_page(load("pretrained"), precision="float16")  # which its weights are anyway


def test_a_drawing_is_read_as_predict_reads_its_screenshot(open_page, pretrained, tmp_path, capsys):
    """Of any size, place and pen, in light and in dark."""
    styles = {1: (0.9, 0.5, 0.5, 0.03), 5: (1, 0.5, 0.45, 0.12), 7: (0.35, 0.7, 0.75, 0.04)}
    files, guesses = [tmp_path / f"{digit}.png" for digit in styles], []
    for digit, file, scheme in zip(styles, files, ("light", "dark", "light")):
        page, (*place, pen) = open_page(pretrained, 390, 560, scheme), styles[digit]
        draw(page, placed(STROKES[digit], *place), pen)
        page.locator("#drawing").screenshot(path=file)
        guesses.append(int(text(page, "first")))
    assert main(["predict", "--json", *map(str, files)]) == 0
    found = json.loads(capsys.readouterr().out)["pictures"]
    assert guesses == [picture["guesses"][0]["class"] for picture in found] == list(styles)


def test_undo_and_clear(open_page, pretrained):
    page = open_page(pretrained)
    draw(page, STROKES[5])
    act(page, "Control+z")  # the bar on top of the 5 goes
    without_bar = pixels(page, "#seen")
    draw(page, STROKES[5][1:])
    assert text(page, "first") == "5"
    assert pixels(page, "#seen") != without_bar
    act(page, "#undo")
    assert pixels(page, "#seen") == without_bar
    act(page, "#clear")
    assert text(page, "first") == "?"
    assert page.locator("#hint").is_visible()
    act(page, "Control+z")  # all of it comes back
    assert pixels(page, "#seen") == without_bar


def give(page, way, content):
    """Opens, pastes or drops a file on the page."""
    if way == "open":
        page.locator("#file").set_input_files({"name": "a", "mimeType": "", "buffer": content})
        return
    script = """([way, given]) => {
        const bytes = Uint8Array.from(atob(given), (each) => each.charCodeAt(0));
        const data = new DataTransfer();
        data.items.add(new File([bytes], "a.png", { type: "image/png" }));
        const init = { dataTransfer: data, clipboardData: data, cancelable: true };
        document.dispatchEvent(new (way === "drop" ? DragEvent : ClipboardEvent)(way, init));
    }"""
    page.evaluate(script, [way, base64.b64encode(content).decode()])


def test_a_picture_in_place_of_a_drawing(open_page, pretrained):
    """Files that are no pictures, and pictures of no digit or several, are named."""
    page = open_page(pretrained)
    classifier = load("pretrained")
    outputs = classifier.outputs_of_digits(classifier.to_images(DRAWN))[0]
    for way in "open", "paste", "drop":
        give(page, way, DRAWN.read_bytes())
        page.locator("#bars .best").wait_for()
        assert text(page, "first") == str(outputs.argmax())
        then = f"then {outputs.argsort()[-2]} with under 0.1\u00a0%"
        assert text(page, "second") == f"{100 * outputs.max():.0f}\u00a0%\n{then}"
        assert "with a plain threshold" in text(page, "message")
        act(page, "Escape")
        assert text(page, "first") == "?"
    nothing = 0, 0
    inks = ("L", 255, 0), ("L", 0, 255), ("LA", nothing, (0, 255)), ("LA", nothing, (255, 255))
    for kind, paper, ink in inks:
        picture = Image.new(kind, (300, 200), paper)
        for stroke in placed(STROKES[5], 200, 150, 100):
            ImageDraw.Draw(picture).line(stroke, ink, 12, joint="curve")
        give(page, "open", encoded(picture))
        page.locator("#first", has_text="5").wait_for()
        act(page, "Escape")
    draw(page, [*placed(STROKES[1], 1, 0.3, 0.5), *placed(STROKES[1], 1, 0.7, 0.5)])
    assert "2 digits" in text(page, "message") and text(page, "first") == "?"
    noise = encoded(np.random.default_rng(0).integers(0, 256, (90, 90)))
    for content, said in (noise, "probably not a digit"), (b"no picture", "not a picture"):
        give(page, "open", content)
        page.locator("#message", has_text=said).wait_for()
    give(page, "paste", encoded(Image.new("L", (40, 40))))
    page.locator("#message", has_text="No digit").wait_for()


def network_of(seed, classes, path="net.safetensors"):
    network = Network((841, 12, len(classes)), seed)
    return TrainedNetwork(Path(path), network, MNIST_PIXELS, {"data": MNIST}, 1.0, tuple(classes))


def test_misread_test_digits_on_a_phone(open_page):
    """Each is there with its label, a click shows the guess that Python has, no word is cut off."""
    words = ("ankle boot", "T-shirt", "trouser", "pullover", "dress", "sandal", "sneaker")
    classifier = TrainedClassifier([network_of(2, [*words, "bag", "shirt", "coat"])], BACKEND)
    data = dataset.load(name="digits")
    page = open_page(to_page(classifier, data), 390, 844)
    names, outputs = classifier.classes, classifier.outputs(data.test_images)
    wrong = np.flatnonzero(outputs.argmax(axis=1) != data.test_labels)
    assert f"{len(wrong)} of 355 test digits. Here are the first 60." in text(page, "wrong-text")
    buttons = page.locator("#wrong button")
    assert buttons.count() == 60
    for k in 0, 59:
        buttons.nth(k).click()
        label, guess = names[data.test_labels[wrong[k]]], names[outputs[wrong[k]].argmax()]
        assert buttons.nth(k).inner_text().strip() == f"{label} → {guess}"
        assert text(page, "first") == guess
        assert page.locator("#first").bounding_box()["y"] >= 0  # the page scrolls up to the answer
        values = [f"{value:.2f}".replace("-", "\N{MINUS SIGN}") for value in outputs[wrong[k]]]
        assert page.locator("#bars .value").all_inner_texts() == values
    page.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_deformed_forms_follow_the_sliders(open_page, pretrained):
    page = open_page(pretrained)
    draw(page, STROKES[5])
    usual = pixels(page, "#forms canvas")
    assert len(set(usual)) == 12
    act(page, "#others")
    assert not set(usual) & set(pixels(page, "#forms canvas"))
    for name in "alpha", "beta", "gamma":
        page.locator(f"#{name}").fill("0")
    wait_for_answer(page)
    assert len(set(pixels(page, "#forms canvas"))) == 1
    assert "All 12 are read as 5" in text(page, "agreement")
    page.locator("#reset").click()
    assert page.locator("#alpha").input_value() == "36"


def test_many_classes_with_hostile_names(open_page):
    """Names are text, wherever they come from; of many classes the best ten have a bar."""
    names = [f"</script><img src=x onerror=alert({k})>" for k in range(26)]
    stem = "<!--<script>document.title = 'broken'&lt;&amp;<b>"
    networks = [network_of(k, names, f"runs/{stem}.safetensors") for k in range(2)]
    page = open_page(to_page(TrainedClassifier(networks, BACKEND)))
    draw(page, STROKES[5])
    assert page.locator("#bars li").count() == 10
    assert page.locator("#bars .label").first.inner_text() == text(page, "first") in names
    page.locator("summary").click()
    assert page.locator("#inside option").first.inner_text() == f"{stem}: 841-12-26"
    assert page.title() == "Draw a digit"
    assert page.locator("img, b").count() == 0
    page.locator("#layers canvas").wait_for()
    first = pixels(page, "details canvas")  # weights and states of a network
    page.locator("#inside select").select_option("1")
    assert all(a != b for a, b in zip(first, pixels(page, "details canvas"), strict=True))


def test_the_page_can_ask_nobody_for_anything(browser, pretrained, tmp_path):
    """Not even if a program got into it."""
    file = tmp_path / "page.html"
    file.write_bytes(pretrained)
    shutil.copy(DRAWN, tmp_path)
    page = browser.new_page()
    page.goto(file.as_uri())
    refused = page.evaluate("""async () => {
        const script = document.createElement("script");
        script.textContent = "document.title = 'broken'";
        document.body.append(script);
        const image = Object.assign(new Image(), { src: "drawn.png" });
        const shown = await image.decode().catch(() => "image");
        return [await fetch("data:,text").catch(() => "fetch"), shown, document.title];
    }""")
    assert refused == ["fetch", "image", "Draw a digit"]
    page.close()
