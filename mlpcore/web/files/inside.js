/** The fold-out: first-layer weights, and which neurons are active. */
import { IMAGE } from "./inputs.js";
import { networks } from "./model.js";
import { showStates, showWeights } from "./pixels.js";

/** The most neurons whose weights are shown, and the least width of one; neurons in a row. */
const [SHOWN, LEAST, ROW] = [240, 30, 100];

const panel = document.getElementById("inside");
const choice = document.createElement("select");
let latest = null; // the states of each network

/** Shows the states of each network's layers; null for none. Nothing is drawn while it is closed. */
export function showInside(states) {
  latest = states;
  if (panel.open) showStatesOf(Number(choice.value));
}

const columns = () => (panel.clientWidth < 20 * LEAST ? 10 : 20);

function showAll() {
  const index = Number(choice.value);
  const { layers, sizes } = networks[index];
  const n = Math.min(SHOWN, sizes[1]);
  const some = n < sizes[1] ? `The first ${n} of ${sizes[1].toLocaleString("en")} neurons. ` : "";
  document.getElementById("weights-text").textContent =
    `${some}Each picture is what a neuron looks for. Inactive neurons are pale.`;
  showWeights(document.getElementById("weights"), layers[0].weights, IMAGE, n, columns());
  showStatesOf(index);
}

function showStatesOf(index) {
  const { sizes, activation } = networks[index];
  const blocks = sizes.slice(1, -1).map((size, i) => {
    const values = latest?.[index][i] ?? new Float32Array(size);
    const active = values.filter((value) => value !== 0).length;
    const title = document.createElement("h3");
    title.textContent =
      `Layer ${i + 1}: ` +
      (activation === "relu" ? `${active.toLocaleString("en")} of ` : "") +
      `${size.toLocaleString("en")} neurons` +
      (activation === "relu" ? " are active" : "");
    const canvas = document.createElement("canvas");
    canvas.role = "img";
    canvas.ariaLabel = title.textContent;
    showStates(canvas, values, Math.min(size, ROW));
    return [title, canvas];
  });
  document.getElementById("layers").replaceChildren(...blocks.flat());
  showInactive(latest?.[index][0], Math.min(SHOWN, sizes[1]));
}

/** Covers the weights of first-layer neurons that are 0. */
function showInactive(values, n) {
  const cover = document.getElementById("inactive");
  cover.width = columns();
  cover.height = Math.ceil(n / cover.width);
  const context = cover.getContext("2d");
  context.fillStyle = getComputedStyle(panel).backgroundColor;
  context.globalAlpha = 0.75;
  for (let k = 0; values && k < n; k++) {
    if (values[k] === 0) context.fillRect(k % cover.width, Math.floor(k / cover.width), 1, 1);
  }
}

networks.forEach(({ name }, i) => choice.add(new Option(name, i)));
choice.ariaLabel = "Network";
choice.addEventListener("change", showAll);
if (networks.length > 1) panel.querySelector("summary").after(choice);
panel.addEventListener("toggle", () => panel.open && showAll());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showInside(latest));
