// What really happens: an exact simulation as it comes, or what followed a test state.

import { decode, row } from "./arrays.js";
import { drawState } from "./draw.js";
import { Refusal, ask, stream } from "./server.js";
import { onTheme } from "./theme.js";

const RATE = 14; // frames shown in a second

// Trajectories as they come; what is not there yet is missing at the end.
export class Truth {
  constructor() {
    this.members = [];
    this.frames = new Map();
    this.every = 1;
    this.seconds = 0;
    this.total = 0;
  }

  add(event) {
    event.macrostates.forEach((path, k) => {
      const known = (this.members[event.member + k] ??= []);
      path.forEach((y, t) => (known[event.first + t] = y));
    });
    this.seconds += event.seconds;
    if (event.microstates) {
      const stack = decode(event.microstates);
      for (let k = 0; k < stack.shape[0]; k++) this.frames.set(event.microstates.first + k * this.every, row(stack, k));
    }
  }

  // Mean over the members that have come so far, one list of observables for each frame.
  mean() {
    const longest = Math.max(0, ...this.members.map((path) => path.length));
    return Array.from({ length: longest }, (_, t) => {
      const there = this.members.filter((path) => path.length > t);
      return there[0][t].map((_, j) => there.reduce((sum, path) => sum + path[t][j], 0) / there.length);
    });
  }
}

// RMSE of the means, shares inside the bands, and the RMSE that a perfect model would have.
export function score(answer, truth, scale) {
  const mean = truth.mean();
  const frames = Math.min(mean.length, answer.mean.length);
  if (frames < 2) return null;
  let [squares, floor, count, checked] = [0, 0, 0, 0];
  const inside = [0, 0, 0];
  for (let t = 1; t < frames; t++) {
    const there = truth.members.filter((path) => path.length > t);
    for (let j = 0; j < scale.length; j++) {
      squares += ((answer.mean[t][j] - mean[t][j]) / scale[j]) ** 2;
      count++;
      for (const path of there) {
        checked++;
        [[2, 4], [1, 5], [0, 6]].forEach(([low, high], k) => {
          if (path[t][j] >= answer.quantiles[low][t][j] && path[t][j] <= answer.quantiles[high][t][j]) inside[k]++;
        });
      }
      if (there.length > 1) {
        const variance = there.reduce((sum, path) => sum + (path[t][j] - mean[t][j]) ** 2, 0) / (there.length - 1);
        floor += (variance / scale[j] ** 2) * (1 / there.length + 1 / answer.members);
      }
    }
  }
  return {
    rmse: Math.sqrt(squares / count),
    floor: truth.members.length > 1 ? Math.sqrt(floor / count) : null,
    shares: inside.map((n) => n / checked),
  };
}

export class TruthPanel {
  constructor(exhibit, onChange) {
    const find = (id) => document.getElementById(id);
    Object.assign(this, { exhibit, onChange, truth: null, running: null, played: 0, playing: false, dirty: false });
    this.canvas = find("film");
    this.button = find("simulate");
    this.slider = find("frame");
    this.output = find("frame-value");
    this.clock = find("clock");
    this.progress = find("progress");
    this.follow = find("follow");
    find("follow-label").hidden = !exhibit.simulates;
    this.button.textContent = exhibit.simulates ? "Simulate" : "Play";
    this.button.addEventListener("click", () => (this.running || this.playing ? this.stop() : this.start()));
    this.slider.addEventListener("input", () => {
      this.playing = false;
      this.label();
      this.showFrame(Number(this.slider.value));
    });
    this.initial = null;
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    onTheme(() => this.redraw());
  }

  // The initial state is another one: what was simulated is of no use.
  reset(state, { test = null, done = true } = {}) {
    this.halt();
    this.truth = null;
    this.test = test;
    this.initial = state;
    this.played = 0;
    this.slider.value = 0;
    this.slider.disabled = true;
    const own = this.exhibit.simulates;
    this.progress.textContent = own
      ? `An exact simulation of the same state: one trajectory to watch, then ${this.exhibit.members} in all.`
      : test === null ? "There is no simulator. Choose a test state to see what followed it." : "";
    this.button.disabled = !own && test === null;
    this.label();
    this.redraw();
    this.onChange();
    if (!own && test !== null) this.start();
    else if (own && this.follow.checked && done) this.start();
  }

