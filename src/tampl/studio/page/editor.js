// The initial state: a lattice to paint on, and a picture for all other kinds.

import { copy } from "./arrays.js";
import { drawState, fit } from "./draw.js";
import { colour, onTheme } from "./theme.js";

const STEPS = 60;

export class Editor {
  constructor(canvas, kind, onChange) {
    Object.assign(this, { canvas, kind, onChange, state: null, brush: 1, size: 3, past: [], cursor: null });
    this.paints = kind.kind === "lattice";
    canvas.classList.toggle("paints", this.paints);
    if (this.paints) this.listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
    onTheme(() => this.draw());
  }

  // Takes another state; with `keep` the present one can be brought back by undo.
  show(state, { keep = false } = {}) {
    if (keep && this.state) this.remember();
    this.state = state;
    this.draw();
  }

  remember() {
    this.past.push(copy(this.state));
    if (this.past.length > STEPS) this.past.shift();
  }

  undo() {
    if (!this.past.length) return;
    this.state = this.past.pop();
    this.draw();
    this.onChange();
  }

  clear() {
    this.remember();
    this.state = copy(this.state);
    this.state.values.fill(0);
    this.draw();
    this.onChange();
  }

  draw() {
    const view = drawState(this.canvas, this.state, this.kind);
    if (!this.state || !this.cursor || document.activeElement !== this.canvas) return;
    const { x, y, scale } = this.place(view);
    const reach = this.size - 0.5;
    view.context.strokeStyle = colour("ink");
    view.context.lineWidth = 2;
    view.context.beginPath();
    view.context.arc(x + (this.cursor[1] + 0.5) * scale, y + (this.cursor[0] + 0.5) * scale, Math.max(reach * scale, 4), 0, 7);
    view.context.stroke();
  }

  place({ width, height }) {
    return fit(width, height, this.state.shape[1], this.state.shape[0]);
  }

  paint([row, column]) {
    const [rows, columns] = this.state.shape;
    const reach = this.size - 0.5;
    for (let r = Math.ceil(row - reach); r <= row + reach; r++) {
      for (let c = Math.ceil(column - reach); c <= column + reach; c++) {
        if ((r - row) ** 2 + (c - column) ** 2 > reach * reach) continue;
        if (r < 0 || c < 0 || r >= rows || c >= columns) continue;
        this.state.values[r * columns + c] = this.brush;
      }
    }
  }

  // A stroke between two sites leaves no gaps.
  stroke(from, to) {
    const steps = Math.max(1, Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1])));
    for (let k = 0; k <= steps; k++) this.paint([0, 1].map((a) => Math.round(from[a] + ((to[a] - from[a]) * k) / steps)));
    this.draw();
    this.onChange();
  }

  site(event) {
    const box = this.canvas.getBoundingClientRect();
    const { x, y, scale } = this.place(box);
    return [Math.floor((event.clientY - box.top - y) / scale), Math.floor((event.clientX - box.left - x) / scale)];
  }

  listen() {
    let last = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      if (!this.state || event.button > 0) return;
      this.canvas.setPointerCapture(event.pointerId);
      this.cursor = null;
      this.remember();
      this.state = copy(this.state);
      last = this.site(event);
      this.stroke(last, last);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      const site = this.site(event);
      if (site[0] === last[0] && site[1] === last[1]) return;
      this.stroke(last, site);
      last = site;
    });
    const end = () => {
      if (last) this.onChange({ done: true });
      last = null;
    };
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
    this.canvas.addEventListener("blur", () => this.draw());
    this.canvas.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    if (!this.state || (event.altKey && !event.ctrlKey)) return;
    const [rows, columns] = this.state.shape;
    const step = event.shiftKey ? 5 : 1;
    const moves = { ArrowUp: [-step, 0], ArrowDown: [step, 0], ArrowLeft: [0, -step], ArrowRight: [0, step] };
    if (event.key in moves) {
      const at = this.cursor ?? [Math.floor(rows / 2), Math.floor(columns / 2)];
      const wrap = (v, n) => ((v % n) + n) % n;
      this.cursor = [wrap(at[0] + moves[event.key][0], rows), wrap(at[1] + moves[event.key][1], columns)];
      this.draw();
    } else if (event.key === " " || event.key === "Enter") {
      this.cursor ??= [Math.floor(rows / 2), Math.floor(columns / 2)];
      this.remember();
      this.state = copy(this.state);
      this.stroke(this.cursor, this.cursor);
      this.onChange({ done: true });
    } else if (event.key.toLowerCase() === "z") {
      this.undo();
    } else return;
    event.preventDefault();
  }
}
