/** The page: what is drawn or opened goes through the networks, and their answers are shown. */
import { drawMap } from "./deformation.js";
import { findDigit, NoDigit } from "./digit.js";
import { Drawing, paint } from "./drawing.js";
import { IMAGE, imageOf, inkOf } from "./inputs.js";
import { showInside } from "./inside.js";
import { answer, classes, givesProbabilities, networks, usualDeformation, wrong } from "./model.js";
import { ranking } from "./network.js";
import { philox4x32 } from "./philox.js";
import { brightnessOf, greyOf } from "./picture.js";
import { showInk } from "./pixels.js";

/** The side of a drawing for the network; the number of deformed forms; the most bars. */
const [RASTER, FORMS, MAX_BARS] = [128, 12, 10];
/** Milliseconds of work on the forms, after which strokes and sliders have their turn. */
const SLICE = 8;
const SLIDERS = { sigma: " px", alpha: " px", beta: "°", gamma: " %" };

const byId = (id) => document.getElementById(id);
const raster = document.createElement("canvas");
const drawing = new Drawing(byId("drawing"), () => Number(byId("pen").value), onDrawn);

let image = null; // what the networks are asked about
let seed = 0;
let waiting = 0;
let isForming = false; // whether forms are being computed
let isStale = false; // and whether others are wanted by now

function element(name, className, text = "") {
  const result = document.createElement(name);
  result.className = className;
  result.textContent = text;
  return result;
}

// ---- what the networks are asked about ------------------------------------------------------

function onDrawn(isDone) {
  byId("hint").hidden = drawing.strokes.length > 0;
  pressWrong(null);
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => (drawing.strokes.length ? ask(rasterised(), isDone) : rest()));
}

/** The strokes as a picture, black on white. */
function rasterised() {
  raster.width = raster.height = RASTER;
  const context = raster.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "white";
  context.fillRect(0, 0, RASTER, RASTER);
  paint(context, drawing.strokes, RASTER);
  return brightnessOf(context.getImageData(0, 0, RASTER, RASTER));
}

function ask(grey, isDone) {
  try {
    const digit = findDigit(grey);
    const several = `There seem to be ${digit.seen} digits side by side: expected one.`;
    byId("message").textContent = digit.seen > 1 ? several : "";
    show(imageOf(digit.pixels), isDone);
  } catch (error) {
    if (!(error instanceof NoDigit)) throw error;
    rest();
    byId("message").textContent = isDone ? error.message : "";
  }
}

async function open(file) {
  if (!file) return;
  try {
    const grey = await greyOf(file);
    rest();
    ask(grey, true);
    if (image) showPicture();
  } catch (error) {
    byId("message").textContent = error.message;
  }
}

/** The image that is asked about, in place of strokes. */
function showPicture() {
  cancelAnimationFrame(waiting);
  const picture = element("canvas", "");
  showInk(picture, inkOf(image, { unit: false }));
  drawing.showPicture(picture);
  byId("hint").hidden = true;
}

// ---- answers --------------------------------------------------------------------------------

/** Nothing to ask about. */
function rest() {
  image = null;
  byId("message").textContent = "";
  byId("first").textContent = "?";
  byId("second").textContent = "The network answers while you draw.";
  byId("seen").replaceChildren(element("canvas", "ink"));
  showBars(null);
  showForms();
  showInside(null);
}

function show(asked, isDone) {
  image = asked;
  const { inputs, states, outputs } = answer(image);
  const [first, second] = ranking(outputs);
  setText("first", classes[first]);
  byId("first").classList.toggle("long", classes[first].length > 2);
  const isTiny = givesProbabilities && outputs[second] < 0.0005;
  const value = isTiny ? "under 0.1\u00a0%" : valueText(outputs[second]);
  const then = `then ${classes[second]} with ${value}`;
  setText("second", `${valueText(outputs[first])}\n${then}`);
  showSeen(inputs);
  showBars(outputs);
  if (isDone) showForms();
  if (isDone) showInside(states);
}

function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text; // else it is read aloud again
}

/** The input of each network, once for each width. */
function showSeen(inputs) {
  const views = new Map(networks.map((network, i) => [network.width, inkOf(inputs[i], network)]));
  byId("seen").replaceChildren(
    ...Array.from(views, ([width, ink]) => {
      const canvas = element("canvas", "ink");
      canvas.title = width === null ? "" : `width ${width}`;
      showInk(canvas, ink);
      return canvas;
    }),
  );
}

function valueText(output) {
  if (!givesProbabilities) return output.toFixed(2).replace("-", "−");
  return `${(100 * output).toFixed(1).replace(".0", "")}\u00a0%`;
}

