/** The page: what is drawn or opened goes through the networks, and their answers are shown. */
import { drawMap } from "./deformation.js";
import { digitOf } from "./digit.js";
import { Drawing, paint } from "./drawing.js";
import { IMAGE, imageOf, inkOf } from "./image.js";
import { showInside } from "./inside.js";
import { answer, answerOfDigit, classes, givesProbabilities, isDoubtful } from "./model.js";
import { networks, usualDeformation, wrong } from "./model.js";
import { ranking } from "./network.js";
import { inkOfPicture } from "./picture.js";
import { showInk } from "./pixels.js";

/**
 * The side of a drawing for the network; its thickest strokes, as a share of the digit's side; the
 * number of deformed forms; the most bars.
 */
const [RASTER, THICKEST, FORMS, MAX_BARS] = [128, 0.25, 12, 10];
const NO_DIGIT = "No digit found: expected one that stands out from a plain background.";
const PLAIN = "Ink and paper are separated with a plain threshold: mlpcore predict reads photographs better.";
const UNITS = { sigma: " px", alpha: " px", beta: "°", gamma: " %" };

const byId = (id) => document.getElementById(id);
const drawing = new Drawing(byId("drawing"), () => Number(byId("pen").value), onDrawn);
const raster = new OffscreenCanvas(RASTER, RASTER).getContext("2d", { willReadFrequently: true });

let image = null; // what the networks are asked about
let guess = null; // the class that they see
let seed = 0; // of the deformed forms
let frame = 0; // the request for the next answer
let round = 0; // of the computation of forms: a later one ends those before

function element(name, className, ...content) {
  const result = document.createElement(name);
  result.className = className;
  result.append(...content);
  return result;
}

function inkCanvas(ink) {
  const canvas = element("canvas", "ink");
  showInk(canvas, ink);
  return canvas;
}

function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text; // else it is read aloud again
}

// ---- what the networks are asked about ------------------------------------------------------

function onDrawn(isDone) {
  byId("hint").hidden = drawing.strokes.length > 0;
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => {
    if (drawing.strokes.length) read(drawnInk(), isDone);
    else showNothing();
  });
}

/**
 * The strokes on a canvas: nothing has to tell them from a ground. Those of a small digit are no
 * thicker than those of a large one, in which they would leave no hole.
 */
function drawnInk() {
  const points = drawing.strokes.flatMap((stroke) => stroke.points);
  const extents = [0, 1].map((axis) => {
    const places = points.map((point) => point[axis]);
    return Math.max(...places) - Math.min(...places);
  });
  const most = THICKEST * Math.max(...extents) || Infinity; // of a dot, whatever it is
  const strokes = drawing.strokes.map(({ width, points }) => ({ width: Math.min(width, most), points }));
  raster.clearRect(0, 0, RASTER, RASTER);
  paint(raster, strokes, RASTER);
  return raster.canvas;
}

/** Asks the networks about the ink on a canvas, and shows a message unless there is another. */
function read(canvas, isDone, usual = "") {
  const digit = digitOf(canvas);
  if (digit?.seen !== 1) {
    const several = `There seem to be ${digit?.seen} digits side by side: expected one.`;
    showNothing();
    if (isDone) setText("message", digit ? several : NO_DIGIT);
    return;
  }
  const asked = imageOf(digit.pixels);
  setText("message", isDone && isDoubtful(asked) ? "This is probably not a digit." : usual);
  show(asked, answerOfDigit(asked), isDone);
}

async function open(file) {
  if (!file) return;
  const canvas = await inkOfPicture(file, RASTER);
  if (canvas) read(canvas, true, PLAIN);
  else setText("message", "This is not a picture that the browser can read.");
  if (canvas && image) showPicture();
}

/** The image that is asked about, in place of strokes. */
function showPicture() {
  cancelAnimationFrame(frame);
  drawing.showPicture(inkCanvas(inkOf(image, { unit: false })));
  byId("hint").hidden = true;
}

// ---- answers --------------------------------------------------------------------------------

function showNothing() {
  image = null;
  setText("message", "");
  setText("first", "?");
  setText("second", "The network answers while you draw.");
  showInk(byId("seen"), new Float32Array(1));
  showBars(null);
  showForms();
  showInside(null);
}

function show(asked, { inputs, states, outputs }, isDone) {
  image = asked;
  const [first, second] = ranking(outputs);
  guess = first;
  setText("first", classes[first]);
  byId("first").classList.toggle("long", classes[first].length > 2);
  const next = valueText(outputs[second]).replace(/^0\s/, "under 0.1\u00a0");
  setText("second", `${valueText(outputs[first])}\nthen ${classes[second]} with ${next}`);
  showInk(byId("seen"), inkOf(inputs[0], networks[0]));
  showBars(outputs);
  if (isDone) showForms();
  if (isDone) showInside(states);
}

