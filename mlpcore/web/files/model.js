/** The networks in the page, and their answers for an image of 29 x 29 pixels in [-1, 1]. */
import { deform, turnedBack } from "./deformation.js";
import { inputsOf, sumOf } from "./image.js";
import { decode, layersOf, meanOutputs, states } from "./network.js";

const content = JSON.parse(document.getElementById("data").textContent);

export const classes = content.classes;

/** Each with its name, layers, activation, loss, and scale and range of inputs. */
export const networks = content.networks.map((network) => withLayers(network, content.precision));

function withLayers(network, precision) {
  return { ...network, layers: layersOf(network.sizes, decode(network.weights, precision)) };
}

const rejector = content.rejector && withLayers(content.rejector, "float16");

/** Whether an image probably shows no digit, as mlpcore/inference/rejector.py. */
export function isDoubtful(image) {
  if (!rejector) return false;
  return 1 - states(rejector, inputsOf(image, rejector)).at(-1).at(-1) < rejector.threshold;
}

/** Whether outputs are probabilities; else they are near 1 and -1. */
export const givesProbabilities = networks.some(({ loss }) => loss === "cross-entropy");

/** The test digits that are misread: images, labels, guesses, their numbers; null without data. */
export const wrong = content.wrong && { ...content.wrong, images: decode(content.wrong.images) };

/** The parameters of the deformation in training, where the sliders begin. */
export const usualDeformation = content.deformation;

/**
 * What the networks say.
 * @param {object} [map] of `drawMap`, by which their inputs are deformed first
 * @returns {{ inputs: Float32Array[], states: Float32Array[][], outputs: Float64Array }} the
 *   inputs and the states of each network, and the mean of their outputs
 */
export function answer(image, map) {
  const inputs = networks.map((network) => {
    const plain = inputsOf(image, network);
    return map ? deform(plain, map) : plain;
  });
  const all = networks.map((network, i) => states(network, inputs[i]));
  const outputs = meanOutputs(networks, all.map((each) => each.at(-1)));
  return { inputs, states: all, outputs };
}

/** As `answer` of what a picture shows; of a digit, outputs are the mean with those of it turned. */
export function answerOfDigit(image) {
  if (!rejector) return answer(image);
  const forms = [image, ...turnedBack(image)].map((each) => answer(each));
  const meanOf = (i) => sumOf(forms.map((form) => form.outputs[i])) / forms.length;
  return { ...forms[0], outputs: forms[0].outputs.map((_, i) => meanOf(i)) };
}
