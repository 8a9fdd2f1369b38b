/**
 * The paper's deformation as in cpu_simd/deformation.c: the same seed, epoch and number of an image
 * give the same image. Sums are rounded to float32 after each product, as a fused multiply-add
 * rounds them.
 */
import { mapRows, transposed } from "./image.js";
import { AFFINE, NOISE_X, NOISE_Y, philox4x32, toUniform } from "./philox.js";

const GRID = 10;
const [PAPER_RADIUS, GREATEST_PAPER_SIGMA] = [10, 6];
const { fround } = Math;

/** The weights, float32, of a truncated Gaussian. They sum to 1. */
function gaussianTaps(sigma) {
  const radius = sigma <= GREATEST_PAPER_SIGMA ? PAPER_RADIUS : Math.floor(4 * sigma + 0.5);
  const taps = Array.from({ length: 2 * radius + 1 }, (_, i) => {
    const offset = i - radius;
    return sigma === 0 ? Number(offset === 0) : Math.exp(-0.5 * (offset / sigma) ** 2);
  });
  const sum = taps.reduce((a, b) => a + b);
  return Float32Array.from(taps, (tap) => tap / sum);
}

/** The random matrix [xx, xy, yx, yy] from target to source: a scaling, then a turn or a shear. */
function affineMap({ beta, gamma }, seed, epoch, number) {
  const drawn = philox4x32([number, 0, epoch, AFFINE], seed).map(toUniform);
  const angle = ((beta * Math.PI) / 180) * drawn[0];
  const shears = drawn[1] < 0;
  const [scaleX, scaleY] = [1 + (gamma / 100) * drawn[2], 1 + (gamma / 100) * drawn[3]];
  const cosine = shears ? 1 : Math.cos(angle);
  const sine = shears ? 0 : Math.sin(angle);
  const shear = shears ? Math.tan(angle) : 0;
  return [cosine / scaleX, (sine - shear) / scaleX, -sine / scaleY, cosine / scaleY].map(fround);
}

/** Displacement noise for one image: `size` rows and columns of its grid of 10 x 10 images. */
function noise(side, size, seed, epoch, number, purpose) {
  const [grid, tile] = [Math.floor(number / GRID ** 2), number % GRID ** 2];
  const [top, left] = [Math.floor(tile / GRID) * side, (tile % GRID) * side];
  const data = new Float32Array(size * size);
  for (let group = top >> 2; 4 * group < top + size; group++) {
    for (let x = 0; x < size; x++) {
      const words = philox4x32([(group << 16) + left + x, grid, epoch, purpose], seed);
      words.forEach((word, k) => {
        const y = 4 * group + k - top;
        if (y >= 0 && y < size) data[y * size + x] = fround(fround(word | 0) * 2 ** -31);
      });
    }
  }
  return { width: size, height: size, data };
}

/** Displacements of one image in pixels: alpha times the noise, smoothed by columns, then by rows. */
function field(cells, side, taps, alpha) {
  const by = (weights) => (row, x) =>
    weights.reduce((sum, weight, i) => fround(weight * row[x + i] + sum), 0);
  const middle = mapRows(transposed(cells), side, by(taps));
  const scaled = taps.map((tap) => fround(alpha) * tap);
  return transposed(mapRows(middle, side, by(scaled))).data;
}

/** Where the pixels of an image come from: two fields of displacements and a matrix. */
export function drawMap(parameters, side, seed, epoch, number = 0) {
  const taps = gaussianTaps(parameters.sigma);
  const size = side + taps.length - 1;
  const [dx, dy] = [NOISE_X, NOISE_Y].map((purpose) =>
    field(noise(side, size, seed, epoch, number, purpose), side, taps, parameters.alpha),
  );
  return { dx, dy, matrix: affineMap(parameters, seed, epoch, number) };
}

/**
 * A deformed image.
 * @param {Float32Array} image side x side pixels
 * @param {number} background the value outside
 */
export function deform(image, { dx, dy, matrix }, background) {
  const side = Math.sqrt(image.length);
  const pitch = side + 3; // a pixel of background above and left, two below and right
  const padded = new Float32Array(pitch * pitch).fill(background);
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
