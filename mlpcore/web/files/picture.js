/** Pictures from files as brightness, as mlpcore/data/pictures.py. */

const REDUCED_SIDE = 1024;

/**
 * The brightness of a picture in a file or on the clipboard; null if the browser cannot decode it.
 * @param {Blob} blob
 */
export async function greyOf(blob) {
  const asItIs = { premultiplyAlpha: "none", colorSpaceConversion: "none" };
  const bitmap = await createImageBitmap(blob, asItIs).catch(() => null);
  if (!bitmap) return null;
  const step = Math.max(1, Math.floor(Math.max(bitmap.width, bitmap.height) / REDUCED_SIDE));
  const [width, height] = [bitmap.width, bitmap.height].map((side) => Math.ceil(side / step));
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  return brightnessOf(context.getImageData(0, 0, width, height));
}

/** The brightness of pixels in red, green, blue and opacity; something even is put behind them. */
function brightnessOf({ width, height, data }) {
  const n = width * height;
  const grey = new Float32Array(n);
  const opacity = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    const [red, green, blue] = [data[4 * i], data[4 * i + 1], data[4 * i + 2]];
    grey[i] = (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
    opacity[i] = data[4 * i + 3] / 255;
  }
  const behind = backdrop(grey, opacity);
  return { width, height, data: grey.map((x, i) => opacity[i] * x + (1 - opacity[i]) * behind) };
}

/** The brightness behind a picture: that of its paper, or unlike its ink. */
function backdrop(grey, opacity) {
  const opaque = grey.filter((_, i) => opacity[i] > 0.5);
  if (opaque.length > 0.5 * grey.length) return opaque.sort()[opaque.length >> 1];
  const ink = grey.reduce((sum, value, i) => sum + value * opacity[i], 0);
  return ink < 127.5 * opacity.reduce((a, b) => a + b) ? 255 : 0;
}
