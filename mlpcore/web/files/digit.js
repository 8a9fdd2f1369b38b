/** A digit in the format of MNIST's, as mlpcore/data/digit.py, of ink on a canvas. */
import { PIXELS, sumOf } from "./image.js";

const [BOX, CENTRE, EDGE, MIN_INK, MIN_HEIGHT] = [20, 14, 0.35, 0.05, 0.5];

/** The ink, 0 to 1, on a canvas: its opacity. */
function inkOn(context, width, height) {
  const { data } = context.getImageData(0, 0, width, height);
  return Float32Array.from({ length: width * height }, (_, i) => data[4 * i + 3] / 255);
}

/**
 * The digit that the opacity of a square canvas shows.
 * @returns {?{ pixels: Uint8Array, seen: number }} 28 x 28 pixels, and how many digits there seem
 *   to be side by side; null if there is none
 */
export function digitOf(canvas) {
  const side = canvas.width;
  const ink = inkOn(canvas.getContext("2d"), side, side);
  const runs = columnsOf(ink, side);
  const most = Math.max(0, ...runs.map(({ mass }) => mass));
  const kept = runs.filter(({ mass }) => mass >= MIN_INK * most); // the others are dirt
  if (!kept.length) return null;
  const [left, top] = ["left", "top"].map((name) => Math.min(...kept.map((run) => run[name])));
  const [right, bottom] = ["right", "bottom"].map((name) => Math.max(...kept.map((run) => run[name])));
  const highest = Math.max(...kept.map((run) => run.bottom - run.top));
  const seen = kept.filter((run) => run.bottom - run.top >= MIN_HEIGHT * highest).length;
  const scale = BOX / Math.max(right - left, bottom - top);
  const [width, height] = [right - left, bottom - top].map((n) => Math.max(1, Math.round(scale * n)));
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(canvas, left, top, right - left, bottom - top, 0, 0, width, height);
  return { pixels: centred(inkOn(context, width, height), width, height), seen };
}

/** Runs of columns with ink, each with its box and mass. */
function columnsOf(ink, side) {
  const runs = [];
  for (let x = 0; x < side; x++) {
    const rows = [...Array(side).keys()].filter((y) => ink[y * side + x] > EDGE);
    if (!rows.length) continue;
    if (runs.at(-1)?.right !== x) runs.push({ left: x, top: side, bottom: 0, mass: 0 });
    const run = runs.at(-1);
    run.right = x + 1;
    run.top = Math.min(run.top, rows[0]);
    run.bottom = Math.max(run.bottom, rows.at(-1) + 1);
    run.mass += rows.length;
  }
  return runs;
}

/** Ink in MNIST's picture, its centre of mass as near to the middle as it fits. */
function centred(ink, width, height) {
  const [total, most] = [sumOf(ink), ink.reduce((a, b) => Math.max(a, b))];
  const corner = (placeOf, side) => {
    const moment = ink.reduce((sum, value, i) => sum + value * placeOf(i), 0);
    return Math.min(Math.max(Math.floor(CENTRE - moment / total + 0.5), 0), PIXELS - side);
  };
  const left = corner((i) => i % width, width);
  const top = corner((i) => Math.floor(i / width), height);
  const result = new Uint8Array(PIXELS * PIXELS);
  ink.forEach((value, i) => {
    const place = (top + Math.floor(i / width)) * PIXELS + left + (i % width);
    result[place] = Math.round((255 * value) / most);
  });
  return result;
}
