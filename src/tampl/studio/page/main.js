// The page: what is shown is kept in `studio`, and every part draws itself from it.

import { copy, decode, encode, save, toNpy } from "./arrays.js";
import { Chart, format } from "./chart.js";
import { drawState } from "./draw.js";
import { Editor } from "./editor.js";
import { Inside } from "./inside.js";
import { Latest, Refusal, ask } from "./server.js";
import { colour, onTheme, startTheme } from "./theme.js";
import { TruthPanel, score } from "./truth.js";

const find = (id) => document.getElementById(id);
const MEMBERS = 64;
const THUMBS = 6;
// Dashes of closures; their colour is that of text, because they are no forecasts.
const DASHES = [[7, 4], [2, 3], [8, 3, 2, 3], [12, 4]];

const studio = { models: [], state: null, y: null, test: null, closures: [], cursor: null, log: false };

startTheme(find("theme"));
start().catch((error) => complain(error));

async function start() {
  const exhibit = await ask("/api/exhibit");
  Object.assign(studio, { exhibit });
  exhibit.members = MEMBERS;
  exhibit.encodeState = () => encode(studio.state);
  studio.question = () => ({ state: encode(studio.state), y0: studio.y, members: MEMBERS });
  studio.times = Array.from({ length: exhibit.frames }, (_, t) => t * exhibit.interval);
  studio.models = exhibit.models.map((model) => {
    const mine = { ...model, on: true, answer: null, failure: null };
    mine.asker = new Latest((signal) => forecast(mine, signal));
    return mine;
  });
  find("subject").textContent = `${exhibit.system}: ${exhibit.microstate_in_words}`;
  studio.editor = new Editor(find("editor"), exhibit.microstate, paint);
  find("charts").style.setProperty("--count", exhibit.observables.length);
  studio.charts = exhibit.observables.map((o) => new Chart(find("charts"), { name: `Forecast of ${o.name}. Arrow keys read values.`, onCursor: read }));
  studio.truth = new TruthPanel(exhibit, () => drawForecast());
  studio.inside = new Inside(studio);
  studio.closer = new Latest(close);
  showModels();
  showTools();
  onTheme(() => drawForecast());
  if (exhibit.start) {
    take(exhibit.start);
    studio.drawn = exhibit.families.length > 0;
  }
  if (!exhibit.start) find("state-label").textContent = "upload one to begin";
  document.body.dataset.ready = "yes";
}

// ---------------------------------------------------------------- the initial state

function take({ state, y, label }, { test = null, keep = false } = {}) {
  complain(null);
  studio.state = decode(state);
  studio.y = y;
  studio.test = test;
  studio.drawn = false;
  find("state-label").textContent = label;
  studio.editor.show(copy(studio.state), { keep });
  changed(true);
}

// A stroke changes the microstate, of which the macrostate is then not known here.
function paint({ done = false } = {}) {
  if (!done) {
    studio.state = copy(studio.editor.state);
    studio.y = null;
    studio.test = null;
    studio.drawn = false;
    find("state-label").textContent = "painted";
    markThumbs(null);
  }
  changed(done);
}

function changed(done) {
  find("editor").setAttribute("aria-label", describeState());
  for (const model of studio.models) if (model.on) model.asker.call();
  if (studio.exhibit.closures.length) studio.closer.call();
  studio.truth.reset(studio.state, { test: studio.test, done });
  studio.inside.update();
}

function describeState() {
  const { microstate, microstate_in_words: words, state_names: names } = studio.exhibit;
  if (microstate.kind !== "lattice") return `Initial state, one of ${words}`;
  const counts = Array.from({ length: microstate.states }, () => 0);
  for (const v of studio.state.values) counts[v]++;
  const parts = counts.map((n, k) => `${Math.round((100 * n) / studio.state.values.length)} % ${names[k] ?? `state ${k}`}`);
  return `Initial state, a lattice to paint on: ${parts.join(", ")}`;
}

async function forecast(model, signal) {
  try {
    model.answer = await ask(`/api/models/${model.number}/forecast`, studio.question(), signal);
    model.failure = null;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    model.answer = null;
    model.failure = error instanceof Refusal ? error.message : "The server does not answer.";
  }
  drawForecast();
}

