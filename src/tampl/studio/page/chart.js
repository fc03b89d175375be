// Curves and bands on a canvas, with axes, a cursor for pointer and keyboard, and a log axis.

import { colour, onTheme, prepare, withAlpha } from "./theme.js";

export function format(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

function decades(low, high) {
  const found = [];
  for (let k = Math.ceil(Math.log10(low) - 1e-9); k <= Math.log10(high) + 1e-9; k++) found.push(10 ** k);
  if (found.length >= 2) return found;
  return [...new Set(found.flatMap((d) => [d / 10, d / 5, d / 2, d, 2 * d, 5 * d]).concat([low, high]))]
    .filter((v) => v >= low && v <= high)
    .sort((a, b) => a - b);
}

// What a chart shows: {x: [low, high], label, y: [low, high] or nothing, log, bands: [{x, low, high,
// colour, alpha}], lines: [{x, y, colour, width, dash, alpha}], dots: [{x, y, colour, size}],
// shades: [[from, to]], lower, upper, playhead}.
export class Chart {
  constructor(parent, { name, onCursor } = {}) {
    this.root = document.createElement("div");
    this.root.className = "chart";
    this.title = document.createElement("div");
    this.title.className = "title";
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", name);
    this.root.append(this.title, this.canvas);
    parent.append(this.root);
    this.data = null;
    this.cursor = null;
    this.pending = false;
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    onTheme(() => this.redraw());
    if (onCursor) this.listen(onCursor);
  }

  set(data) {
    this.data = data;
    this.redraw();
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw(prepare(this.canvas));
    });
  }

  listen(onCursor) {
    this.canvas.tabIndex = 0;
    const at = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const [left, right] = this.span ?? [0, box.width];
      onCursor({ fraction: (event.clientX - box.left - left) / (right - left) });
    };
    this.canvas.addEventListener("pointermove", at);
    this.canvas.addEventListener("pointerdown", at);
    this.canvas.addEventListener("pointerleave", () => onCursor({ fraction: null }));
    this.canvas.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
      if (event.key === "Escape") onCursor({ fraction: null });
      else if (event.key in steps) onCursor({ step: steps[event.key] * (event.shiftKey ? 5 : 1), spoken: true });
      else return;
      event.preventDefault();
    });
  }

  range() {
    if (this.data.y && !this.data.log) return this.data.y;
    let [low, high] = [Infinity, -Infinity];
    const see = (values) => {
      for (const v of values) {
        if (v === null || !Number.isFinite(v) || (this.data.log && v <= 0)) continue;
        if (v < low) low = v;
        if (v > high) high = v;
      }
    };
    for (const band of this.data.bands ?? []) see(band.low), see(band.high);
    for (const line of this.data.lines ?? []) see(line.y);
    for (const dot of this.data.dots ?? []) see(dot.y);
    if (low > high) return this.data.log ? [0.1, 1] : [0, 1];
    if (this.data.log) {
      low = Math.max(low, high * 1e-5);
      return [low / 1.15, high * 1.15];
    }
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const room = 0.06 * (high - low);
    const { lower = null, upper = null } = this.data;
    let [from, to] = [low - room, high + room];
    // Where zero, or another limit, is near, it is the end of the axis.
    if (lower !== null && low - lower < 0.35 * (high - low)) from = lower - 0.02 * (high - low);
    if (upper !== null && upper - high < 0.12 * (high - low)) to = upper + 0.02 * (high - low);
    return [from, to];
  }

  draw({ context: c, width, height }) {
    if (!this.data || width < 40) return;
    const data = this.data;
    let [left, right, top, bottom] = [46, width - 8, 8, height - (data.label ? 34 : 22)];
    const [y0, y1] = this.range();
    const [x0, x1] = data.x;
    const scale = data.log ? Math.log : (v) => v;
    const yOf = (v) => {
      const u = data.log ? Math.max(v, y0) : v;
      return bottom - ((scale(u) - scale(y0)) / (scale(y1) - scale(y0))) * (bottom - top);
    };
    const xOf = (v) => left + ((v - x0) / (x1 - x0 || 1)) * (right - left);
    this.span = [left, right];
    const size = Math.max(11, Math.min(16, parseFloat(getComputedStyle(document.documentElement).fontSize) * 0.76));
    c.font = `${size}px system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif`;
    c.lineWidth = 1;
    c.strokeStyle = colour("grid");
    c.fillStyle = colour("soft");
    c.textAlign = "right";
    c.textBaseline = "middle";
    const yTicks = data.log ? decades(y0, y1) : ticks(y0, y1, Math.max(2, Math.floor((bottom - top) / 30)));
    for (const v of yTicks) {
      c.beginPath();
      c.moveTo(left, yOf(v));
      c.lineTo(right, yOf(v));
      c.stroke();
      c.fillText(format(v), left - 6, yOf(v));
    }
    c.textAlign = "center";
    c.textBaseline = "top";
    for (const v of ticks(x0, x1, Math.max(2, Math.floor((right - left) / 50)))) {
      c.beginPath();
      c.moveTo(xOf(v), top);
      c.lineTo(xOf(v), bottom);
      c.stroke();
      c.fillText(format(v), Math.min(xOf(v), right - 6), bottom + 5);
    }
    if (data.label) c.fillText(data.label, (left + right) / 2, bottom + 5 + 1.25 * size);
    c.save();
    c.beginPath();
    c.rect(left, top - 2, right - left + 1, bottom - top + 4);
    c.clip();
    for (const [from, to] of data.shades ?? []) {
      c.fillStyle = withAlpha(colour("warn-line"), 0.22);
      c.fillRect(xOf(from), top, xOf(to) - xOf(from), bottom - top);
    }
    for (const dots of data.dots ?? []) {
      c.fillStyle = dots.colour;
      dots.x.forEach((x, k) => {
        if (dots.y[k] === null) return;
        c.beginPath();
        c.arc(xOf(x), yOf(dots.y[k]), dots.size ?? 2, 0, 7);
        c.fill();
      });
    }
    for (const band of data.bands ?? []) {
      c.fillStyle = withAlpha(band.colour, band.alpha);
      c.beginPath();
      band.x.forEach((x, k) => c.lineTo(xOf(x), yOf(band.high[k])));
      for (let k = band.x.length - 1; k >= 0; k--) c.lineTo(xOf(band.x[k]), yOf(band.low[k]));
      c.fill();
    }
    c.lineJoin = "round";
    for (const line of data.lines ?? []) {
      c.strokeStyle = withAlpha(line.colour, line.alpha ?? 1);
      c.lineWidth = line.width ?? 2;
      c.setLineDash(line.dash ?? []);
      c.beginPath();
      let open = false;
      for (let k = 0; k < line.y.length; k++) {
        const v = line.y[k];
        if (v === null || v === undefined || !Number.isFinite(v)) open = false;
        else if (open) c.lineTo(xOf(line.x[k]), yOf(v));
        else c.moveTo(xOf(line.x[k]), yOf(v)), (open = true);
      }
      c.stroke();
    }
    c.setLineDash([]);
    const upright = (x, ink, w) => {
      c.strokeStyle = ink;
      c.lineWidth = w;
      c.beginPath();
      c.moveTo(xOf(x), top);
      c.lineTo(xOf(x), bottom);
      c.stroke();
    };
    if (data.playhead !== undefined && data.playhead !== null) upright(data.playhead, withAlpha(colour("ink"), 0.35), 2);
    if (this.cursor !== null) upright(this.cursor, colour("ink"), 1);
    c.restore();
  }
}
