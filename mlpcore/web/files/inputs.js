/** From MNIST's pictures to inputs, as mlpcore/data/scaling.py and mlpcore/data/width.py. */
import { greatestOf, mapRows, roundEven, sumOf, transposed } from "./image.js";

export const [PIXELS, IMAGE] = [28, 29]; // sides of MNIST's picture and of a network's image
const [UNIT, THRESHOLD, MAX_STRETCH] = [2 ** 20, 0.25, 1.5];

const square = (side, data) => ({ width: side, height: side, data });

/** The image, 29 x 29 in [-1, 1], of a picture of 28 x 28 grey values: linear between pixels. */
export function imageOf(pixels) {
  const signed = Float32Array.from(pixels, (value) => Math.fround(value / 127.5) - 1);
  const between = (row, x) => {
    const place = x * (PIXELS - 1);
    const low = Math.floor(place / (IMAGE - 1));
    const share = Math.fround((place % (IMAGE - 1)) / (IMAGE - 1));
    const step = Math.fround(row[Math.min(low + 1, PIXELS - 1)] - row[low]);
    return Math.fround(Math.fround(step * share) + row[low]);
  };
  const taller = mapRows(transposed(square(PIXELS, signed)), IMAGE, between);
  return Float32Array.from(transposed(mapRows(taller, IMAGE, between)).data);
}

/** What a network sees of an image: its own scale first, then its width, then its range. */
export function inputsOf(image, { scale: [factor, summand], width, unit }) {
  const scaled = image.map((value) => factor * value + summand);
  const normalised = width === null ? scaled : normaliseWidth(scaled, width);
  return unit ? normalised.map((value) => Math.fround(value + 1) / 2) : normalised;
}

/** The ink, 0 to 1, that inputs show. */
export const inkOf = (inputs, { unit }) => (unit ? inputs : inputs.map((x) => (x + 1) / 2));

/** Where a profile, linear between pixels, first exceeds a value. */
function firstCrossing(profile, least) {
  const inner = Math.max(0, profile.findIndex((value) => value > least));
  const [high, low] = [profile[inner], inner ? profile[inner - 1] : 0];
  return inner - (high - least) / (high > least ? high - low : 1);
}

function boxOf(profile, least) {
  const end = profile.length - 1 - firstCrossing(profile.slice().reverse(), least);
  return [firstCrossing(profile, least), end];
}

/** For each result the sources [first, weights] around its own, weighted by a tent. */
function tents(mass, [begin, end], stretch) {
  const side = mass.length;
  const [centre, margin] = [(side - 1) / 2, THRESHOLD - 1];
  const total = sumOf(mass);
  const moment = mass.reduce((sum, each, i) => sum + each * i, 0);
  const middle = total > 0 ? moment / total : centre;
  const [toBegin, toEnd] = [stretch * (begin - middle), stretch * (end - middle)];
  let target = centre + Math.max(0, margin - (centre + toBegin));
  target -= Math.max(0, target + toEnd - (side - 1 - margin));
  const slope = Math.min(stretch, 1);
  return Array.from({ length: side }, (_, pixel) => {
    const source = middle + (pixel - target) / stretch;
    const reach = Math.ceil(1 / slope) + 1;
    const first = Math.floor(source) - reach;
    const weights = Array.from({ length: 2 * reach + 2 }, (_, i) => {
      const distance = Math.abs((first + i) * (slope * UNIT) - source * (slope * UNIT));
      return roundEven(Math.max(0, UNIT - distance));
    });
    return [first, weights];
  });
}

/** An image in [-1, 1] with its ink brought to a width, and its mass to the centre. */
export function normaliseWidth(image, width) {
  const side = Math.sqrt(image.length);
  const ink = square(side, Float64Array.from(image, (x) => roundEven(Math.max(x + 1, 0) * UNIT)));
  const turned = transposed(ink);
  const least = THRESHOLD * greatestOf(ink.data);
  const [high, wide] = [ink, turned].map((lines) => profileOf(lines, greatestOf));
  const [rowMass, columnMass] = [ink, turned].map((lines) => profileOf(lines, sumOf));
  const box = boxOf(wide, least);
  const stretch = Math.min(width / (box[1] - box[0]), MAX_STRETCH);
  const centred = mapRows(turned, side, meanOf(tents(rowMass, boxOf(high, least), 1)));
  const result = mapRows(centred, side, meanOf(tents(columnMass, box, stretch)));
  return Float32Array.from(transposed(result).data, (value) => value / UNIT - 1);
}

/** A number for each row of an image. */
const profileOf = (image, numberOf) =>
  Array.from({ length: image.height }, (_, y) =>
    numberOf(image.data.subarray(y * image.width, (y + 1) * image.width)),
  );

/** The mean of a row around the sources of a place. */
const meanOf = (sources) => (row, place) => {
  const [first, weights] = sources[place];
  const sum = weights.reduce((total, weight, i) => total + weight * (row[first + i] ?? 0), 0);
  return roundEven(sum / Math.max(1, sumOf(weights)));
};
