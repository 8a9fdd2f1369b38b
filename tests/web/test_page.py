"""What a user of the page sees and does."""

import base64
import json
import shutil
from pathlib import Path

import pytest

from handwriting import STROKES, draw, settle, styled
from mlpcore import Network, backends, dataset
from mlpcore.commands import main
from mlpcore.data.dataset import MNIST
from mlpcore.inference.classifier import TrainedClassifier, load
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.trained import TrainedNetwork
from mlpcore.web.page import to_page

DRAWN = Path(__file__).parents[2] / "docs" / "images" / "drawn.png"
BACKEND = backends.get("cpu", 1)

#: Hands that no digit of `STROKES` was drawn for.
STYLES = [
    {"pen": 0.12},
    {"pen": 0.03, "size": 0.9},
    {"slant": 0.3},
    {"size": 0.35, "shift": (0.2, 0.25), "pen": 0.04},
    {"turn": 12},
]


def text(page, identifier):
    return page.locator(f"#{identifier}").inner_text()


@pytest.fixture(scope="module")
def pretrained():
    """The page of the network in the package."""
    return to_page(load("pretrained"), precision="float16")  # which its weights are anyway


def test_a_drawing_is_read_as_predict_reads_its_screenshot(open_page, pretrained, tmp_path, capsys):
    """In light and in dark; and nine of ten are right."""
    pages = [open_page(pretrained, 390, 560, scheme) for scheme in ("light", "dark")]
    files, guesses = [], []
    for digit, strokes in STROKES.items():
        page, style = pages[digit % 2], dict(STYLES[digit % 5])
        page.keyboard.press("Escape")
        pen = style.pop("pen", 0.07)
        draw(page, styled(strokes, **style), pen)
        files.append(tmp_path / f"{digit}.png")
        page.locator("#drawing").screenshot(path=files[-1])
        guesses.append(int(text(page, "first")))
        assert page.locator("#bars li.best .label").inner_text() == str(guesses[-1])
    assert main(["predict", "--json", *map(str, files)]) == 0
    found = json.loads(capsys.readouterr().out)["pictures"]
    assert guesses == [picture["guesses"][0]["class"] for picture in found]
    assert sum(guess == digit for guess, digit in zip(guesses, STROKES, strict=True)) >= 9


def test_undo_clear_and_keys(open_page, pretrained):
    page = open_page(pretrained)
    draw(page, STROKES[5])
    page.keyboard.press("Control+z")  # the bar on top of the 5 goes
    settle(page)
    without_bar = text(page, "second")
    draw(page, STROKES[5][1:])
    assert text(page, "first") == "5"
    assert text(page, "second") != without_bar
    page.locator("#undo").click()
    settle(page)
    assert text(page, "second") == without_bar
    page.locator("#clear").click()
    settle(page)
    assert text(page, "first") == "?"
    assert page.locator("#hint").is_visible()
    page.keyboard.press("Control+z")  # all of it comes back
    settle(page)
    assert text(page, "second") == without_bar
    page.keyboard.press("Escape")
    page.locator("#drawing").focus()
    page.keyboard.press("ArrowUp")
    for key in [*["ArrowUp"] * 9, " ", *["ArrowDown"] * 18, " ", "ArrowDown"]:
        page.keyboard.press(key)
    settle(page)
    assert text(page, "first") == "1"


def test_undo_takes_the_stroke_that_is_being_drawn(open_page, pretrained):
    """The next movements do not go on with the stroke before."""
    page = open_page(pretrained)
    seen = """() => document.querySelector("#seen canvas").getContext("2d")
        .getImageData(0, 0, 29, 29).data.join()"""
    draw(page, STROKES[1])
    before = page.evaluate(seen)
    box = page.locator("#drawing").bounding_box()
    page.mouse.move(box["x"] + 50, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 220)
    settle(page)
    assert page.evaluate(seen) != before
    page.keyboard.press("Control+z")
    page.mouse.move(box["x"] + 250, box["y"] + 300)
    page.mouse.up()
    settle(page)
    assert page.evaluate(seen) == before


