/** Strokes on a square of side 1, painted as smooth curves. */

/** Paints strokes in black on a square canvas. */
export function paint(context, strokes, side) {
  context.lineCap = context.lineJoin = "round";
  for (const { width, points } of strokes) {
    context.lineWidth = side * width;
    context.beginPath();
    context.moveTo(side * points[0][0], side * points[0][1]);
    points.forEach((point, i) => {
      const next = points[i + 1] ?? point;
      const middle = [(point[0] + next[0]) / 2, (point[1] + next[1]) / 2];
      context.quadraticCurveTo(...[...point, ...middle].map((x) => side * x));
    });
    context.stroke();
  }
}

/** A user's drawing on a canvas. */
export class Drawing {
  strokes = [];
  #cleared = []; // the strokes that `undo` brings back
  #background = null; // a picture in place of strokes
  #pointer = null; // the one that draws

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => number} penWidth of the next stroke, as a share of the side
   * @param {(isDone: boolean) => void} changed called after each change, of a stroke or its end
   */
  constructor(canvas, penWidth, changed) {
    Object.assign(this, { canvas, penWidth, changed });
    canvas.addEventListener("pointerdown", (event) => this.#begin(event));
    canvas.addEventListener("pointermove", (event) => this.#go(event));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => this.#end(event));
    }
    new ResizeObserver(() => this.#show()).observe(canvas);
  }

  /** Takes the last stroke away, also while it is being drawn, or brings cleared ones back. */
  undo() {
    const left = this.strokes.length ? this.strokes.slice(0, -1) : this.#cleared.splice(0);
    this.showPicture(null);
    this.strokes = left;
    this.#update(true);
  }

  clear() {
    if (this.strokes.length) this.#cleared = this.strokes;
    this.showPicture(null);
    this.#update(true);
  }

  /** Shows a picture, on a canvas, in place of strokes; the next stroke begins a drawing again. */
  showPicture(picture) {
    this.strokes = [];
    this.#pointer = null;
    this.#background = picture;
    this.#show();
  }

  #point({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    return [(clientX - box.left) / box.width, (clientY - box.top) / box.height];
  }

  #begin(event) {
    if (this.#pointer !== null || event.button !== 0) return;
    this.#pointer = event.pointerId;
    this.canvas.setPointerCapture(event.pointerId);
    this.#background = null;
    this.#cleared = [];
    this.strokes.push({ width: this.penWidth(), points: [this.#point(event)] });
    this.#update(false);
  }

  #go(event) {
    if (event.pointerId !== this.#pointer) return;
    const events = event.getCoalescedEvents?.() ?? [];
    const points = (events.length ? events : [event]).map((each) => this.#point(each));
    this.strokes.at(-1).points.push(...points);
    this.#update(false);
  }

  #end(event) {
    if (event.pointerId !== this.#pointer) return;
    this.#pointer = null;
    this.#update(true);
  }

  #update(isDone) {
    this.#show();
    this.changed(isDone);
  }

  #show() {
    const { canvas } = this;
    const side = Math.round(canvas.clientWidth * devicePixelRatio);
    canvas.width = canvas.height = side; // which clears it
    const context = canvas.getContext("2d");
    if (this.#background) context.drawImage(this.#background, 0, 0, side, side);
    paint(context, this.strokes, side);
  }
}
