/** Counter-based random numbers as in mlpcore/philox.py: Philox4x32-10 (Salmon et al., SC'11). */

export const [NOISE_X, NOISE_Y, AFFINE] = [1, 2, 3];

/** The high word of the product of two unsigned words. */
function highWord(a, b) {
  const [aLow, aHigh, bLow, bHigh] = [a & 0xffff, a >>> 16, b & 0xffff, b >>> 16];
  const first = aHigh * bLow + ((aLow * bLow) >>> 16);
  const second = aLow * bHigh + (first & 0xffff);
  return (aHigh * bHigh + (first >>> 16) + (second >>> 16)) >>> 0;
}

/**
 * The four random words of a counter of four words.
 * @param {number[]} counter
 * @param {number} seed a whole number, 0 to 2**53
 */
export function philox4x32([c0, c1, c2, c3], seed) {
  let [k0, k1] = [seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0];
  for (let round = 0; round < 10; round++) {
    const [high0, low0] = [highWord(c0, 0xd2511f53), Math.imul(c0, 0xd2511f53)];
    const [high1, low1] = [highWord(c2, 0xcd9e8d57), Math.imul(c2, 0xcd9e8d57)];
    c0 = (high1 ^ c1 ^ k0) >>> 0;
    c1 = low1 >>> 0;
    c2 = (high0 ^ c3 ^ k1) >>> 0;
    c3 = low0 >>> 0;
    k0 = (k0 + 0x9e3779b9) >>> 0;
    k1 = (k1 + 0xbb67ae85) >>> 0;
  }
  return [c0, c1, c2, c3];
}

/** A word as a number in [-1, 1): as a signed integer over 2**31. */
export const toUniform = (word) => (word | 0) / 2 ** 31;
