/**
 * The ink of a picture of any origin: mlpcore/data/ink.py, step by step and with the same numbers.
 * That module says why each step is there.
 */
import { withoutFrame } from "./frame.js";
import { greatestOf, like, mapRows, resized, roundEven, sumOf } from "./image.js";
import { otsu, piecesOf } from "./segmentation.js";

const [MIN_SIDE, WORKING_SIDE, MIN_CONTRAST, MIN_SIGNAL, EDGE_SHARE] = [8, 256, 0.12, 4, 0.75];
const [MIN_BORDER, MIN_SHARE] = [0.75, 0.05];

const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/**
 * The ink, 0 for the ground and 1 for a stroke; null if none stands out.
 * @param grey an image, 0 for black to 255 for white
 */
export function inkOfPicture(grey) {
  if (Math.min(grey.width, grey.height) < MIN_SIDE) return null;
  const scale = Math.min(1, WORKING_SIDE / Math.max(grey.width, grey.height));
  const side = (length) => Math.max(1, roundEven(scale * length));
  const image = withoutFrame(resized(grey, side(grey.width), side(grey.height)));
  const [low, high] = [-greatestOf(image.data.map((value) => -value)), greatestOf(image.data)];
  if (low < high && image.data.every((value) => value === low || value === high)) {
    return inkOfTwo(like(image, image.data.map((value) => Number(value === low))));
  }
  const dark = inkIsLighter(image) ? like(image, image.data.map((value) => 255 - value)) : image;
  const ground = groundOf(dark);
  const lack = dark.data.map((value, i) => clamp(1 - value / Math.max(ground[i], 1), 0, 1));
  const ink = contrasted(lack);
  return ink && like(image, ink);
}

/** The ink of a picture of two values, of which `dark` has 1 for the darker one. */
function inkOfTwo(dark) {
  const { width, height, data } = dark;
  const light = like(dark, data.map((value) => 1 - value));
  const isBorder = (i) =>
    i % width === 0 || i % width === width - 1 || i < width || i >= width * (height - 1);
  const border = data.filter((_, i) => isBorder(i));
  const share = sumOf(border) / border.length;
  if (share <= 1 - MIN_BORDER || share >= MIN_BORDER) return share < 0.5 ? dark : light;
  const [nDark, nLight] = [countOf(dark), countOf(light)];
  const isRarer = 2 * sumOf(data) <= data.length;
  return nDark < nLight || (nDark === nLight && isRarer) ? dark : light;
}

/** How many pieces of a mask are not much smaller than the largest. */
function countOf(mask) {
  const sizes = piecesOf(mask).map(({ places }) => places.length);
  return sizes.filter((size) => size >= MIN_SHARE * greatestOf(sizes)).length;
}

/** Whether deviations from the plane of the border are mainly to the light side. */
function inkIsLighter({ width, height, data }) {
  const pointOf = (value, i) => {
    const [x, y] = [i % width, Math.floor(i / width)];
    return [1, (2 * x) / (width - 1) - 1, (2 * y) / (height - 1) - 1, value];
  };
  const margin = Math.max(1, Math.floor(Math.min(width, height) / 12));
  const isInner = (i, side) => i >= margin && i < side - margin;
  const points = Array.from(data, pointOf);
  const border = points.filter(
    (_, i) => !(isInner(i % width, width) && isInner(Math.floor(i / width), height)),
  );
  const slopes = planeThrough(border);
  const skew = points.reduce((sum, point) => sum + deviation(point, slopes) ** 5, 0);
  return skew > 0;
}

/** How far a point [1, x, y, value] is above a plane. */
const deviation = ([, x, y, value], [a, b, c]) => value - a - b * x - c * y;

/** The plane [a, b, c] that fits points with the least absolute deviations. */
function planeThrough(points) {
  let slopes = [0, 0, 0];
  for (let round = 0; round < 20; round++) {
    const equations = Array.from({ length: 3 }, () => new Float64Array(4));
    for (const point of points) {
      const weight = round ? 1 / Math.max(Math.abs(deviation(point, slopes)), 1) : 1;
      equations.forEach((row, j) => {
        for (let k = 0; k < 4; k++) row[k] += weight * point[j] * point[k];
      });
    }
    slopes = solved(equations);
  }
  return slopes;
}

/** The solution of equations whose rows end with their right side, by Gauss and Jordan. */
function solved(equations) {
  equations.forEach((pivot, j) => {
    equations.forEach((row, k) => {
      const factor = row[j] / pivot[j];
      if (k !== j) row.forEach((_, i) => (row[i] -= factor * pivot[i]));
    });
  });
  return equations.map((row, j) => row.at(-1) / row[j]);
}

/** The light ground behind dark ink: the image blurred, then closed over 0.4 sides. */
function groundOf(image) {
  const window = Math.max(3, roundEven(0.4 * Math.min(image.width, image.height)));
  const blurred = smoothed(image, Math.max(image.width, image.height) / 128);
  const over = (some, first) => slidingMaximum(slidingMaximum(some, window, first), window, first);
  const dilated = over(blurred, 1 - window);
  const negative = like(dilated, dilated.data.map((value) => -value));
  return over(negative, 0).data.map((value) => -value);
}

/** The greatest value of each window of each row, the first of which begins at `first`. */
function slidingMaximum(image, window, first) {
  return mapRows(image, image.width - window + 1 - 2 * first, (row, x) => {
    const begin = Math.max(0, x + first);
    const end = Math.min(row.length, x + first + window);
    let most = row[begin];
    for (let i = begin + 1; i < end; i++) if (row[i] > most) most = row[i];
    return most;
  });
}

/** A Gaussian blur; the border continues outwards. */
function smoothed(image, sigma) {
  const radius = Math.floor(4 * sigma + 0.5);
  const powers = Array.from({ length: 2 * radius + 1 }, (_, i) =>
    Math.exp((-0.5 / sigma ** 2) * (i - radius) ** 2),
  );
  const weights = powers.map((power) => power / sumOf(powers));
  const place = (row, x) => clamp(x, 0, row.length - 1);
  const mean = (row, x) =>
    weights.reduce((sum, weight, i) => sum + weight * row[place(row, x + i - radius)], 0);
  return mapRows(mapRows(image, image.width, mean), image.height, mean);
}

/** Ink stretched so that the ground is 0 and a stroke is 1; null if it is pale. */
function contrasted(ink) {
  const threshold = otsu(ink);
  const ground = ink.filter((value) => value <= threshold);
  const stroke = ink.filter((value) => value > threshold);
  if (!ground.length || !stroke.length) return null;
  const level = quantile(ground, 0.5);
  const noise = 1.4826 * quantile(ground.map((value) => Math.abs(value - level)), 0.5);
  const contrast = quantile(stroke, EDGE_SHARE) - level;
  if (contrast < Math.max(MIN_CONTRAST, MIN_SIGNAL * noise)) return null;
  const low = level + Math.min(2 * noise, contrast / 2);
  return ink.map((value) => clamp((value - low) / (level + contrast - low), 0, 1));
}

/** The value below which a share of values is, between two of them if need be. */
function quantile(values, share) {
  const sorted = values.slice().sort();
  const place = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  const rest = place - Math.floor(place);
  return rest < 0.5 ? low + (high - low) * rest : high - (high - low) * (1 - rest);
}
