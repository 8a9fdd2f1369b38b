/**
 * A picture of one digit in the format of MNIST's digits: mlpcore/data/digit.py step by step, with
 * the same numbers. That module says why each step is there.
 *
 * A grey image is { width, height, data }, 0 for black to 255 for white.
 */
import { PIXELS, roundEven } from "./inputs.js";

const [BOX, CENTRE, MIN_SIDE, WORKING_SIDE] = [20, 14, 8, 256];
const [MIN_CONTRAST, MIN_SIGNAL, EDGE, STROKE, EDGE_SHARE] = [0.12, 4, 0.35, 0.5, 75];
const [MIN_PIECE, MIN_DIGIT, MIN_HEIGHT, MAX_OVERLAP] = [0.05, 0.5, 0.5, 0.2];

/** Thrown for a picture that shows no digit. */
export class NoDigit extends Error {
  constructor() {
    super("No digit found: expected one that stands out from an even ground.");
  }
}

const like = (image, data) => ({ width: image.width, height: image.height, data });
const clamp = (x) => Math.min(Math.max(x, 0), 1);
const greatestOf = (values) => values.reduce((a, b) => Math.max(a, b));
const sumOf = (values) => values.reduce((a, b) => a + b, 0);

/**
 * The digit in a grey image.
 * @returns {{ pixels: Uint8Array, seen: number }} 28 x 28 pixels, and how many digits there seem
 *   to be side by side
 * @throws {NoDigit}
 */
export function findDigit(grey) {
  if (Math.min(grey.width, grey.height) < MIN_SIDE) throw new NoDigit();
  const { image, seen } = cropped(contrasted(inkIn(reduced(grey))));
  return { pixels: centred(fitted(image)), seen };
}

/** The share of the ground's light, 0 to 1, that each pixel lacks. */
function inkIn(image) {
  const plane = planeOf(image);
  let skew = 0;
  for (let i = 0; i < plane.length; i++) {
    const deviation = image.data[i] - plane[i];
    const square = deviation * deviation;
    skew += square * square * deviation;
  }
  const data = skew > 0 ? image.data.map((value) => 255 - value) : image.data;
  const ground = groundOf(like(image, data));
  return like(image, data.map((value, i) => clamp(1 - value / Math.max(ground[i], 1))));
}

/** The plane that fits the border with the least absolute deviations. */
function planeOf({ width, height, data }) {
  const margin = Math.max(1, Math.floor(Math.min(width, height) / 12));
  const [xs, ys] = [width, height].map((side) =>
    Float64Array.from({ length: side }, (_, i) => (2 * i) / (side - 1) - 1),
  );
  let slopes = [0, 0, 0];
  for (let round = 0; round < 20; round++) {
    let [n, x, y, xx, xy, yy, v, xv, yv] = new Float64Array(9);
    for (let j = 0; j < height; j++) {
      const isInner = j >= margin && j < height - margin;
      for (let i = 0; i < width; i++) {
        if (isInner && i === margin) i = width - margin;
        const value = data[j * width + i];
        const rest = value - slopes[0] - slopes[1] * xs[i] - slopes[2] * ys[j];
        const weight = round ? 1 / Math.max(Math.abs(rest), 1) : 1;
        n += weight;
        x += weight * xs[i];
        y += weight * ys[j];
        xx += weight * xs[i] * xs[i];
        xy += weight * xs[i] * ys[j];
        yy += weight * ys[j] * ys[j];
        v += weight * value;
        xv += weight * xs[i] * value;
        yv += weight * ys[j] * value;
      }
    }
    const next = solved([n, x, y], [x, xx, xy], [y, xy, yy], [v, xv, yv]);
    const change = Math.max(...next.map((slope, k) => Math.abs(slope - slopes[k])));
    slopes = next;
    if (change < 1e-9) break; // more rounds would change nothing
  }
  return data.map(
    (_, i) => slopes[0] + slopes[1] * xs[i % width] + slopes[2] * ys[(i - (i % width)) / width],
  );
}

/** The solution of three equations with these columns, by Cramer's rule. */
function solved(a, b, c, right) {
  const determinant = (p, q, r) =>
    p[0] * (q[1] * r[2] - q[2] * r[1]) -
    q[0] * (p[1] * r[2] - p[2] * r[1]) +
    r[0] * (p[1] * q[2] - p[2] * q[1]);
  const whole = determinant(a, b, c);
  const parts = [determinant(right, b, c), determinant(a, right, c), determinant(a, b, right)];
  return parts.map((part) => part / whole);
}

