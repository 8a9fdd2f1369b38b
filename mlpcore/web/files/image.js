/** Images as rows of pixels; from MNIST's pictures to inputs, as mlpcore/data/pixels.py. */

export const [PIXELS, IMAGE] = [28, 29]; // sides of MNIST's picture and of a network's image

export const sumOf = (values) => values.reduce((a, b) => a + b, 0);

/**
 * Every row as one of another length; the result is transposed. Twice, this treats the columns too.
 * @param {(row: ArrayLike<number>, place: number) => number} valueOf a pixel of the new row
 */
export function mapRows(rows, length, valueOf) {
  return Array.from({ length }, (_, x) => Float64Array.from(rows, (row) => valueOf(row, x)));
}

export const transposed = (rows) => mapRows(rows, rows[0].length, (row, x) => row[x]);

/** The image, 29 x 29 in [-1, 1], of a picture of 28 x 28 grey values: linear between pixels. */
export function imageOf(pixels) {
  const signed = Float32Array.from(pixels, (value) => Math.fround(value / 127.5) - 1);
  const rows = Array.from({ length: PIXELS }, (_, y) => signed.subarray(PIXELS * y, PIXELS * (y + 1)));
  const between = (row, x) => {
    const place = x * (PIXELS - 1);
    const low = Math.floor(place / (IMAGE - 1));
    const share = Math.fround((place % (IMAGE - 1)) / (IMAGE - 1));
    const step = Math.fround(row[Math.min(low + 1, PIXELS - 1)] - row[low]);
    return Math.fround(Math.fround(step * share) + row[low]);
  };
  const taller = mapRows(transposed(rows), IMAGE, between);
  return Float32Array.from(transposed(mapRows(taller, IMAGE, between)).flatMap((row) => [...row]));
}

/** The inputs that a network gets of an image: its own scale first, then its range. */
export function inputsOf(image, { scale: [factor, summand], unit }) {
  const scaled = image.map((value) => factor * value + summand);
  return unit ? scaled.map((value) => Math.fround(value + 1) / 2) : scaled;
}

/** The ink, 0 to 1, that inputs show. */
export const inkOf = (inputs, { unit }) => (unit ? inputs : inputs.map((x) => (x + 1) / 2));
