/** The ink of a picture, by a plain threshold. `mlpcore predict` does better in uneven light. */

const BINS = 256;

/**
 * A picture in a file or on the clipboard, its ink as opacity on a square canvas.
 * @param {Blob} blob
 * @returns {?OffscreenCanvas} null if the browser cannot decode it
 */
export async function inkOfPicture(blob, side) {
  const bitmap = await createImageBitmap(blob).catch(() => null);
  if (!bitmap) return null;
  const scale = side / Math.max(bitmap.width, bitmap.height);
  const [width, height] = [bitmap.width, bitmap.height].map((n) => Math.ceil(scale * n));
  const canvas = new OffscreenCanvas(side, side);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  const picture = context.getImageData(0, 0, width, height);
  const dark = darknessOf(picture.data);
  const threshold = otsu(dark);
  const border = dark.filter((_, i) => i < width || i >= width * (height - 1));
  const isInverse = 2 * border.filter((value) => value > threshold).length > border.length;
  const meanWhere = (isDark) => meanOf(dark.filter((value) => value > threshold === isDark));
  const [ground, ink] = [meanWhere(isInverse), meanWhere(!isInverse)];
  dark.forEach((value, i) => {
    picture.data[4 * i + 3] = 255 * Math.min(Math.max((value - ground) / (ink - ground), 0), 1);
  });
  context.clearRect(0, 0, side, side);
  context.putImageData(picture, 0, 0);
  return canvas;
}

/** The darkness, 0 to 255, of pixels in red, green, blue and opacity, on paper unlike their ink. */
function darknessOf(data) {
  const pixels = Array.from({ length: data.length / 4 }, (_, i) => data.subarray(4 * i, 4 * i + 4));
  const brightness = pixels.map(([red, green, blue]) => 0.299 * red + 0.587 * green + 0.114 * blue);
  const isLight = meanOf(brightness.filter((_, i) => pixels[i][3] > 127)) > 127;
  const isOpaque = pixels.every(([, , , opacity]) => opacity > 127);
  const paper = isLight && !isOpaque ? 0 : 255;
  return Uint8ClampedArray.from(brightness, (value, i) => {
    const share = pixels[i][3] / 255;
    return 255 - share * value - (1 - share) * paper;
  });
}

/** The threshold that splits values from 0 to 255 into the two most distinct classes (Otsu, 1979). */
function otsu(values) {
  const counts = new Float64Array(BINS);
  for (const value of values) counts[value]++;
  const total = counts.reduce((sum, count, k) => sum + count * k, 0);
  let [below, sum, best, threshold] = [0, 0, 0, 0];
  counts.forEach((count, k) => {
    below += count;
    sum += count * k;
    const above = values.length - below;
    const between = below && above ? below * above * (sum / below - (total - sum) / above) ** 2 : 0;
    if (between > best) [best, threshold] = [between, k];
  });
  return threshold;
}

const meanOf = (values) => values.reduce((a, b) => a + b, 0) / Math.max(values.length, 1);