async function close(signal) {
  try {
    studio.closures = await ask("/api/closures", { state: encode(studio.state) }, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    studio.closures = [];
  }
  drawForecast();
}

function showModels() {
  find("models").replaceChildren(
    ...studio.models.map((model) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.title = model.summary;
      chip.style.setProperty("--swatch", `var(--model-${model.number % 6})`);
      chip.append(document.createElement("i"), model.name);
      chip.setAttribute("aria-pressed", "true");
      chip.addEventListener("click", () => {
        model.on = !model.on;
        chip.setAttribute("aria-pressed", String(model.on));
        if (model.on && studio.state) model.asker.call();
        drawForecast();
      });
      return chip;
    }),
  );
}

function showTools() {
  const { exhibit } = studio;
  if (exhibit.microstate.kind === "lattice") showBrush();
  showFamilies();
  if (exhibit.held_out) showTestStates();
  find("upload").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    try {
      if (file.size > 4e6) throw new Refusal(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB; a microstate has 4 MB at most`);
      take(await ask("/api/states/npy", file), { keep: true });
      find("state-label").textContent = file.name;
      markThumbs(null);
    } catch (error) {
      complain(error);
    }
  });
  find("download").addEventListener("click", () => save(toNpy(studio.state), "microstate.npy"));
  find("csv").addEventListener("click", () => save(new Blob([toCsv()], { type: "text/csv" }), "forecast.csv"));
  find("png").addEventListener("click", savePng);
  find("log").addEventListener("change", (event) => {
    studio.log = event.target.checked;
    drawForecast();
  });
}

function showBrush() {
  const { exhibit, editor } = studio;
  find("brush").hidden = false;
  find("editor-help").textContent = "Arrow keys move, space paints, digits choose what is painted, Z takes a stroke back.";
  const { states } = exhibit.microstate;
  const buttons = Array.from({ length: Math.min(states, 6) }, (_, k) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("role", "radio");
    button.style.setProperty("--swatch", `var(--site-${k % 6})`);
    button.append(document.createElement("i"), exhibit.state_names[k] ?? `state ${k}`);
    button.addEventListener("click", () => choose(k));
    return button;
  });
  const choose = (k) => {
    editor.brush = k;
    buttons.forEach((b, n) => {
      b.setAttribute("aria-checked", String(n === k));
      b.tabIndex = n === k ? 0 : -1;
    });
  };
  find("colours").replaceChildren(...buttons);
  find("colours").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    choose((editor.brush + step + buttons.length) % buttons.length);
    buttons[editor.brush].focus();
    event.preventDefault();
  });
  choose(1);
  find("editor").addEventListener("keydown", (event) => {
    const k = Number(event.key);
    if (/^\d$/.test(event.key) && k < buttons.length) choose(k);
  });
  const size = find("size");
  size.max = Math.max(3, Math.round(Math.min(...editor.kind.height ? [editor.kind.height, editor.kind.width] : [24]) / 4));
  size.addEventListener("input", () => {
    editor.size = Number(size.value);
    find("size-value").textContent = size.value;
    editor.draw();
  });
  editor.size = Number(size.value);
  find("undo").addEventListener("click", () => editor.undo());
  find("clear").addEventListener("click", () => editor.clear());
}

// ---------------------------------------------------------------- families and test states

function showFamilies() {
  const { families } = studio.exhibit;
  if (!families.length) return;
  find("families").hidden = false;
  const choice = find("family");
  for (const family of families) choice.add(new Option(family.name, family.name));
  choice.hidden = families.length < 2;
  let [seed, values] = [1, {}];
  const current = () => families[choice.selectedIndex];
  const question = (count) => ({ family: current().name, values, seed, count });
  const drawer = new Latest(async (signal) => {
    const { states } = await ask("/api/states/draw", question(1), signal);
    take(states[0]);
    studio.drawn = true;
  });
  const gallery = find("gallery");
  const thumbs = new Latest(async (signal) => {
    if (!current().random) return gallery.replaceChildren();
    const { states } = await ask("/api/states/draw", question(THUMBS), signal);
    fillGallery(gallery, states, (drawn, k) => [`draw ${seed + k}`, () => take(drawn, { keep: true })]);
    markThumbs(studio.drawn ? gallery.firstChild : null);
  }, 1e9);
  const sliders = find("sliders");
  const refresh = () => {
    drawer.call();
    thumbs.call();
  };
  const choose = () => {
    values = {};
    find("redraw").disabled = !current().random;
    sliders.replaceChildren(
      ...current().sliders.map((slider) => {
        const label = document.createElement("label");
        label.className = "slider";
        const input = Object.assign(document.createElement("input"), { type: "range", min: slider.lower, max: slider.upper, step: slider.step, value: slider.default });
        const output = document.createElement("output");
        const write = () => (output.textContent = slider.step < 1 ? `${Math.round(100 * input.value)} %` : input.value);
        write();
        input.addEventListener("input", () => {
          values[slider.key] = Number(input.value);
          write();
          refresh();
        });
        label.append(slider.label, input, output);
        return label;
      }),
    );
  };
  choice.addEventListener("change", () => {
    choose();
    refresh();
  });
  find("redraw").addEventListener("click", () => {
    seed += THUMBS;
    refresh();
  });
  choose();
  thumbs.call();
}

function showTestStates() {
  const { held_out: count } = studio.exhibit;
  find("test-states").hidden = false;
  let first = 0;
  const gallery = find("test-gallery");
  const turn = async () => {
    const numbers = Array.from({ length: Math.min(THUMBS, count - first) }, (_, k) => first + k);
    find("place").textContent = `${first + 1}–${first + numbers.length} of ${count}`;
    find("earlier").disabled = first === 0;
    find("later").disabled = first + THUMBS >= count;
    const states = await Promise.all(numbers.map((n) => ask(`/api/states/test/${n}`)));
    fillGallery(gallery, states, (state, k) => [state.label, () => take(state, { test: numbers[k], keep: true })]);
    if (studio.test === null && !studio.exhibit.families.length && first === 0) gallery.firstChild.click();
  };
  find("earlier").addEventListener("click", () => ((first -= THUMBS), turn()));
  find("later").addEventListener("click", () => ((first += THUMBS), turn()));
  turn();
}

function fillGallery(gallery, states, describe) {
  gallery.replaceChildren(
    ...states.map((state, k) => {
      const [name, pick] = describe(state, k);
      const button = document.createElement("button");
      button.type = "button";
      button.className = "thumb";
      button.title = name;
      button.setAttribute("aria-label", name);
      button.setAttribute("aria-pressed", "false");
      const canvas = document.createElement("canvas");
      const picture = decode(state.state);
      button.append(canvas);
      new ResizeObserver(() => drawState(canvas, picture, studio.exhibit.microstate)).observe(canvas);
      button.redraw = () => drawState(canvas, picture, studio.exhibit.microstate);
      button.addEventListener("click", () => {
        pick();
        markThumbs(button);
      });
      return button;
    }),
  );
}

onTheme(() => document.querySelectorAll(".thumb").forEach((thumb) => thumb.redraw?.()));

function markThumbs(chosen) {
  for (const thumb of document.querySelectorAll(".thumb")) thumb.setAttribute("aria-pressed", String(thumb === chosen));
}

// ---------------------------------------------------------------- the forecast

function shown() {
  return studio.models.filter((model) => model.on && model.answer);
}

function drawForecast() {
  const { exhibit, charts, truth } = studio;
  const models = shown();
  const mean = truth.truth?.mean() ?? [];
  const ink = colour("ink");
  const strength = models.length > 1 ? 0.6 : 1;
  charts.forEach((chart, j) => {
    const column = (rows) => rows.map((y) => y[j]);
    const bands = models.flatMap((model) => {
      const hue = colour(`model-${model.number % 6}`);
      const q = model.answer.quantiles;
      return [[0, 6, 0.14], [1, 5, 0.17], [2, 4, 0.24]].map(([low, high, alpha]) => ({
        x: model.answer.times, low: column(q[low]), high: column(q[high]), colour: hue, alpha: alpha * strength,
      }));
    });
    const paths = truth.truth?.members ?? [];
    const lines = [
      ...studio.closures.map((closure, k) => ({ x: studio.times, y: column(closure.macrostates), colour: colour("soft"), width: 1.1, dash: DASHES[k % 4] })),
      ...paths.map((path) => ({ x: studio.times, y: column(path), colour: ink, width: 0.8, alpha: Math.max(0.1, Math.min(0.4, 4 / paths.length)) })),
      ...models.map((model) => ({ x: model.answer.times, y: column(model.answer.mean), colour: colour(`model-${model.number % 6}`), width: 3.2 })),
      ...(paths.length > 1 ? [{ x: studio.times, y: column(mean), colour: ink, width: 1.5 }] : []),
    ];
    const { lower, upper } = exhibit.observables[j];
    const last = j === charts.length - 1;
    chart.cursor = studio.cursor === null ? null : studio.times[studio.cursor];
    chart.set({
      x: [0, studio.times.at(-1)], bands, lines, lower, upper, log: studio.log,
      label: last ? (exhibit.time_unit ? `time / ${exhibit.time_unit}` : "time") : "",
      playhead: truth.frame === null ? null : truth.frame * exhibit.interval,
    });
    titleChart(chart, j, mean);
  });
  showWarnings();
  showLegend(models, (truth.truth?.members.length ?? 0) > 0);
  showScores(models);
}

function titleChart(chart, j, mean) {
  const observable = studio.exhibit.observables[j];
  const name = document.createElement("b");
  const site = studio.exhibit.state_names.indexOf(observable.name);
  if (site >= 0) {
    const dot = document.createElement("i");
    dot.style.setProperty("--swatch", `var(--site-${site})`);
    name.append(dot);
  }
  const unit = observable.unit ? ` / ${observable.unit}` : "";
  name.append(observable.name === observable.symbol ? observable.symbol + unit : `${observable.symbol}, ${observable.name}${unit}`);
  const values = document.createElement("span");
  if (studio.cursor !== null) {
    values.append(`t = ${format(studio.times[studio.cursor])}`);
    for (const model of shown()) {
      const part = document.createElement("em");
      part.style.setProperty("--swatch", `var(--model-${model.number % 6})`);
      const q = model.answer.quantiles;
      const at = (k) => format(q[k][studio.cursor][j]);
      part.textContent = `${format(model.answer.mean[studio.cursor][j])} (${at(1)} to ${at(5)})`;
      values.append(part);
    }
    if (mean[studio.cursor]) {
      const part = document.createElement("em");
      part.style.setProperty("--swatch", "var(--ink)");
      part.textContent = `truth ${format(mean[studio.cursor][j])}`;
      values.append(part);
    }
  }
  chart.title.replaceChildren(name, values);
}

function read({ fraction, step, spoken = false }) {
  const last = studio.times.length - 1;
  if (step !== undefined) studio.cursor = Math.max(0, Math.min(last, (studio.cursor ?? 0) + step));
  else studio.cursor = fraction === null ? null : Math.max(0, Math.min(last, Math.round(fraction * last)));
  drawForecast();
  find("readout").textContent = spoken ? studio.charts.map((chart) => chart.title.textContent).join("; ") : "";
}

function showWarnings() {
  const lines = studio.models
    .filter((model) => model.on)
    .flatMap((model) => (model.failure ? [[model.name, model.failure]] : (model.answer?.warnings ?? []).map((line) => [model.name, line])));
  const place = find("warnings");
  const text = lines.map((line) => line.join(": ")).join("\n");
  if (place.dataset.text === text) return;
  place.dataset.text = text;
  place.replaceChildren(
    ...lines.map(([name, line]) => {
      const item = document.createElement("p");
      const who = document.createElement("b");
      who.textContent = `${name}: `;
      item.append(who, line);
      return item;
    }),
  );
}

const SVG = "http://www.w3.org/2000/svg";

function symbol(parts) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", "0 0 30 14");
  picture.setAttribute("aria-hidden", "true");
  for (const [name, attributes] of parts) {
    const shape = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
    picture.append(shape);
  }
  return picture;
}

function showLegend(models, simulated) {
  const line = (ink, width, dash = "none") => ["path", { d: "M0 7H30", stroke: ink, "stroke-width": width, "stroke-dasharray": dash }];
  const first = models[0] ? colour(`model-${models[0].number % 6}`) : colour("soft");
  const band = (height, alpha) => ["rect", { x: 0, y: 7 - height / 2, width: 30, height, fill: first, opacity: alpha }];
  const entries = models.map((model) => [model.name, [line(colour(`model-${model.number % 6}`), 2.6)]]);
  if (models.length) entries.push(["mean with bands of 50, 80 and 95 %", [band(14, 0.2), band(9, 0.28), band(5, 0.4), line(first, 1.6)]]);
  if (simulated) {
    const one = studio.exhibit.simulates ? "simulated trajectories" : "held-out trajectories";
    entries.push([one, [line(colour("ink"), 0.8)]], ["their mean", [line(colour("ink"), 2)]]);
  }
  studio.closures.forEach((closure, k) => entries.push([`${closure.name} (closure)`, [line(colour("soft"), 1.3, DASHES[k % 4].join(" "))]]));
  const text = JSON.stringify(entries);
  if (find("legend").dataset.text === text) return;
  find("legend").dataset.text = text;
  find("legend").replaceChildren(
    ...entries.map(([name, parts]) => {
      const item = document.createElement("li");
      item.append(symbol(parts), name);
      return item;
    }),
  );
}

function showScores(models) {
  const truth = studio.truth.truth;
  const rows = truth?.members.length ? models.map((model) => [model, score(model.answer, truth, model.scale)]).filter(([, s]) => s) : [];
  find("scores").hidden = !rows.length;
  find("scores").tBodies[0].replaceChildren(
    ...rows.map(([model, found]) => {
      const tr = document.createElement("tr");
      const th = document.createElement("th");
      th.scope = "row";
      const dot = document.createElement("i");
      dot.style.setProperty("--swatch", `var(--model-${model.number % 6})`);
      th.append(dot, model.name);
      tr.append(th);
      for (const text of [found.rmse.toFixed(3), ...found.shares.map((s) => `${Math.round(100 * s)} %`)]) tr.insertCell().textContent = text;
      return tr;
    }),
  );
  const floor = rows[0]?.[1].floor;
  find("floor").textContent = !rows.length ? "" : floor === null
    ? "RMSE of the means, in standard deviations of the training data; then the share of simulated values inside each band."
    : `RMSE of the means, in standard deviations of the training data: a perfect model would have about ${floor.toFixed(3)}. Then the share of values inside each band.`;
  const costs = models.map((model) => `${model.name} ${seconds(model.answer.seconds)} for ${model.answer.members} trajectories`);
  if (truth?.members.length && studio.exhibit.simulates) costs.push(`simulation ${seconds(truth.seconds)} for ${truth.members.length}`);
  find("cost").textContent = costs.length ? `Cost: ${costs.join("; ")}.` : "";
}

function seconds(value) {
  return value < 0.0995 ? `${Math.max(1, Math.round(1000 * value))} ms` : `${value.toPrecision(2)} s`;
}

// ---------------------------------------------------------------- files

function toCsv() {
  const { exhibit, times, truth } = studio;
  const quote = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const columns = [["time", times]];
  exhibit.observables.forEach((o, j) => {
    for (const model of shown()) {
      columns.push([`${o.symbol} ${model.name} mean`, model.answer.mean.map((y) => y[j])]);
      model.answer.levels.forEach((level, k) => columns.push([`${o.symbol} ${model.name} q${level}`, model.answer.quantiles[k].map((y) => y[j])]));
    }
    for (const closure of studio.closures) columns.push([`${o.symbol} ${closure.name}`, closure.macrostates.map((y) => y[j])]);
    if (truth.truth?.members.length) columns.push([`${o.symbol} truth mean`, truth.truth.mean().map((y) => y[j])]);
  });
  const lines = times.map((_, t) => columns.map(([, values]) => values[t] ?? "").join(","));
  return [columns.map(([name]) => quote(name)).join(","), ...lines].join("\r\n") + "\r\n";
}

function savePng() {
  const scale = window.devicePixelRatio || 1;
  const canvases = studio.charts.map((chart) => chart.canvas);
  const head = 26 * scale;
  const sheet = document.createElement("canvas");
  sheet.width = Math.max(...canvases.map((c) => c.width)) + 24 * scale;
  sheet.height = canvases.reduce((sum, c) => sum + c.height + head, 0) + head + 16 * scale;
  const context = sheet.getContext("2d");
  context.fillStyle = colour("card");
  context.fillRect(0, 0, sheet.width, sheet.height);
  const write = (text, x, y, ink) => {
    context.fillStyle = ink;
    context.fillText(text, x, y);
    return x + context.measureText(text).width + 18 * scale;
  };
  context.font = `600 ${13 * scale}px system-ui, sans-serif`;
  let [x, y] = [12 * scale, 20 * scale];
  for (const model of shown()) x = write(model.name, x, y, colour(`model-${model.number % 6}`));
  canvases.forEach((canvas, j) => {
    const o = studio.exhibit.observables[j];
    y += head;
    write(o.unit ? `${o.symbol} / ${o.unit}` : `${o.symbol}, ${o.name}`, 12 * scale, y - 4 * scale, colour("ink"));
    context.drawImage(canvas, 12 * scale, y);
    y += canvas.height;
  });
  sheet.toBlob((blob) => save(blob, "forecast.png"));
}

function complain(error) {
  if (error?.name === "AbortError") return;
  const known = error instanceof Refusal;
  find("problem").textContent = error === null ? "" : known ? error.message : "The server does not answer; see that it is running.";
  if (error && !known) console.error(error);
}