/** The light ground behind dark ink: the image blurred, then closed over 0.4 sides. */
function groundOf(image) {
  const window = Math.max(3, roundEven(0.4 * Math.min(image.width, image.height)));
  const blurred = smoothed(image, Math.max(image.width, image.height) / 128);
  const before = (window - 1) >> 1; // the greatest of [i - before, i + after], then the least back
  const after = window - 1 - before;
  const wide = padded(blurred, after); // as wide as the least back looks
  const lit = extremes(extremes(wide, before, after, 1), before, after, 1);
  const closed = extremes(extremes(lit, after, before, -1), after, before, -1);
  const { width, height } = image;
  const result = new Float64Array(width * height);
  for (let y = 0; y < height; y++) {
    const start = (y + after) * closed.width + after;
    result.set(closed.data.subarray(start, start + width), y * width);
  }
  return result;
}

function padded({ width, height, data }, margin) {
  const result = { width: width + 2 * margin, height: height + 2 * margin };
  result.data = new Float64Array(result.width * result.height);
  for (let y = 0; y < height; y++) {
    const row = data.subarray(y * width, (y + 1) * width);
    result.data.set(row, (y + margin) * result.width + margin);
  }
  return result;
}

/** The greatest (sign 1) or least (-1) of each row from i - before to i + after; transposed. */
function extremes({ width, height, data }, before, after, sign) {
  const result = new Float64Array(data.length);
  const queue = new Int32Array(width); // columns whose values fall
  for (let y = 0; y < height; y++) {
    const row = y * width;
    let first = 0;
    let last = 0;
    let next = 0;
    for (let x = 0; x < width; x++) {
      const end = Math.min(x + after + 1, width);
      for (; next < end; next++) {
        const value = sign * data[row + next];
        while (last > first && sign * data[row + queue[last - 1]] <= value) last--;
        queue[last++] = next;
      }
      while (queue[first] < x - before) first++;
      result[x * height + y] = data[row + queue[first]];
    }
  }
  return { width: height, height: width, data: result };
}

/** A Gaussian blur; the border continues outwards. */
function smoothed(image, sigma) {
  const radius = Math.floor(4 * sigma + 0.5);
  const powers = Array.from({ length: radius + 1 }, (_, k) => Math.exp((-0.5 / sigma ** 2) * k * k));
  const total = 2 * sumOf(powers) - powers[0];
  const weights = powers.map((each) => each / total);
  const rows = ({ width, height, data }) => {
    const result = new Float64Array(data.length);
    const line = new Float64Array(width + 2 * radius);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < line.length; x++) {
        line[x] = data[y * width + Math.min(Math.max(x - radius, 0), width - 1)];
      }
      for (let x = 0; x < width; x++) {
        const at = x + radius;
        let sum = weights[0] * line[at];
        for (let k = 1; k <= radius; k++) sum += weights[k] * (line[at - k] + line[at + k]);
        result[x * height + y] = sum;
      }
    }
    return { width: height, height: width, data: result };
  };
  return rows(rows(image));
}

/** The value below which a share of sorted values is, between two of them if need be. */
function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const [low, high] = [sorted[below], sorted[Math.min(below + 1, sorted.length - 1)]];
  const rest = place - below;
  return rest < 0.5 ? low + (high - low) * rest : high - (high - low) * (1 - rest);
}

/** The ink stretched so that the ground is 0 and a stroke is 1. */
function contrasted(ink) {
  const threshold = otsu(ink.data);
  const ground = ink.data.filter((value) => value <= threshold).sort();
  const stroke = ink.data.filter((value) => value > threshold).sort();
  if (!ground.length || !stroke.length) throw new NoDigit();
  const level = quantile(ground, 0.5);
  const noise = 1.4826 * quantile(ground.map((value) => Math.abs(value - level)).sort(), 0.5);
  const contrast = quantile(stroke, EDGE_SHARE / 100) - level;
  if (contrast < Math.max(MIN_CONTRAST, MIN_SIGNAL * noise)) throw new NoDigit();
  const low = level + Math.min(2 * noise, contrast / 2);
  return like(ink, ink.data.map((value) => clamp((value - low) / (level + contrast - low))));
}

