/** The fold-out: first-layer weights, and which neurons are active. */
import { IMAGE } from "./image.js";
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
  if (panel.open) showAll();
}

function showAll() {
  const { layers, sizes, activation } = networks[choice.value];
  const states = latest?.[choice.value];
  const hidden = sizes.slice(1, -1).map((size, i) => states?.[i] ?? new Float32Array(size));
  document.getElementById("layers").replaceChildren(
    ...hidden.flatMap((values, i) => {
      const title = document.createElement("h3");
      title.textContent = `Layer ${i + 1}: ${countText(values, activation)}`;
      const canvas = document.createElement("canvas");
      canvas.role = "img";
      canvas.ariaLabel = title.textContent;
      showStates(canvas, values, Math.min(values.length, ROW));
      return [title, canvas];
    }),
  );
  const n = Math.min(SHOWN, sizes[1]);
  const some = n < sizes[1] ? `The first ${n} of ${sizes[1].toLocaleString("en")} neurons. ` : "";
  document.getElementById("weights-text").textContent =
    `${some}Each picture is what a neuron looks for. Inactive neurons are pale.`;
  const columns = panel.clientWidth < 20 * LEAST ? 10 : 20;
  const canvas = document.getElementById("weights");
  showWeights(canvas, layers[0].weights, states?.[0], IMAGE, n, columns);
}

/** The number of a layer's neurons, and of its active rectifiers. */
function countText(values, activation) {
  const neurons = `${values.length.toLocaleString("en")} neurons`;
  if (activation !== "relu") return neurons;
  const active = values.filter((value) => value !== 0).length;
  return `${active.toLocaleString("en")} of ${neurons} are active`;
}

networks.forEach(({ name }, i) => choice.add(new Option(name, i)));
choice.ariaLabel = "Network";
choice.addEventListener("change", showAll);
if (networks.length > 1) panel.querySelector("summary").after(choice);
panel.addEventListener("toggle", () => panel.open && showAll());
