/**
 * Pictures without lines at their sides: mlpcore/data/frame.py, step by step and with the same
 * numbers. That module says why each step is there.
 */
import { like, partOf, sumOf, transposed } from "./image.js";
import { otsu, piecesOf } from "./segmentation.js";

const [MIN_FRAMED, DEPTH, MIN_RUN, MIN_REMNANT, MAX_INK, MIN_REST] = [24, 0.2, 0.9, 0.5, 0.3, 0.25];
const MIN_RULES = 3;

/** The part of an image, 0 to 255, that is inside lines along its sides. */
export function withoutFrame(image) {
  const { width, height, data } = image;
  if (Math.min(width, height) < MIN_FRAMED) return image;
  const threshold = 255 * otsu(data.map((value) => value / 255));
  const dark = like(image, Float64Array.from(data, (value) => value <= threshold));
  const [columns, rows] = [width, height].map((side) => Math.floor(DEPTH * side));
  const middle = partOf(dark, columns, rows, width - columns, height - rows).data;
  const isLight = 2 * sumOf(middle) < middle.length;
  const lines = isLight ? dark : like(dark, dark.data.map((value) => 1 - value));
  if (2 * sumOf(lines.data) >= data.length) return image;
  const rules = rulesOf(lines);
  if (rules.includes(true)) return withoutRows(image, rules);
  let [inside, found] = [lines, [0, 0, 0, 0]];
  for (let round = 0; round < 2; round++) {
    const [top, bottom, left, right] = viewsOf(inside).map(depthOf);
    found = [found[0] + top, found[1] + bottom, found[2] + left, found[3] + right];
    inside = partOf(inside, left, top, inside.width - right, inside.height - bottom);
  }
  const isCrossed = longestRuns(inside).some((run) => run >= MIN_RUN * inside.width);
  if (isCrossed || !(inside.data.includes(1) || found.every(Boolean))) return image;
  for (const piece of piecesOf(inside)) {
    if (!piece.inside) for (const i of piece.places) inside.data[i] = 0;
  }
  const isStroke = viewsOf(inside).some((view, k) => {
    const beyond = view.data.subarray(-view.width * Math.max(1, Math.floor(view.height / 16)));
    const ink = sumOf(view.data.subarray(0, view.width)) / view.width;
    return found[k] && (ink > MAX_INK || (ink && beyond.includes(1) && !found[k ^ 1]));
  });
  if (isStroke) return image;
  const [top, bottom, left, right] = found;
  return partOf(image, left, top, width - right, height - bottom);
}

/** Which rows of lines are the rules of ruled paper, with their blur. */
function rulesOf(lines) {
  const { width, height, data } = lines;
  const ends = Array.from({ length: height }, (_, y) => [data[y * width], data[(y + 1) * width - 1]]);
  const across = longestRuns(lines).map((run, y) => run >= MIN_RUN * width && ends[y].every(Boolean));
  const rules = across.map((each, y) => each || Boolean(across[y - 1] || across[y + 1]));
  const isUpright = longestRuns(transposed(lines)).some((run) => run >= MIN_RUN * height);
  const isTouched = ends.some((each, y) => !rules[y] && each.some(Boolean));
  const isFew = across.filter((each, y) => each && !across[y - 1]).length < MIN_RULES;
  return isFew || isUpright || isTouched ? rules.fill(false) : rules;
}

/** An image whose rows are put between those above and below. */
function withoutRows(image, rows) {
  const { width, data } = image;
  const kept = [...rows.keys()].filter((y) => !rows[y]);
  const result = rows.flatMap((_, y) => {
    const above = kept.findLast((k) => k <= y) ?? kept[0];
    const below = kept.find((k) => k >= y) ?? kept.at(-1);
    const share = (y - above) / Math.max(below - above, 1);
    const [from, to] = [above, below].map((k) => data.subarray(k * width, (k + 1) * width));
    return Array.from(from, (value, x) => value + share * (to[x] - value));
  });
  return like(image, Float64Array.from(result));
}

/** An image with its top, its bottom, its left and its right side first, some of them mirrored. */
function viewsOf(image) {
  const turned = transposed(image);
  return [image, turned].flatMap((view) => [view, like(view, view.data.slice().reverse())]);
}

/** How many rows at the top belong to lines along the width, in the first fifth. */
function depthOf(lines) {
  const { width, height, data } = lines;
  const runs = longestRuns(lines).slice(0, Math.floor(DEPTH * height));
  const least = (y) => (y < Math.floor(height / 48) ? MIN_REMNANT : MIN_RUN);
  const begin = runs.findLastIndex((run, y) => run >= least(y) * width) + 1;
  if (!begin) return 0;
  const last = Math.min(begin + Math.max(2, Math.floor(height / 32)), height - 1);
  for (let y = begin; y <= last; y++) {
    const share = sumOf(data.subarray(y * width, (y + 1) * width)) / width;
    if (share < MIN_REST) return y + 1;
  }
  return 0;
}

/** The length of the longest run of 1 in each row. */
function longestRuns({ width, height, data }) {
  return Array.from({ length: height }, (_, y) => {
    let [run, longest] = [0, 0];
    for (let x = 0; x < width; x++) {
      run = data[y * width + x] ? run + 1 : 0;
      longest = Math.max(longest, run);
    }
    return longest;
  });
}
