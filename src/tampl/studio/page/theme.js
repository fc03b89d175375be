// Light and dark, and the colours of the style sheet for those who draw on a canvas.

const root = document.documentElement;
const wish = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];
let colours = new Map();

function read() {
  try {
    return localStorage.getItem("tampl-theme");
  } catch {
    return null;
  }
}

function apply() {
  root.dataset.theme = read() ?? (wish.matches ? "dark" : "light");
  colours = new Map();
  for (const listener of listeners) listener();
}

export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(root).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}

export function withAlpha(hex, alpha) {
  return hex + Math.round(255 * alpha).toString(16).padStart(2, "0");
}

export function onTheme(listener) {
  listeners.push(listener);
}

export function startTheme(button) {
  wish.addEventListener("change", apply);
  button.addEventListener("click", () => {
    const next = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("tampl-theme", next);
    } catch {
      root.dataset.theme = next;
    }
    apply();
  });
  apply();
}

// A canvas as sharp as the screen; returns its context in units of the page.
export function prepare(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}