  label() {
    const busy = this.running || this.playing;
    const idle = this.exhibit.simulates ? (this.truth ? "Simulate again" : "Simulate") : "Play";
    this.button.textContent = busy ? "Stop" : idle;
    this.button.setAttribute("aria-pressed", String(Boolean(busy)));
  }

  halt() {
    this.running?.abort();
    this.running = null;
    this.playing = false;
  }

  stop() {
    this.halt();
    this.say();
    this.label();
  }

  async start() {
    this.halt();
    const mine = new AbortController();
    this.running = mine;
    this.truth = new Truth();
    this.played = 0;
    this.playing = true;
    this.label();
    this.progress.textContent = this.exhibit.simulates ? "simulating the first trajectory …" : "loading …";
    this.animate();
    try {
      if (this.exhibit.simulates) await this.simulate(mine);
      else await this.replay(mine);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (mine === this.running) this.halt();
      this.progress.textContent = error instanceof Refusal ? error.message : "The server does not answer.";
      this.label();
      return;
    }
    if (mine !== this.running) return;
    this.running = null;
    this.say();
    this.label();
  }

  async simulate(mine) {
    const body = { state: this.exhibit.encodeState(), members: this.exhibit.members, seed: (Math.random() * 2 ** 31) | 0 };
    await stream("/api/simulation", body, mine.signal, (event) => {
      if (mine !== this.running) return;
      if (event.kind === "begin") {
        this.truth.every = event.every;
        this.truth.total = event.members;
      } else if (event.kind === "piece") {
        this.truth.add(event);
        this.arrived();
      }
    });
  }

  async replay(mine) {
    const future = await ask(`/api/states/test/${this.test}/future`, undefined, mine.signal);
    this.truth.every = future.every;
    this.truth.total = future.macrostates.length;
    const shown = future.microstates && { ...future.microstates, first: 0 };
    this.truth.add({ member: 0, first: 0, macrostates: future.macrostates, microstates: shown, seconds: 0 });
    if (!shown) this.playing = false;
    this.arrived();
  }

  arrived() {
    this.slider.disabled = this.truth.frames.size < 2;
    this.slider.max = Math.max(1, ...this.truth.frames.keys());
    this.slider.step = this.truth.every;
    this.say();
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => {
      this.dirty = false;
      this.onChange();
    });
  }

  say() {
    if (!this.truth) return;
    const whole = this.truth.members.filter((path) => path.length >= this.exhibit.frames).length;
    const held = this.exhibit.simulates ? "simulated" : "held-out";
    const part = !whole && this.truth.members.length ? ` (the first one until frame ${this.truth.members[0].length - 1})` : "";
    this.progress.textContent = `${whole} of ${this.truth.total} ${held} trajectories${part}`;
  }

  animate() {
    let before = performance.now();
    const step = (now) => {
      if (!this.playing || !this.truth) return;
      const last = Math.max(0, ...this.truth.frames.keys());
      // A film lasts a few seconds, however many frames it has.
      const pace = Math.max(RATE, (this.exhibit.frames - 1) / 12);
      this.played = Math.min(last, this.played + ((now - before) / 1000) * pace);
      before = now;
      const frame = Math.floor(this.played / this.truth.every) * this.truth.every;
      if (frame !== Number(this.slider.value)) this.showFrame(frame);
      if (last >= this.exhibit.frames - this.truth.every && this.played >= last) {
        this.playing = false;
        this.label();
      } else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  showFrame(frame) {
    this.slider.value = frame;
    this.redraw();
    this.onChange();
  }

  // The frame on show, or null before there is one.
  get frame() {
    return this.truth && this.truth.frames.size ? Number(this.slider.value) : null;
  }

  redraw() {
    const frame = this.frame ?? 0;
    const time = `${Number((frame * this.exhibit.interval).toPrecision(6))}`;
    this.output.textContent = time;
    this.slider.setAttribute("aria-valuetext", `time ${time}`);
    this.clock.textContent = this.truth?.frames.size ? `t = ${time} ${this.exhibit.time_unit}` : "";
    drawState(this.canvas, this.truth?.frames.get(frame) ?? this.initial, this.exhibit.microstate);
  }
}
