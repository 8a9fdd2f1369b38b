/** Networks in float32, and committees: the mean of their outputs. */

const [A, B] = [1.7159, 0.6666]; // y(a) = A tanh(B a)

/** The bytes of a text in base64. */
function bytesOf(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** The number that 16 bits stand for (IEEE 754, binary16). */
function fromHalf(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
}

/** Numbers in base64, as float32. */
export function decode(text, precision = "float32") {
  const { buffer } = bytesOf(text);
  return precision === "float16"
    ? Float32Array.from(new Uint16Array(buffer), fromHalf)
    : new Float32Array(buffer);
}

/** Weights (outputs, inputs) and biases of each layer, from one array of all of them. */
export function layersOf(sizes, values) {
  let place = 0;
  const next = (n) => values.subarray(place, (place += n));
  return sizes.slice(1).map((size, i) => ({
    weights: next(size * sizes[i]),
    biases: next(size),
  }));
}

/** The sums a = W x + b of a layer. Inputs of 0 are left out. */
function sums({ weights, biases }, x) {
  const places = Int32Array.from(x.keys()).filter((k) => x[k] !== 0);
  return Float32Array.from(biases, (bias, j) => {
    const row = j * x.length;
    let sum = bias;
    for (let k = 0; k < places.length; k++) sum += weights[row + places[k]] * x[places[k]];
    return sum;
  });
}

function softmax(a) {
  const most = a.reduce((x, y) => Math.max(x, y));
  const powers = Float64Array.from(a, (each) => Math.exp(each - most));
  const total = powers.reduce((x, y) => x + y);
  return Float32Array.from(powers, (each) => each / total);
}

const scaledTanh = (a) => a.map((each) => A * Math.tanh(B * each));
const rectified = (a) => a.map((each) => Math.max(each, 0));

/** The functions of hidden neurons, by the names of mlpcore.network.activation. */
const ACTIVATIONS = { "tanh": scaledTanh, "relu": rectified };

/** The states of all layers, from the first hidden layer to the outputs. */
export function states(network, inputs) {
  const hidden = ACTIVATIONS[network.activation];
  const last = network.loss === "cross-entropy" ? softmax : scaledTanh;
  let x = inputs;
  return network.layers.map((layer, i) => {
    x = (i === network.layers.length - 1 ? last : hidden)(sums(layer, x));
    return x;
  });
}

/** The distribution that is nearest to outputs near 1 and -1, as mlpcore.evaluation has it. */
function probabilitiesOf(outputs) {
  const points = Float64Array.from(outputs, (y) => (y + 1) / 2);
  let excess = -1;
  const constants = points.slice().sort().reverse().map((point, i) => (excess += point) / (i + 1));
  const constant = Math.max(...constants);
  return points.map((point) => Math.max(point - constant, 0));
}

/** The mean outputs of networks; of their probabilities if their losses differ. */
export function meanOutputs(networks, outputs) {
  const mixed = new Set(networks.map(({ loss }) => loss)).size > 1;
  const convert = (y, i) => (mixed && networks[i].loss === "squared" ? probabilitiesOf(y) : y);
  const converted = outputs.map(convert);
  return Float64Array.from(
    outputs[0],
    (_, k) => converted.reduce((sum, y) => sum + y[k], 0) / outputs.length,
  );
}

/** The classes from the greatest output to the least; of equal ones the lower comes first. */
export function ranking(outputs) {
  return Array.from(outputs.keys()).sort((i, j) => outputs[j] - outputs[i] || i - j);
}
