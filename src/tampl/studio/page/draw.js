// Pictures of microstates, one function for each kind.

import { colour, prepare } from "./theme.js";

const LEVELS = 65536;

function rgb(hex) {
  return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
}

function pixels({ context, width, height }, [rows, columns], colourOf) {
  const small = new OffscreenCanvas(columns, rows);
  const image = new ImageData(columns, rows);
  for (let k = 0; k < rows * columns; k++) {
    const [r, g, b] = colourOf(k);
    image.data.set([r, g, b, 255], 4 * k);
  }
  small.getContext("2d").putImageData(image, 0, 0);
  const place = fit(width, height, columns, rows);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, place.x, place.y, place.width, place.height);
}

// Where a picture of some proportions lies in a canvas.
export function fit(width, height, columns, rows) {
  const scale = Math.min(width / columns, height / rows);
  const [w, h] = [columns * scale, rows * scale];
  return { x: (width - w) / 2, y: (height - h) / 2, width: w, height: h, scale };
}

function lattice(view, state) {
  const table = Array.from({ length: 6 }, (_, k) => rgb(colour(`site-${k}`)));
  pixels(view, state.shape, (k) => table[state.values[k] % table.length]);
}

function image(view, state) {
  pixels(view, state.shape, (k) => [state.values[k], state.values[k], state.values[k]]);
}

function particles({ context, width, height }, state, kind) {
  const columns = state.shape[1];
  const size = Math.min(width, height);
  const radius = Math.max(0.8, (0.38 * size) / Math.sqrt(state.shape[0]));
  const [left, top] = [(width - size) / 2, (height - size) / 2];
  for (let type = 1; type <= kind.types; type++) {
    context.fillStyle = colour(type <= 2 ? `type-${type}` : `site-${type % 6}`);
    context.beginPath();
    for (let k = 0; k < state.shape[0]; k++) {
      if (state.values[columns * k + columns - 1] !== type) continue;
      const x = left + ((state.values[columns * k] + 0.5) / LEVELS) * size;
      const y = top + size - ((state.values[columns * k + 1] + 0.5) / LEVELS) * size;
      context.moveTo(x + radius, y);
      context.arc(x, y, radius, 0, 7);
    }
    context.fill();
  }
  context.strokeStyle = colour("line");
  context.strokeRect(left + 0.5, top + 0.5, size - 1, size - 1);
}

function chain({ context, width, height }, state) {
  const beads = state.shape[0];
  let reach = 3;
  for (let k = 0; k < beads; k++) {
    reach = Math.max(reach, Math.abs(state.values[3 * k]) + 1, Math.abs(state.values[3 * k + 1]) + 1);
  }
  const scale = Math.min(width, height) / (2 * reach);
  const order = Array.from({ length: beads }, (_, k) => k).sort((a, b) => state.values[3 * a + 2] - state.values[3 * b + 2]);
  context.fillStyle = colour("bead");
  context.strokeStyle = colour("paper");
  context.lineWidth = Math.min(1, scale / 5);
  for (const k of order) {
    context.beginPath();
    context.arc(width / 2 + scale * state.values[3 * k], height / 2 - scale * state.values[3 * k + 1], Math.max(0.5 * scale, 0.9), 0, 7);
    context.fill();
    if (scale > 2) context.stroke();
  }
}

function curve({ context, width, height }, state) {
  const values = Array.from(state.values, Number);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const y = (v) => height - 6 - ((v - low) / (high - low || 1)) * (height - 12);
  const x = (k) => 6 + (k / Math.max(1, values.length - 1)) * (width - 12);
  context.strokeStyle = colour("ink");
  context.lineWidth = 1.5;
  context.beginPath();
  values.forEach((v, k) => context.lineTo(x(k), y(v)));
  context.stroke();
  if (values.length > 32) return;
  context.fillStyle = colour("ink");
  values.forEach((v, k) => context.fillRect(x(k) - 2, y(v) - 2, 4, 4));
}

const KINDS = { lattice, image, particles, chain };

export function drawState(canvas, state, kind) {
  const view = prepare(canvas);
  if (state) (KINDS[kind.kind] ?? curve)(view, state, kind);
  return view;
}