/** The outputs of all classes, or the greatest of many. */
function showBars(outputs) {
  const all = classes.map((_, k) => k);
  const shown = outputs && classes.length > MAX_BARS ? ranking(outputs) : all;
  const best = outputs && ranking(outputs)[0];
  byId("bars").replaceChildren(
    ...shown.slice(0, MAX_BARS).map((k) => {
      const row = element("li", outputs && k === best ? "best" : "");
      const [track, bar] = [element("span", "track"), element("span", "bar")];
      const share = outputs ? (givesProbabilities ? outputs[k] : (outputs[k] + 1) / 2) : 0;
      bar.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
      track.append(bar);
      const value = element("span", "value", outputs ? valueText(outputs[k]) : "");
      row.append(element("span", "label", classes[k]), track, value);
      return row;
    }),
  );
}

// ---- deformed forms ---------------------------------------------------------------------------

function parameters() {
  return Object.fromEntries(Object.keys(SLIDERS).map((name) => [name, Number(byId(name).value)]));
}

function showForms() {
  for (const [name, unit] of Object.entries(SLIDERS)) {
    const text = byId(name).value + unit;
    byId(name).setAttribute("aria-valuetext", text);
    byId(name).nextElementSibling.value = text;
  }
  byId("others").disabled = !image;
  isStale = isForming;
  if (!image) {
    byId("agreement").textContent = "Draw a digit to see them.";
    byId("forms").replaceChildren();
  } else if (!isForming) {
    isForming = true;
    byId("forms").setAttribute("aria-busy", "true");
    setTimeout(formSome, 0, [], image, parameters());
  }
}

/** Computes forms for a while, then the others; shows all when they are there. */
function formSome(forms, asked, settings) {
  const until = performance.now() + SLICE;
  while (image === asked && forms.length < FORMS && performance.now() < until) {
    const { inputs, outputs } = answer(asked, drawMap(settings, IMAGE, seed, forms.length));
    forms.push([inkOf(inputs[0], networks[0]), ranking(outputs)[0]]);
  }
  if (image === asked && forms.length < FORMS) {
    setTimeout(formSome, 0, forms, asked, settings);
    return;
  }
  isForming = false;
  byId("forms").setAttribute("aria-busy", "false");
  if (image === asked) placeForms(forms);
  if (isStale) showForms();
}

function placeForms(forms) {
  const own = ranking(answer(image).outputs)[0];
  const agreeing = forms.filter(([, guess]) => guess === own).length;
  const count = agreeing === FORMS ? `All ${FORMS}` : `${agreeing} of ${FORMS}`;
  byId("agreement").textContent = `${count} are read as ${classes[own]}, as your digit is.`;
  byId("forms").replaceChildren(
    ...forms.map(([ink, guess]) => {
      const form = element("div", guess === own ? "" : "other");
      form.role = "listitem";
      const canvas = element("canvas", "ink");
      showInk(canvas, ink);
      form.append(canvas, classes[guess]);
      return form;
    }),
  );
}

function setSliders() {
  for (const name of Object.keys(SLIDERS)) byId(name).value = usualDeformation[name];
  showForms();
}

// ---- test digits that are misread -------------------------------------------------------------

function showWrong() {
  if (!wrong) return;
  const { images, labels, guesses, numbers, errors, n } = wrong;
  byId("wrong-section").hidden = false;
  const some = labels.length < errors ? ` Here are the first ${labels.length}.` : "";
  byId("wrong-text").textContent =
    `${errors.toLocaleString("en")} of ${n.toLocaleString("en")} test digits.${some}` +
    " Choose one to see the answer.";
  labels.forEach((label, i) => {
    const button = element("button", "");
    button.type = "button";
    const words = `${classes[label]}, read as ${classes[guesses[i]]}`;
    button.setAttribute("aria-label", `test digit ${numbers[i]}: ${words}`);
    const canvas = element("canvas", "ink");
    const asked = images.subarray(i * IMAGE ** 2, (i + 1) * IMAGE ** 2);
    showInk(canvas, inkOf(asked, { unit: false }));
    button.append(canvas, `${classes[label]} → ${classes[guesses[i]]}`);
    button.addEventListener("click", () => {
      pressWrong(button);
      byId("message").textContent = `Test digit ${numbers[i]}: ${words}.`;
      show(asked, true);
      showPicture();
      document.querySelector(".stage").scrollIntoView();
    });
    byId("wrong").append(button);
  });
  pressWrong(null);
}

function pressWrong(pressed) {
  for (const button of byId("wrong").children) {
    button.setAttribute("aria-pressed", String(button === pressed));
  }
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
for (const name of Object.keys(SLIDERS)) byId(name).addEventListener("input", showForms);

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
rest();
setSliders();

/** For the console: `mlpcore.answer(mlpcore.imageOf(pixels)).outputs`. */
globalThis.mlpcore = { answer, drawMap, findDigit, greyOf, imageOf, networks, philox4x32 };
