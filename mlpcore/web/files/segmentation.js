/** What belongs together in an image, as mlpcore/data/segmentation.py. */

const RIM = 1 / 24;

/** The threshold that splits values from 0 to 1 into the two most distinct classes. */
export function otsu(values) {
  const bins = 256;
  const counts = new Float64Array(bins);
  for (const value of values) counts[Math.min(bins - 1, Math.floor(value * bins))]++;
  const total = counts.reduce((sum, count, k) => sum + (count * (k + 0.5)) / bins, 0);
  let [below, sum, best, threshold] = [0, 0, -1, 0];
  counts.forEach((count, k) => {
    below += count;
    sum += (count * (k + 0.5)) / bins;
    const above = values.length - below;
    const distance = sum / below - (total - sum) / above;
    const between = below && above ? below * above * distance ** 2 : 0;
    if (between > best) [best, threshold] = [between, (k + 1) / bins];
  });
  return threshold;
}

/**
 * The pieces of a mask whose pixels touch at edges or corners, each with its box, and whether it is
 * not only along the border.
 */
export function piecesOf({ width, height, data }) {
  const free = Uint8Array.from(data);
  const [columns, rows] = [width, height].map((side) => Math.floor(RIM * side));
  const isInside = (x, y) =>
    x >= columns && x < width - columns && y >= rows && y < height - rows;
  const pieces = [];
  for (let start = free.indexOf(1); start >= 0; start = free.indexOf(1, start)) {
    const piece = { left: width, right: 0, top: height, bottom: 0, places: [start], inside: false };
    free[start] = 0;
    for (const place of piece.places) { // which grow
      const [x, y] = [place % width, Math.floor(place / width)];
      piece.left = Math.min(piece.left, x);
      piece.right = Math.max(piece.right, x + 1);
      piece.top = Math.min(piece.top, y);
      piece.bottom = Math.max(piece.bottom, y + 1);
      piece.inside ||= isInside(x, y);
      for (let j = Math.max(y - 1, 0); j <= Math.min(y + 1, height - 1); j++) {
        for (let i = Math.max(x - 1, 0); i <= Math.min(x + 1, width - 1); i++) {
          if (free[j * width + i]) piece.places.push(j * width + i);
          free[j * width + i] = 0;
        }
      }
    }
    pieces.push(piece);
  }
  return pieces;
}
