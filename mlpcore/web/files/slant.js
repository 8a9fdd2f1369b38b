/** Slanted digits, turned back by half of their slant, as mlpcore/inference/slant.py. */
import { deform } from "./deformation.js";
import { sumOf } from "./image.js";

const SHARE = 0.5;

/** An image in [-1, 1], turned about the middle until its ink leans half as much. */
export function turnedBack(image) {
  const side = Math.sqrt(image.length);
  const ink = Array.from(image, (value) => value + 1);
  const mass = Math.max(sumOf(ink), 1e-9);
  const meanOf = (valueOf) =>
    sumOf(ink.map((each, i) => each * valueOf(i % side, Math.floor(i / side)))) / mass;
  const [middle, centre] = [meanOf((x, y) => y), meanOf((x) => x)];
  const product = meanOf((x, y) => (x - centre) * (y - middle));
  const angle = SHARE * Math.atan2(product, meanOf((x, y) => (y - middle) ** 2));
  const [cosine, sine] = [Math.cos(angle), Math.sin(angle)].map(Math.fround);
  const still = new Float32Array(image.length);
  return deform(image, { dx: still, dy: still, matrix: [cosine, sine, -sine, cosine] });
}
