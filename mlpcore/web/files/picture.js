/** The ink of a picture, by a plain threshold. `mlpcore predict` does better in uneven light. */

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
  context.fillStyle = "gray"; // behind transparent pictures, of dark or of light ink
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0, width, height);
  const picture = context.getImageData(0, 0, width, height);
  const dark = Float32Array.from({ length: width * height }, (_, i) => {
    const [red, green, blue] = picture.data.subarray(4 * i, 4 * i + 3);
    return 255 - 0.299 * red - 0.587 * green - 0.114 * blue;
  });
  const threshold = (dark.reduce((a, b) => Math.min(a, b)) + dark.reduce((a, b) => Math.max(a, b))) / 2;
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

const meanOf = (values) => values.reduce((a, b) => a + b, 0) / Math.max(values.length, 1);
