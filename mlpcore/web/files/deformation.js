/**
 * The paper's deformation as in cpu_simd/deformation.c: the same seed and epoch give the same first
 * image of a set. Sums are rounded to float32 after each product, as a fused multiply-add rounds
 * them.
 */
import { IMAGE, mapRows, sumOf, transposed } from "./image.js";
import { AFFINE, NOISE_X, NOISE_Y, philox4x32, toUniform } from "./philox.js";

const [PAPER_RADIUS, GREATEST_PAPER_SIGMA, SIGMA_IN_CELLS] = [10, 6, 3];
const { fround } = Math;

/** The weights, float32, of a truncated Gaussian for each pixel of a cell. They sum to 1. */
function gaussianTaps(sigma) {
  const isPapers = sigma <= GREATEST_PAPER_SIGMA;
  const cell = isPapers ? 1 : Math.floor(sigma / SIGMA_IN_CELLS);
  const radius = isPapers ? PAPER_RADIUS : Math.floor((4 * sigma) / cell + 0.5);
  return Array.from({ length: cell }, (_, phase) => {
    const place = (phase - (cell - 1) / 2) / cell;
    const taps = Array.from({ length: 2 * radius + 1 }, (_, i) => {
      const offset = i - radius - place;
      return sigma === 0 ? Number(offset === 0) : Math.exp(-0.5 * ((offset * cell) / sigma) ** 2);
    });
    const sum = sumOf(taps);
    return Float32Array.from(taps, (tap) => tap / sum);
  });
}

/** The random matrix [xx, xy, yx, yy] from target to source: a scaling, then a turn or a shear. */
function affineMap({ beta, gamma }, seed, epoch) {
  const drawn = philox4x32([0, 0, epoch, AFFINE], seed).map(toUniform);
  const angle = ((beta * Math.PI) / 180) * drawn[0];
  const shears = drawn[1] < 0;
  const [scaleX, scaleY] = [1 + (gamma / 100) * drawn[2], 1 + (gamma / 100) * drawn[3]];
  const cosine = shears ? 1 : Math.cos(angle);
  const sine = shears ? 0 : Math.sin(angle);
  const shear = shears ? Math.tan(angle) : 0;
  return [cosine / scaleX, (sine - shear) / scaleX, -sine / scaleY, cosine / scaleY].map(fround);
}

/** Displacement noise: `size` rows and columns. */
function noise(size, seed, epoch, purpose) {
  const rows = Array.from({ length: size }, () => new Float32Array(size));
  for (let group = 0; 4 * group < size; group++) {
    for (let x = 0; x < size; x++) {
      philox4x32([(group << 16) + x, 0, epoch, purpose], seed).forEach((word, k) => {
        const row = rows[4 * group + k];
        if (row) row[x] = fround(fround(word | 0) * 2 ** -31);
      });
    }
  }
  return rows;
}

/**
 * Displacements in pixels: alpha times the noise, smoothed. Columns come first where each pixel has
 * a number of noise, and otherwise rows.
 */
function field(cells, taps, alpha) {
  const by = (phases) => (row, x) => {
    const first = Math.floor(x / phases.length);
    const weights = phases[x % phases.length];
    return weights.reduce((sum, weight, i) => fround(weight * row[first + i] + sum), 0);
  };
  const scaled = taps.map((weights) => weights.map((tap) => fround(alpha / taps.length) * tap));
  const turned = taps.length > 1 ? (rows) => rows : transposed;
  const rows = turned(mapRows(mapRows(turned(cells), IMAGE, by(taps)), IMAGE, by(scaled)));
  return rows.flatMap((row) => [...row]);
}

/** The sources of the pixels of an image: two fields of displacements and a matrix. */
export function drawMap(parameters, seed, epoch) {
  const taps = gaussianTaps(parameters.sigma);
  const size = Math.floor((IMAGE + taps.length - 2) / taps.length) + taps[0].length;
  const [dx, dy] = [NOISE_X, NOISE_Y].map((purpose) =>
    field(noise(size, seed, epoch, purpose), taps, parameters.alpha),
  );
  return { dx, dy, matrix: affineMap(parameters, seed, epoch) };
}

/** The colour around an image: the median of its border, as in mlpcore/deformation/values.py. */
function borderValue(image, side) {
  const along = [...Array(side).keys()];
  const sides = [(i) => i, (i) => side * (side - 1) + i, (i) => side * i, (i) => side * (i + 1) - 1];
  const border = sides.flatMap((at) => along.map((i) => image[at(i)]));
  return border.sort((a, b) => a - b)[2 * side];
}

/**
 * A deformed image.
 * @param {Float32Array} image side x side pixels
 */
export function deform(image, { dx, dy, matrix }) {
  const side = Math.sqrt(image.length);
  const pitch = side + 3; // a pixel of background above and left, two below and right
  const padded = new Float32Array(pitch * pitch).fill(borderValue(image, side));
  for (let y = 0; y < side; y++) {
    padded.set(image.subarray(y * side, (y + 1) * side), (y + 1) * pitch + 1);
  }
  const fused = (a, b, c) => fround(a * b + c);
  const centre = (side - 1) / 2;
  const within = (x) => Math.min(Math.max(fround(x + 1), 0), side + 1);
  return Float32Array.from(image, (_, i) => {
    const [column, row] = [(i % side) - centre, Math.floor(i / side) - centre];
    const x = within(fused(matrix[0], column, fused(matrix[1], row, fround(dx[i] + centre))));
    const y = within(fused(matrix[2], column, fused(matrix[3], row, fround(dy[i] + centre))));
    const at = Math.floor(y) * pitch + Math.floor(x);
    const [fx, fy] = [fround(x - Math.floor(x)), fround(y - Math.floor(y))];
    const between = (from, to, share) => fused(share, fround(to - from), from);
    const upper = between(padded[at], padded[at + 1], fx);
    const lower = between(padded[at + pitch], padded[at + pitch + 1], fx);
    return between(upper, lower, fy);
  });
}

/**
 * An image in [-1, 1], turned back about the middle by half of its slant and by all, as
 * mlpcore/inference/slant.py.
 */
export function turnedBack(image) {
  const side = Math.sqrt(image.length);
  const ink = Array.from(image, (value) => value + 1);
  const mass = Math.max(sumOf(ink), 1e-9);
  const meanOf = (valueOf) =>
    sumOf(ink.map((each, i) => each * valueOf(i % side, Math.floor(i / side)))) / mass;
  const [middle, centre] = [meanOf((x, y) => y), meanOf((x) => x)];
  const product = meanOf((x, y) => (x - centre) * (y - middle));
  const slant = Math.atan2(product, meanOf((x, y) => (y - middle) ** 2));
  const still = new Float32Array(image.length);
  return [0.5, 1].map((share) => {
    const [cosine, sine] = [Math.cos(share * slant), Math.sin(share * slant)].map(fround);
    return deform(image, { dx: still, dy: still, matrix: [cosine, sine, -sine, cosine] });
  });
}
