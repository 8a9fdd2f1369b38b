/**
 * A digit in the format of MNIST's: mlpcore/data/digit.py, step by step and with the same
 * numbers. That module says why each step is there.
 */
import { greatestOf, like, partOf, resized, roundEven, sumOf } from "./image.js";
import { PIXELS } from "./inputs.js";
import { piecesOf } from "./segmentation.js";

const [BOX, CENTRE, EDGE, STROKE, MIN_PIECE, MIN_DIGIT] = [20, 14, 0.35, 0.5, 0.05, 0.5];
const [MIN_HEIGHT, MAX_OVERLAP] = [0.5, 0.2];

/**
 * The digit in an image of ink, 0 for the ground to 1.
 * @returns {?{ pixels: Uint8Array, seen: number }} 28 x 28 pixels, and how many digits there seem
 *   to be side by side; null if there is none
 */
export function digitOf(ink) {
  const massOfPiece = ({ places, inside }) =>
    inside ? places.reduce((sum, i) => sum + (ink.data[i] > STROKE ? ink.data[i] : 0), 0) : 0;
  const strong = like(ink, Uint8Array.from(ink.data, (value) => value > EDGE));
  const pieces = piecesOf(strong).map((each) => ({ ...each, mass: massOfPiece(each) }));
  const most = Math.max(0, ...pieces.map(({ mass }) => mass));
  const isKept = ({ mass }) => mass >= MIN_PIECE * most && mass > 0;
  const kept = pieces.filter(isKept);
  const massOf = (some) => sumOf(some.map(({ mass }) => mass));
  if (massOf(kept) <= MIN_DIGIT * massOf(pieces)) return null;
  const clean = ink.data.slice();
  for (const piece of pieces) if (!isKept(piece)) for (const i of piece.places) clean[i] = 0;
  const pixels = centred(fitted(cropped(like(ink, clean), kept)));
  return { pixels, seen: sideBySide(kept) };
}

/** The part of an image that has some pieces. */
function cropped(image, pieces) {
  const [left, top] = ["left", "top"].map((side) => Math.min(...pieces.map((p) => p[side])));
  const [right, bottom] = ["right", "bottom"].map((side) => greatestOf(pieces.map((p) => p[side])));
  return partOf(image, left, top, right, bottom);
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
  const total = sumOf(data);
  const corner = (placeOf, side) => {
    const moment = data.reduce((sum, value, i) => sum + value * placeOf(i), 0);
    return Math.min(Math.max(Math.floor(CENTRE - moment / total + 0.5), 0), PIXELS - side);
  };
  const left = corner((i) => i % width, width);
  const top = corner((i) => Math.floor(i / width), height);
  const result = new Uint8Array(PIXELS * PIXELS);
  data.forEach((value, i) => {
    const place = (top + Math.floor(i / width)) * PIXELS + left + (i % width);
    result[place] = roundEven(255 * value);
  });
  return result;
}
