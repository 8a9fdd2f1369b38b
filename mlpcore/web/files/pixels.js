/** Pictures of numbers on canvases. */

/** Fills a canvas of width x height pixels; `colourOf(x, y)` is red, green, blue and opacity. */
function fill(canvas, width, height, colourOf) {
  [canvas.width, canvas.height] = [width, height];
  const pixels = new ImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    pixels.data.set(colourOf(i % width, Math.floor(i / width)), 4 * i);
  }
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

/** Paints ink, 0 to 1, in black on a transparent ground; the style sheet inverts it in the dark. */
export function showInk(canvas, ink) {
  const side = Math.sqrt(ink.length);
  fill(canvas, side, side, (x, y) => [0, 0, 0, Math.round(255 * ink[y * side + x])]);
}

/** Blue for positive values, vermilion for negative ones, paler near 0; 1 is full colour. */
function shade(value, opacity = 255) {
  const colour = value > 0 ? [30, 126, 200] : [213, 94, 0];
  return [...colour, Math.round(opacity * Math.min(1, Math.abs(value)))];
}

/**
 * The weights of n neurons as tiles of side x side pixels in so many columns, pale where the state
 * is 0. Four standard deviations of all of them are full colour.
 */
export function showWeights(canvas, weights, states, side, n, columns) {
  const shown = weights.subarray(0, n * side * side);
  const limit = 4 * Math.sqrt(shown.reduce((sum, x) => sum + x * x, 1e-12) / shown.length);
  const pitch = side + 1;
  fill(canvas, columns * pitch, Math.ceil(n / columns) * pitch, (x, y) => {
    const neuron = Math.floor(y / pitch) * columns + Math.floor(x / pitch);
    const [column, row] = [x % pitch, y % pitch];
    if (neuron >= n || column === side || row === side) return [0, 0, 0, 0];
    const weight = weights[(neuron * side + row) * side + column];
    return shade(weight / limit, states?.[neuron] === 0 ? 64 : 255);
  });
}

/** The states of neurons as cells in so many columns; the greatest is in full colour. */
export function showStates(canvas, states, columns) {
  const most = states.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-12);
  const rows = Math.ceil(states.length / columns);
  fill(canvas, columns, rows, (x, y) => shade((states[y * columns + x] ?? 0) / most));
}
