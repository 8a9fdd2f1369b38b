/** Strokes on a square of side 1: made by a pointer or by keys, painted as smooth curves. */

const STEP = 1 / 40; // of the arrow keys
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

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

/** What a user draws on a canvas. */
export class Drawing {
  strokes = [];
  #cleared = []; // the strokes that `undo` brings back
  #background = null; // a picture in place of strokes
  #pointer = null; // the one that draws
  #at = [0.5, 0.5]; // where the keys draw
  #isDown = false; // whether they do

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => number} penWidth of the next stroke, as a share of the side
   * @param {(isDone: boolean) => void} changed called after each change, of a stroke or its end
   */
  constructor(canvas, penWidth, changed) {
    Object.assign(this, { canvas, penWidth, changed });
    const listen = (name, listener) => canvas.addEventListener(name, listener);
    listen("pointerdown", (event) => this.#begin(event));
    listen("pointermove", (event) => this.#go(event));
    listen("pointerup", (event) => this.#end(event));
    listen("pointercancel", (event) => this.#end(event));
    listen("keydown", (event) => this.#press(event));
    listen("focus", () => this.#show());
    listen("blur", () => {
      this.#isDown = false;
      this.#show();
    });
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
    this.#isDown = false;
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
    this.#start(this.#point(event));
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

  /** Arrows move the pen, and the space bar puts it down or lifts it. */
  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " ") {
      this.#isDown = !this.#isDown;
      if (this.#isDown) this.#start(this.#at);
    } else if (ARROWS[event.key]) {
      const inside = (x) => Math.min(Math.max(x, 0), 1);
      this.#at = this.#at.map((x, axis) => inside(x + STEP * ARROWS[event.key][axis]));
      if (this.#isDown) this.strokes.at(-1).points.push(this.#at);
    } else {
      return;
    }
    event.preventDefault();
    this.#update(!this.#isDown);
  }

  #start(point) {
    this.#background = null;
    this.#cleared = [];
    this.strokes.push({ width: this.penWidth(), points: [point] });
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
    if (canvas.matches(":focus-visible")) this.#showPen(context, side);
  }

  /** A ring where the keys draw, full while the pen is down. */
  #showPen(context, side) {
    context.beginPath();
    context.arc(side * this.#at[0], side * this.#at[1], side / 30, 0, 2 * Math.PI);
    for (const [color, width] of [["white", side / 60], ["black", side / 150]]) {
      context.strokeStyle = color;
      context.lineWidth = width;
      context.stroke();
    }
    if (this.#isDown) context.fill();
  }
}
