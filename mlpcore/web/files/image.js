/** Images { width, height, data }, and the steps that all their transformations have. */

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
