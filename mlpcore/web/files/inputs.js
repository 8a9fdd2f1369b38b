/** From MNIST's pictures to inputs, as mlpcore/data/scaling.py and mlpcore/data/width.py. */

export const [PIXELS, IMAGE] = [28, 29]; // sides of MNIST's picture and of a network's image
const [UNIT, THRESHOLD, MAX_STRETCH] = [2 ** 20, 0.25, 1.5];

/** Rows of 28 values become rows of 29, by linear interpolation in float32; then transposed. */
function interpolated(rows) {
  const height = rows.length / PIXELS;
  const result = new Float32Array(IMAGE * height);
  for (let t = 0; t < IMAGE; t++) {
    const place = t * (PIXELS - 1);
    const low = Math.floor(place / (IMAGE - 1));
    const share = Math.fround((place % (IMAGE - 1)) / (IMAGE - 1));
    for (let y = 0; y < height; y++) {
      const start = rows[y * PIXELS + low];
      const end = rows[y * PIXELS + Math.min(low + 1, PIXELS - 1)];
      const part = Math.fround(Math.fround(end - start) * share);
      result[t * height + y] = Math.fround(part + start);
    }
  }
  return result;
}

function transposed(values, width) {
  const height = values.length / width;
  return values.map((_, i) => values[(i % height) * width + Math.floor(i / height)]);
}

/** The image, 29 x 29 in [-1, 1], of a picture of 28 x 28 grey values. */
export function imageOf(pixels) {
  const signed = Float32Array.from(pixels, (value) => Math.fround(value / 127.5) - 1);
  const taller = interpolated(transposed(signed, PIXELS)); // 29 rows of 28
  return transposed(interpolated(taller), IMAGE);
}

/** What a network sees of an image: first its width, then its range. */
export function inputsOf(image, { width, unit }) {
  const normalised = width === null ? image : normaliseWidth(image, width);
  return unit ? normalised.map((value) => Math.fround(value + 1) / 2) : normalised;
}

/** The ink, 0 to 1, that inputs show. */
export const inkOf = (inputs, { unit }) => (unit ? inputs : inputs.map((x) => (x + 1) / 2));

/** Where a profile, linear between pixels, first exceeds a value. */
function firstCrossing(profile, least) {
  const inner = Math.max(0, profile.findIndex((value) => value > least));
  const [high, low] = [profile[inner], inner ? profile[inner - 1] : 0];
  return inner - (high - least) / (high > least ? high - low : 1);
}

function boxOf(profile, least) {
  const end = profile.length - 1 - firstCrossing(profile.slice().reverse(), least);
  return [firstCrossing(profile, least), end];
}

/** Half to even, as NumPy rounds. */
export function roundEven(x) {
  const below = Math.floor(x);
  const rest = x - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

/** For each result the sources [first, weights] around its own, weighted by a tent. */
function tents(mass, [begin, end], stretch) {
  const side = mass.length;
  const [centre, margin] = [(side - 1) / 2, THRESHOLD - 1];
  const total = mass.reduce((a, b) => a + b, 0);
  const moment = mass.reduce((sum, each, i) => sum + each * i, 0);
  const middle = total > 0 ? moment / total : centre;
  const [toBegin, toEnd] = [stretch * (begin - middle), stretch * (end - middle)];
  let target = centre + Math.max(0, margin - (centre + toBegin));
  target -= Math.max(0, target + toEnd - (side - 1 - margin));
  const slope = Math.min(stretch, 1);
  return Array.from({ length: side }, (_, pixel) => {
    const source = middle + (pixel - target) / stretch;
    const reach = Math.ceil(1 / slope) + 1;
    const first = Math.floor(source) - reach;
    const weights = Array.from({ length: 2 * reach + 2 }, (_, i) => {
      const distance = Math.abs((first + i) * (slope * UNIT) - source * (slope * UNIT));
      return roundEven(Math.max(0, UNIT - distance));
    });
    return [first, weights];
  });
}

/** The means of each row of ink around the sources; the result is transposed. */
function means(ink, side, rows) {
  const result = new Float64Array(ink.length);
  rows.forEach(([first, weights], t) => {
    const total = Math.max(1, weights.reduce((a, b) => a + b));
    for (let y = 0; y < side; y++) {
      let sum = 0;
      weights.forEach((weight, i) => {
        const x = first + i;
        if (x >= 0 && x < side) sum += weight * ink[y * side + x];
      });
      result[t * side + y] = roundEven(sum / total);
    }
  });
  return result;
}

/** An image in [-1, 1] with its ink brought to a width, and its mass to the centre. */
export function normaliseWidth(image, width) {
  const side = Math.sqrt(image.length);
  const ink = Float64Array.from(image, (value) => roundEven(Math.max(value + 1, 0) * UNIT));
  const rows = Array.from({ length: side }, (_, y) => ink.slice(y * side, (y + 1) * side));
  const columns = Array.from({ length: side }, (_, x) => ink.filter((_, i) => i % side === x));
  const greatest = (lines) => lines.map((line) => line.reduce((a, b) => Math.max(a, b)));
  const totals = (lines) => lines.map((line) => line.reduce((a, b) => a + b));
  const least = THRESHOLD * ink.reduce((a, b) => Math.max(a, b));
  const box = boxOf(greatest(columns), least);
  const stretch = Math.min(width / (box[1] - box[0]), MAX_STRETCH);
  const vertical = tents(totals(rows), boxOf(greatest(rows), least), 1);
  const horizontal = tents(totals(columns), box, stretch);
  const high = means(transposed(ink, side), side, vertical); // rows first; y, x
  const wide = means(high, side, horizontal); // x, y
  return Float32Array.from(transposed(wide, side), (value) => value / UNIT - 1);
}
