/** Pictures of numbers on canvases. */

/** Paints ink, 0 to 1, in black on a transparent ground; the style sheet inverts it in the dark. */
export function showInk(canvas, ink) {
  const side = Math.sqrt(ink.length);
  canvas.width = canvas.height = side;
  const pixels = new ImageData(side, side);
  ink.forEach((value, i) => {
    pixels.data[4 * i + 3] = Math.round(255 * value);
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

/** Blue for positive values, vermilion for negative ones, paler near 0; 1 is full colour. */
export function shade(pixels, place, value) {
  const colour = value > 0 ? [30, 126, 200] : [213, 94, 0];
  pixels.data.set([...colour, Math.round(255 * Math.min(1, Math.abs(value)))], 4 * place);
}

/**
 * The weights of first-layer neurons as tiles of side x side pixels in so many columns. Four
 * standard deviations of all of them are full colour.
 */
export function showWeights(canvas, weights, side, n, columns) {
  const pitch = side + 1;
  canvas.width = columns * pitch;
  canvas.height = Math.ceil(n / columns) * pitch;
  const pixels = new ImageData(canvas.width, canvas.height);
  const shown = weights.subarray(0, n * side * side);
  const full = 4 * Math.sqrt(shown.reduce((sum, x) => sum + x * x, 1e-12) / shown.length);
  for (let k = 0; k < n; k++) {
    const tile = weights.subarray(k * side * side, (k + 1) * side * side);
    const corner = Math.floor(k / columns) * pitch * canvas.width + (k % columns) * pitch;
    tile.forEach((value, i) => {
      shade(pixels, corner + Math.floor(i / side) * canvas.width + (i % side), value / full);
    });
  }
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

/** The states of neurons as cells in so many columns; the greatest is in full colour. */
export function showStates(canvas, values, columns) {
  const most = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-12);
  canvas.width = columns;
  canvas.height = Math.ceil(values.length / columns);
  const pixels = new ImageData(canvas.width, canvas.height);
  values.forEach((value, i) => shade(pixels, i, value / most));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}