def test_the_pressure_of_a_pen_decides_the_width(open_page, pretrained):
    page = open_page(pretrained)
    ink = """(pressure) => {
        const canvas = document.getElementById("drawing");
        const { left, top } = canvas.getBoundingClientRect();
        const send = (name, x, y) => canvas.dispatchEvent(new PointerEvent(name, {
            pointerType: "pen", pressure, clientX: left + x, clientY: top + y, pointerId: 1 }));
        canvas.setPointerCapture = () => {}; // as there is no such pointer
        document.getElementById("clear").click();
        send("pointerdown", 100, 50);
        send("pointermove", 100, 250);
        send("pointerup", 100, 250);
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return data.reduce((sum, value, i) => sum + (i % 4 === 3 ? value : 0), 0);
    }"""
    light, usual, strong = (page.evaluate(ink, pressure) for pressure in (0.1, 0.5, 0.9))
    assert 1.5 * light < usual < strong / 1.3


@pytest.mark.parametrize("way", ["open", "paste", "drop"])
def test_a_picture_in_place_of_a_drawing(open_page, pretrained, way):
    page = open_page(pretrained)
    if way == "open":
        page.locator("#file").set_input_files(DRAWN)
    else:
        given = base64.b64encode(DRAWN.read_bytes()).decode()
        script = """([way, given]) => {
            const bytes = Uint8Array.from(atob(given), (each) => each.charCodeAt(0));
            const data = new DataTransfer();
            data.items.add(new File([bytes], "drawn.png", { type: "image/png" }));
            const name = way === "drop" ? "dataTransfer" : "clipboardData";
            const event = way === "drop" ? DragEvent : ClipboardEvent;
            document.dispatchEvent(new event(way, { [name]: data, cancelable: true }));
        }"""
        page.evaluate(script, [way, given])
    page.locator("#bars .best").wait_for()
    classifier = load("pretrained")
    outputs = classifier.outputs(classifier.to_images(DRAWN))[0]
    assert text(page, "first") == str(outputs.argmax())
    assert text(page, "second").startswith(f"{100 * outputs.max():.1f}".replace(".0", ""))
    draw(page, STROKES[1])  # takes its place
    assert text(page, "first") == "1"
    page.locator("#file").set_input_files(__file__)
    page.locator("#message", has_text="not a picture").wait_for()


def test_what_shows_no_digit_or_several_is_said(open_page, pretrained):
    page = open_page(pretrained)
    left, right = (styled(STROKES[1], shift=(shift, 0)) for shift in (-0.2, 0.2))
    draw(page, [*left, *right])
    assert "2 digits" in text(page, "message")
    page.evaluate("""() => new Promise((done) => {
        const canvas = new OffscreenCanvas(40, 40);
        canvas.getContext("2d").fillRect(0, 0, 40, 40);
        canvas.convertToBlob().then((blob) => {
            const data = new DataTransfer();
            data.items.add(new File([blob], "black.png", { type: "image/png" }));
            document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data }));
            done();
        });
    })""")
    page.locator("#message", has_text="No digit").wait_for()
    assert text(page, "first") == "?"


def network_of(seed, classes=(), width=None, path=Path("net.safetensors"), n_classes=10):
    network_input = NetworkInput(MNIST, (29, 29), (28, 28), False, "signed", width)
    network = Network((841, 12, n_classes), seed)
    return TrainedNetwork(path, network, network_input, {}, 1.0, tuple(classes))


def test_misread_test_digits(open_page):
    """Each is there with its label, and a click shows the guess that Python has."""
    data = dataset.load(name="digits")
    classifier = TrainedClassifier([network_of(2)], BACKEND)
    page = open_page(to_page(classifier, data))
    guesses = classifier.predict_images(data.test_images)
    wrong = [k for k, label in enumerate(data.test_labels) if guesses[k] != label]
    assert f"{len(wrong)} of 355 test digits. Here are the first 60." in text(page, "wrong-text")
    buttons = page.locator("#wrong button")
    assert buttons.count() == 60
    for k in 0, 59:
        buttons.nth(k).click()
        label, guess = data.test_labels[wrong[k]], guesses[wrong[k]]
        assert buttons.nth(k).inner_text().strip() == f"{label} → {guess}"
        assert text(page, "first") == str(guess)
        assert page.locator("#first").bounding_box()["y"] >= 0  # the page scrolls up to the answer
        outputs = classifier.outputs(data.test_images[wrong[k] : wrong[k] + 1])[0]
        values = [f"{value:.2f}".replace("-", "\N{MINUS SIGN}") for value in outputs]
        assert page.locator("#bars .value").all_inner_texts() == values