/** The threshold that splits values from 0 to 1 into the two most distinct classes. */
function otsu(values) {
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

/** The ink cropped to its strokes, without specks of dirt; the number of digits side by side. */
function cropped(ink) {
  const pieces = piecesOf(ink);
  const most = pieces.reduce((a, { mass }) => Math.max(a, mass), 0);
  const isKept = ({ mass }) => mass >= MIN_PIECE * most && mass > 0;
  const kept = pieces.filter(isKept);
  const massOf = (some) => sumOf(some.map(({ mass }) => mass));
  if (massOf(kept) <= MIN_DIGIT * massOf(pieces)) throw new NoDigit();
  const clean = ink.data.slice();
  for (const { places } of pieces.filter((piece) => !isKept(piece))) {
    for (const i of places) clean[i] = 0;
  }
  const left = Math.min(...kept.map((piece) => piece.left));
  const right = Math.max(...kept.map((piece) => piece.right));
  const top = Math.min(...kept.map((piece) => piece.top));
  const bottom = Math.max(...kept.map((piece) => piece.bottom));
  const image = { width: right - left, height: bottom - top };
  image.data = new Float64Array(image.width * image.height);
  for (let y = top; y < bottom; y++) {
    const row = clean.subarray(y * ink.width + left, y * ink.width + right);
    image.data.set(row, (y - top) * image.width);
  }
  return { image, seen: sideBySide(kept) };
}

/** The pieces of ink whose pixels touch at edges or corners, each with its box and its mass. */
function piecesOf({ width, height, data }) {
  const free = Uint8Array.from(data, (value) => value > EDGE);
  const found = new Int32Array(data.length);
  const pieces = [];
  let begin = 0;
  for (let start = free.indexOf(1); start >= 0; start = free.indexOf(1, start)) {
    const piece = { mass: 0, left: width, right: 0, top: height, bottom: 0 };
    let end = begin;
    found[end++] = start;
    free[start] = 0;
    for (let k = begin; k < end; k++) {
      const x = found[k] % width;
      const y = (found[k] - x) / width;
      if (data[found[k]] > STROKE) piece.mass += data[found[k]];
      piece.left = Math.min(piece.left, x);
      piece.right = Math.max(piece.right, x + 1);
      piece.top = Math.min(piece.top, y);
      piece.bottom = Math.max(piece.bottom, y + 1);
      for (let ny = Math.max(y - 1, 0); ny <= Math.min(y + 1, height - 1); ny++) {
        for (let nx = Math.max(x - 1, 0); nx <= Math.min(x + 1, width - 1); nx++) {
          if (free[ny * width + nx]) found[end++] = ny * width + nx;
          free[ny * width + nx] = 0;
        }
      }
    }
    pieces.push({ ...piece, places: found.subarray(begin, end) });
    begin = end;
  }
  return pieces;
}

/** How many pieces that are about as high as the highest have columns of their own. */
function sideBySide(pieces) {
  const highest = greatestOf(pieces.map(({ top, bottom }) => bottom - top));
  const large = pieces.filter(({ top, bottom }) => bottom - top >= MIN_HEIGHT * highest);
  let [n, end] = [0, 0];
  for (const { left, right } of large.sort((a, b) => a.left - b.left)) {
    if (!n || left >= end - MAX_OVERLAP * (right - left)) n++;
    end = Math.max(end, right);
  }
  return n;
}

/** The ink scaled until its longer side has 20 pixels. */
function fitted(ink) {
  const longer = Math.max(ink.width, ink.height);
  const side = (length) => Math.max(1, roundEven((BOX * length) / longer));
  const image = resized(ink, side(ink.width), side(ink.height));
  const most = Math.max(greatestOf(image.data), 1e-9);
  return like(image, image.data.map((value) => value / most));
}

/** The ink in MNIST's picture, its centre of mass as near to the middle as it fits. */
function centred({ width, height, data }) {
  let [total, momentX, momentY] = [0, 0, 0];
  data.forEach((value, i) => {
    total += value;
    momentX += value * (i % width);
    momentY += value * Math.floor(i / width);
  });
  const corner = (middle, side) =>
    Math.min(Math.max(Math.floor(CENTRE - middle + 0.5), 0), PIXELS - side);
  const [left, top] = [corner(momentX / total, width), corner(momentY / total, height)];
  const result = new Uint8Array(PIXELS * PIXELS);
  data.forEach((value, i) => {
    const place = (top + Math.floor(i / width)) * PIXELS + left + (i % width);
    result[place] = roundEven(255 * value);
  });
  return result;
}

function reduced(image) {
  const scale = Math.min(1, WORKING_SIDE / Math.max(image.width, image.height));
  const side = (length) => Math.max(1, roundEven(scale * length));
  return resized(image, side(image.width), side(image.height));
}

/** An image of another size: the mean of the pixels that one of the result covers, by a tent. */
function resized(image, width, height) {
  const single = like(image, Float32Array.from(image.data));
  const wide = transposedRows(single, width);
  const { data } = transposedRows(wide, height);
  return { width, height, data: Float64Array.from(data) };
}

/** Rows of another length, in float32, as Pillow computes them; transposed. */
function transposedRows({ width, height, data }, length) {
  const scale = width / length;
  const support = Math.max(scale, 1);
  const result = new Float32Array(length * height);
  for (let t = 0; t < length; t++) {
    const centre = (t + 0.5) * scale;
    const first = width === length ? t : Math.max(0, Math.trunc(centre - support + 0.5));
    const end = width === length ? t + 1 : Math.min(width, Math.trunc(centre + support + 0.5));
    const tent = Float64Array.from({ length: end - first }, (_, i) =>
      Math.max(0, 1 - Math.abs((i + first - centre + 0.5) / support)),
    );
    const total = sumOf(tent);
    const weights = tent.map((weight) => weight / total);
    for (let y = 0; y < height; y++) {
      let sum = 0;
      for (let i = 0; i < weights.length; i++) sum += data[y * width + first + i] * weights[i];
      result[t * height + y] = sum;
    }
  }
  return { width: height, height: length, data: result };
}
