/** Slanted digits, turned back by half of their slant and by all, as mlpcore/inference/slant.py. */
import { deform } from "./deformation.js";
import { sumOf } from "./image.js";

const SHARES = [0.5, 1];

/** An image in [-1, 1], turned about the middle by each share of its slant. */
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
  return SHARES.map((share) => {
    const [cosine, sine] = [Math.cos(share * slant), Math.sin(share * slant)].map(Math.fround);
    return deform(image, { dx: still, dy: still, matrix: [cosine, sine, -sine, cosine] });
  });
}