def test_deformed_forms_follow_the_sliders(open_page, pretrained):
    page = open_page(pretrained)
    draw(page, STROKES[3])
    pixels = """() => Array.from(document.querySelectorAll("#forms canvas"), (canvas) =>
        canvas.getContext("2d").getImageData(0, 0, 29, 29).data.join())"""
    usual = page.evaluate(pixels)
    assert len(set(usual)) == 12
    page.locator("#others").click()
    settle(page)
    assert not set(usual) & set(page.evaluate(pixels))
    for name in "alpha", "beta", "gamma":
        page.locator(f"#{name}").fill("0")
    settle(page)
    assert len(set(page.evaluate(pixels))) == 1
    assert "All 12 are read as 3" in text(page, "agreement")
    page.locator("#reset").click()
    assert [text(page, "sigma"), page.locator("#alpha").input_value()] == ["", "36"]


def test_inside(open_page):
    """Weights and states of each network of a committee."""
    networks = [network_of(1, path=Path("one")), network_of(2, width=10, path=Path("two"))]
    page = open_page(to_page(TrainedClassifier(networks, BACKEND)))
    page.locator("summary").click()
    draw(page, STROKES[2])
    shown = """() => ["#layers canvas", "#weights"].map((each) => {
        const canvas = document.querySelector(each);
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return data.join();
    })"""
    first = page.evaluate(shown)
    assert page.locator("#seen canvas").count() == 2
    page.locator("#inside select").select_option("1")
    assert all(a != b for a, b in zip(first, page.evaluate(shown), strict=True))


def test_many_classes_with_hostile_names(open_page):
    """Names are text, wherever they come from; of many classes the best ten have a bar."""
    names = [f"</script><img src=x onerror=alert({k})>" for k in range(26)]
    stem = "<!--<script>document.title = 'broken'&lt;&amp;<b>"
    path = Path("runs", f"{stem}.safetensors")
    networks = [network_of(k, names, path=path, n_classes=26) for k in range(2)]
    page = open_page(to_page(TrainedClassifier(networks, BACKEND)))
    draw(page, STROKES[4])
    assert page.locator("#bars li").count() == 10
    assert page.locator("#bars .label").first.inner_text() == text(page, "first") in names
    page.locator("summary").click()
    assert page.locator("#inside option").first.inner_text() == f"{stem}: 841-12-26"
    assert page.title() == "Draw a digit"
    assert page.locator("img, b").count() == 0


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
        const image = new Image();
        const failed = new Promise((done) => { image.onerror = () => done("image"); });
        image.src = "drawn.png";
        const fetched = await fetch("data:,text").catch(() => "fetch");
        return [fetched, await failed, document.title];
    }""")
    assert refused == ["fetch", "image", "Draw a digit"]
    page.close()


WORDS = [*("T-shirt", "trouser", "pullover", "dress", "coat"), "sandal", "shirt", "sneaker", "bag"]


@pytest.mark.parametrize("classes", [(), (*WORDS, "ankle boot")], ids=["digits", "words"])
@pytest.mark.parametrize("size", [(390, 844), (1280, 900)], ids=["phone", "desktop"])
def test_nothing_overlaps_or_is_cut_off(open_page, size, classes):
    """The elements of the answer, one for one; and the page is no wider than the screen."""
    data = dataset.load(name="digits")
    classifier = TrainedClassifier([network_of(2, classes)], BACKEND)
    page = open_page(to_page(classifier, data), *size)
    draw(page, STROKES[8])
    page.locator("summary").click()
    cut = page.evaluate("""() => Array.from(document.querySelectorAll("body *")).filter((each) =>
        each.getBoundingClientRect().right > innerWidth ||
        each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline"
    ).map((each) => each.outerHTML.slice(0, 80))""")
    assert cut == []
    tracks = [each.bounding_box() for each in page.locator("#bars .track").all()]
    assert len({(track["x"], track["width"]) for track in tracks}) == 1
    names = ["header", "#drawing", "#undo", "#clear", "#open", "#pen", "#first", "#second", "#seen"]
    names += ["#bars", "#sigma", "#alpha", "#beta", "#gamma", "#forms", "#wrong", "#layers"]
    boxes = [page.locator(name).bounding_box() for name in [*names, ".sheet", "footer"]]
    for k, a in enumerate(boxes):
        for b in boxes[:k]:
            beside = a["x"] >= b["x"] + b["width"] or b["x"] >= a["x"] + a["width"]
            above = a["y"] >= b["y"] + b["height"] or b["y"] >= a["y"] + a["height"]
            assert beside or above, (a, b)
