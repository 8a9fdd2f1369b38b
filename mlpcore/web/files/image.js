/** Images { width, height, data }, and the steps that all their transformations have. */

/** An image with other pixels. */
export const like = ({ width, height }, data) => ({ width, height, data });

export const greatestOf = (values) => values.reduce((a, b) => Math.max(a, b));
export const sumOf = (values) => values.reduce((a, b) => a + b, 0);

/**
 * Every row as one of another length; the result is transposed. Twice, this treats the columns too.
 * @param {(row: ArrayLike<number>, place: number) => number} valueOf a pixel of the new row
 */
export function mapRows({ width, height, data }, length, valueOf) {
  const result = new Float64Array(length * height);
  for (let y = 0; y < height; y++) {
    const row = data.subarray(y * width, (y + 1) * width);
    for (let x = 0; x < length; x++) result[x * height + y] = valueOf(row, x);
  }
  return { width: height, height: length, data: result };
}

export const transposed = (image) => mapRows(image, image.width, (row, x) => row[x]);

/** The columns of an image from `left` to before `right`, in the rows from `top` to `bottom`. */
export function partOf({ width, data }, left, top, right, bottom) {
  const rows = Array.from({ length: bottom - top }, (_, y) =>
    Array.from(data.subarray((top + y) * width + left, (top + y) * width + right)),
  );
  return { width: right - left, height: bottom - top, data: Float64Array.from(rows.flat()) };
}

/** Half to even, as NumPy rounds. */
export function roundEven(x) {
  const below = Math.floor(x);
  const rest = x - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

/** An image of another size: the mean of the pixels that one of the result covers, by a tent. */
export function resized(image, width, height) {
  const single = like(image, Float32Array.from(image.data));
  return [width, height].reduce(withRows, single);
}

/** An image with rows of another length, in float32, as Pillow computes them; transposed. */
function withRows(image, length) {
  if (image.width === length) return transposed(image);
  const scale = image.width / length;
  const support = Math.max(scale, 1);
  const tents = Array.from({ length }, (_, x) => {
    const centre = (x + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - support + 0.5));
    const end = Math.min(image.width, Math.trunc(centre + support + 0.5));
    const weights = Array.from({ length: end - first }, (_, i) =>
      Math.max(0, 1 - Math.abs((i + first - centre + 0.5) / support)),
    );
    return { first, weights: weights.map((weight) => weight / sumOf(weights)) };
  });
  return mapRows(image, length, (row, x) => {
    const { first, weights } = tents[x];
    return Math.fround(weights.reduce((sum, weight, i) => sum + row[first + i] * weight, 0));
  });
}
