// Inside a model: latent trajectories over the training states, losses, and the latent scale.

import { Chart } from "./chart.js";
import { Latest, Refusal, ask } from "./server.js";
import { colour, onTheme } from "./theme.js";

export class Inside {
  constructor(studio) {
    this.studio = studio;
    this.training = new Map();
    this.paths = null;
    this.choice = document.getElementById("inside-model");
    this.health = document.getElementById("health");
    const chart = (id, name) => new Chart(document.getElementById(id), { name });
    this.latent = chart("latent", "Latent trajectories of the forecast over the training states");
    this.losses = chart("losses", "Losses by epoch");
    this.scale = chart("scale", "Scale of the latent state by epoch");
    for (const model of studio.models) this.choice.add(new Option(model.name, model.number));
    this.choice.addEventListener("change", () => this.choose());
    this.asker = new Latest((signal) => this.trace(signal));
    onTheme(() => this.draw());
    // What is below the fold is not computed until it is seen.
    this.seen = false;
    new IntersectionObserver((entries) => {
      this.seen = entries.at(-1).isIntersecting;
      if (this.seen) this.update();
    }).observe(document.getElementById("inside"));
  }

  get model() {
    return this.studio.models[Number(this.choice.value)];
  }

  choose() {
    this.paths = null;
    this.update();
  }

  async update() {
    if (!this.seen || !this.studio.state) return;
    if (!this.training.has(this.model.number)) {
      const number = this.model.number;
      this.training.set(number, null);
      this.training.set(number, await ask(`/api/models/${number}/training`));
    }
    this.draw();
    if (this.training.get(this.model.number)?.cloud) this.asker.call();
  }

  async trace(signal) {
    const number = this.model.number;
    try {
      const found = await ask(`/api/models/${number}/latents`, this.studio.question(), signal);
      if (number === this.model.number) this.paths = found.paths;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.paths = null;
    }
    this.draw();
  }

  draw() {
    const log = this.training.get(this.model.number);
    if (!log) return;
    this.health.textContent = (log.cloud ? "" : "This model has no envelope, and so no cloud of training states. ") + log.health;
    this.drawLatent(log);
    const epochs = log.epochs.length ? [0, log.epochs.length + 1] : [0, 1];
    const inks = [0, 1, 2, 3, 4].map((k) => colour(`model-${k}`));
    const stages = Object.entries(log.losses);
    const validation = log.validation.map((v, k) => [log.epochs[k], v]).filter(([, v]) => v !== null);
    this.losses.set({
      x: epochs, log: true, label: "epoch",
      lines: stages.map(([, y], k) => ({ x: log.epochs, y, colour: inks[k % 5], width: 1.8 })),
      dots: [{ x: validation.map(([x]) => x), y: validation.map(([, y]) => y), colour: colour("ink"), size: 3 }],
    });
    const key = stages.map(([name], k) => [name, inks[k % 5]]).concat(validation.length ? [["validation RMSE", colour("ink")]] : []);
    this.losses.title.replaceChildren(...key.map(([name, ink]) => swatch(name, ink)));
    this.scale.set({
      x: epochs, label: "epoch", lower: 0,
      lines: [{ x: log.epochs, y: log.latent_std, colour: colour(`model-${this.model.number % 6}`), width: 1.8 }],
      shades: log.collapsed.flatMap((is, k) => (is ? [[log.epochs[k] - 0.5, log.epochs[k] + 0.5]] : [])),
    });
    this.scale.title.replaceChildren(swatch("mean standard deviation", colour(`model-${this.model.number % 6}`)));
    if (log.collapsed.some(Boolean)) this.scale.title.append(swatch("collapsed", colour("warn-line")));
  }

  drawLatent(log) {
    const cloud = log.cloud ?? [];
    const paths = this.paths ?? [];
    const points = [...cloud, ...paths.flat()];
    const extent = (k) => {
      const values = points.map((p) => p[k]).filter((v) => v !== null);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const room = 0.05 * (high - low || 1);
      return values.length ? [low - room, high + room] : [0, 1];
    };
    const ink = colour(`model-${this.model.number % 6}`);
    const column = (list, k) => list.map((p) => p[k]);
    this.latent.set({
      x: extent(0), y: extent(1), label: "first principal component",
      dots: [
        { x: column(cloud, 0), y: column(cloud, 1), colour: colour("cloud"), size: 2.2 },
        { x: column(paths.map((p) => p[0]), 0), y: column(paths.map((p) => p[0]), 1), colour: colour("ink"), size: 5 },
      ],
      lines: paths.map((p) => ({ x: column(p, 0), y: column(p, 1), colour: ink, width: 1, alpha: 0.55 })),
    });
    this.latent.title.replaceChildren(swatch("training states", colour("cloud")), swatch("forecast", ink), swatch("its start", colour("ink")));
  }
}

function swatch(name, ink) {
  const item = document.createElement("b");
  const dot = document.createElement("i");
  dot.style.setProperty("--swatch", ink);
  item.append(dot, name);
  return item;
}
