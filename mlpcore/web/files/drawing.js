/** Strokes on a square of side 1: made by a pointer or by keys, painted as smooth curves. */

/** The steps of the arrow keys; the pressure of devices that measure none. */
const [STEP, USUAL_PRESSURE] = [1 / 40, 0.5];
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Paints strokes in black on a square canvas. */
export function paint(context, strokes, side) {
  context.lineCap = context.lineJoin = "round";
  for (const { width, points } of strokes) {
    let from = points[0];
    points.forEach((point, i) => {
      const next = points[i + 1] ?? point;
      const middle = [(point[0] + next[0]) / 2, (point[1] + next[1]) / 2];
      if (point[2] !== points[i - 1]?.[2]) {
        if (i) context.stroke(); // a path has one width
        context.lineWidth = side * width * (0.4 + 1.2 * point[2]);
        context.beginPath();
        context.moveTo(side * from[0], side * from[1]);
      }
      context.quadraticCurveTo(...[...point.slice(0, 2), ...middle].map((x) => side * x));
      from = middle;
    });
    context.stroke();
  }
}

/** What a user draws on a canvas. */
export class Drawing {
  strokes = [];
  #cleared = []; // the strokes that `undo` brings back
  #background = null; // a picture in place of strokes
  #pen = null; // the pointer that draws
  #at = [0.5, 0.5]; // where the keys draw
  #isDown = false;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => number} penWidth of the next stroke, as a share of the side
   * @param {(isDone: boolean) => void} changed called after each change, of a stroke or its end
   */
  constructor(canvas, penWidth, changed) {
    this.canvas = canvas;
    this.penWidth = penWidth;
    this.changed = changed;
    canvas.addEventListener("pointerdown", (event) => this.#begin(event));
    canvas.addEventListener("pointermove", (event) => this.#go(event));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => this.#end(event));
    }
    canvas.addEventListener("keydown", (event) => this.#press(event));
    canvas.addEventListener("blur", () => {
      this.#isDown = false;
      this.#show();
    });
    canvas.addEventListener("focus", () => this.#show());
    new ResizeObserver(() => this.#show()).observe(canvas);
  }

  /** Takes the last stroke away, also while it is being drawn, or brings cleared ones back. */
  undo() {
    this.#lift();
    this.#background = null;
    if (this.strokes.length) this.strokes.pop();
    else this.strokes = this.#cleared.splice(0);
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
    this.#lift();
    this.#background = picture;
    this.#show();
  }

  #lift() {
    this.#pen = null;
    this.#isDown = false;
  }

  #point(event) {
    const box = this.canvas.getBoundingClientRect();
    const pressure = event.pointerType === "pen" ? event.pressure : USUAL_PRESSURE;
    return [
      (event.clientX - box.left) / box.width,
      (event.clientY - box.top) / box.height,
      pressure,
    ];
  }

  #begin(event) {
    if (this.#pen !== null || event.button !== 0) return;
    this.#pen = event.pointerId;
    this.canvas.setPointerCapture(event.pointerId);
    this.#start(this.#point(event));
    this.#update(false);
  }

  #go(event) {
    if (event.pointerId !== this.#pen) return;
    const events = event.getCoalescedEvents?.() ?? [];
    const points = (events.length ? events : [event]).map((each) => this.#point(each));
    this.strokes.at(-1)?.points.push(...points);
    this.#update(false);
  }

  #end(event) {
    if (event.pointerId !== this.#pen) return;
    this.#pen = null;
    this.#update(true);
  }

  /** Arrows move the pen, and the space bar puts it down or lifts it. */
  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " ") {
      this.#isDown = !this.#isDown;
      if (this.#isDown) this.#start(this.#penPoint());
    } else if (ARROWS[event.key]) {
      const inside = (x) => Math.min(Math.max(x, 0), 1);
      this.#at = this.#at.map((x, axis) => inside(x + STEP * ARROWS[event.key][axis]));
      if (this.#isDown) this.strokes.at(-1)?.points.push(this.#penPoint());
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

  #penPoint() {
    return [...this.#at, USUAL_PRESSURE];
  }

  #update(isDone) {
    this.#show();
    this.changed(isDone);
  }

  #show() {
    const { canvas } = this;
    const side = Math.round(canvas.clientWidth * devicePixelRatio);
    if (canvas.width !== side) canvas.width = canvas.height = side;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, side, side);
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
    context.strokeStyle = "black";
  }
}