function valueText(output) {
  if (!givesProbabilities) return output.toFixed(2).replace("-", "−");
  return `${(100 * output).toFixed(1).replace(".0", "")}\u00a0%`;
}

/** The outputs of all classes, or the greatest of many. */
function showBars(outputs) {
  const order = ranking(outputs ?? new Float64Array(classes.length));
  const shown = classes.length > MAX_BARS ? order.slice(0, MAX_BARS) : [...classes.keys()];
  byId("bars").replaceChildren(
    ...shown.map((k) => {
      const bar = element("span", "bar");
      const share = outputs ? (givesProbabilities ? outputs[k] : (outputs[k] + 1) / 2) : 0;
      bar.style.setProperty("--share", `${100 * share}%`);
      const value = element("span", "value", outputs ? valueText(outputs[k]) : "");
      const label = element("span", "label", classes[k]);
      return element("li", outputs && k === order[0] ? "best" : "", label, bar, value);
    }),
  );
}

// ---- deformed forms ---------------------------------------------------------------------------

function setSliders() {
  for (const name of Object.keys(UNITS)) byId(name).value = usualDeformation[name];
  showForms();
}

/** Shows what the sliders say, and then the forms, for which strokes never wait. */
async function showForms() {
  const parameters = {};
  for (const [name, unit] of Object.entries(UNITS)) {
    const text = byId(name).value + unit;
    parameters[name] = Number(byId(name).value);
    byId(name).setAttribute("aria-valuetext", text);
    byId(name).nextElementSibling.value = text;
  }
  const [own, asked, forms] = [++round, image, byId("forms")];
  byId("others").disabled = !image;
  forms.ariaBusy = String(image !== null);
  if (!image) {
    setText("agreement", "Draw a digit to see them.");
    forms.replaceChildren();
    return;
  }
  const shown = [];
  for (let k = 0; k < FORMS; k++) {
    await new Promise((done) => setTimeout(done));
    if (own !== round || image !== asked) return;
    const { inputs, outputs } = answer(asked, drawMap(parameters, seed, k));
    const [first] = ranking(outputs);
    const canvas = inkCanvas(inkOf(inputs[0], networks[0]));
    shown.push(element("li", first === guess ? "" : "other", canvas, classes[first]));
  }
  forms.replaceChildren(...shown);
  const agreeing = shown.filter(({ className }) => !className).length;
  const count = agreeing === FORMS ? `All ${FORMS}` : `${agreeing} of ${FORMS}`;
  setText("agreement", `${count} are read as ${classes[guess]}, like your digit.`);
  forms.ariaBusy = "false";
}

// ---- test digits that are misread -------------------------------------------------------------

function showWrong() {
  if (!wrong) return;
  const { images, labels, guesses, numbers, errors, n } = wrong;
  byId("wrong-section").hidden = false;
  const some = labels.length < errors ? ` Here are the first ${labels.length}.` : "";
  const counts = `${errors.toLocaleString("en")} of ${n.toLocaleString("en")} test digits.`;
  setText("wrong-text", `${counts}${some} Choose one to see the answer.`);
  labels.forEach((label, i) => {
    const pair = [classes[label], classes[guesses[i]]];
    const asked = images.subarray(i * IMAGE ** 2, (i + 1) * IMAGE ** 2);
    const canvas = inkCanvas(inkOf(asked, { unit: false }));
    const button = element("button", "", canvas, pair.join(" → "));
    button.type = "button";
    button.ariaLabel = `${pair.join(" → ")}, test digit ${numbers[i]}`;
    button.addEventListener("click", () => {
      setText("message", `Test digit ${numbers[i]}: ${pair.join(", read as ")}.`);
      show(asked, answer(asked), true);
      showPicture();
      document.querySelector(".stage").scrollIntoView();
    });
    byId("wrong").append(button);
  });
}

// ---- buttons, keys, files ---------------------------------------------------------------------

const actions = {
  undo: () => drawing.undo(),
  clear: () => drawing.clear(),
  open: () => byId("file").click(),
  reset: setSliders,
  others: () => {
    seed++;
    showForms();
  },
};
for (const [id, act] of Object.entries(actions)) byId(id).addEventListener("click", act);
for (const name of Object.keys(UNITS)) byId(name).addEventListener("input", showForms);

byId("file").addEventListener("change", async ({ target }) => {
  await open(target.files[0]);
  target.value = ""; // so that the same file can be opened again
});
document.addEventListener("paste", (event) => open(event.clipboardData.files[0]));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  open(event.dataTransfer.files[0]);
});
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "z") {
    event.preventDefault();
    drawing.undo();
  } else if (event.key === "Escape") {
    drawing.clear();
  }
});

showWrong();
showNothing();
setSliders();

/** For the console: `mlpcore.answer(mlpcore.imageOf(pixels)).outputs`. */
globalThis.mlpcore = {
  answer, answerOfDigit, drawMap, imageOf, isDoubtful, networks,
};
