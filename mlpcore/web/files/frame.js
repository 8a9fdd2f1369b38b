/**
 * Pictures without lines at their sides: mlpcore/data/frame.py, step by step and with the same
 * numbers. That module says why each step is there.
 */
import { like, partOf, sumOf, transposed } from "./image.js";
import { otsu } from "./segmentation.js";

const [MIN_FRAMED, DEPTH, MIN_RUN, MIN_REMNANT, MAX_INK, MIN_REST] = [24, 0.2, 0.9, 0.5, 0.3, 0.25];

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
  let [inside, found] = [lines, [0, 0, 0, 0]];
  for (let round = 0; round < 2; round++) {
    const [top, bottom, left, right] = viewsOf(inside).map(depthOf);
    found = [found[0] + top, found[1] + bottom, found[2] + left, found[3] + right];
    inside = partOf(inside, left, top, inside.width - right, inside.height - bottom);
  }
  const isRuled = longestRuns(inside).some((run) => run >= MIN_RUN * inside.width);
  if (isRuled || !(inside.data.includes(1) || found.every(Boolean))) return image;
  const isStroke = viewsOf(inside).some((view, k) => {
    const beyond = view.data.subarray(-view.width * Math.max(1, Math.floor(view.height / 16)));
    const ink = sumOf(view.data.subarray(0, view.width)) / view.width;
    return found[k] && (ink > MAX_INK || (!found[k ^ 1] && beyond.includes(1)));
  });
  if (isStroke) return image;
  const [top, bottom, left, right] = found;
  return partOf(image, left, top, width - right, height - bottom);
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
