// What all explorers share: the map, the colours, labelled controls, a small plot, and a stand-in for Jupyter's model.
// Python joins this file and one explorer into a single module, so nothing here is fetched at run time.

// Colours as in lapbook.plots: blue for negative, red for positive, white at 0; walls dark.
const STOPS = [
  "053061",
  "2166ac",
  "4393c3",
  "92c5de",
  "d1e5f0",
  "f7f7f7",
  "fddbc7",
  "f4a582",
  "d6604d",
  "b2182b",
  "67001f",
];
const WALL = [59, 66, 82];
const RGB = STOPS.map((hex) => [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16)));

/** Colour of a value in [-1, 1], as [red, green, blue]. */
export function diverging(value) {
  const x = ((Math.max(-1, Math.min(1, value)) + 1) / 2) * (RGB.length - 1);
  const k = Math.min(Math.floor(x), RGB.length - 2);
  return RGB[k].map((low, channel) => Math.round(low + (x - k) * (RGB[k + 1][channel] - low)));
}

/** Parse a map of '#' and '.': its states in reading order and their neighbours. */
export function readMap(text) {
  const lines = text.split("\n");
  const cells = [];
  const index = lines.map((line, row) =>
    [...line].map((letter, column) => (letter === "." ? cells.push([row, column]) - 1 : -1)),
  );
  const neighbours = cells.map(([row, column]) =>
    [
      [row, column - 1],
      [row, column + 1],
      [row - 1, column],
      [row + 1, column],
    ]
      .map(([r, c]) => index[r]?.[c] ?? -1)
      .filter((state) => state >= 0),
  );
  return { rows: lines.length, columns: lines[0].length, cells, neighbours, n: cells.length };
}

/** Undo lapbook.explorers.base.pack: 16-bit integers times a scale, one array of length n for each vector. */
export function unpack({ bytes, scale, n }) {
  const raw = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
  const view = new DataView(raw.buffer);
  const vectors = [];
  for (let start = 0; start < raw.length; start += 2 * n) {
    vectors.push(Float64Array.from({ length: n }, (_, s) => view.getInt16(start + 2 * s, true) * scale));
  }
  return vectors;
}

export const dot = (u, v) => {
  let sum = 0;
  for (let s = 0; s < u.length; s++) sum += u[s] * v[s];
  return sum;
};

/** L u = (D - A) u, from the neighbours of each state. */
export function applyLaplacian(map, u) {
  const out = new Float64Array(map.n);
  for (let s = 0; s < map.n; s++) {
    const around = map.neighbours[s];
    let value = around.length * u[s];
    for (let k = 0; k < around.length; k++) value -= u[around[k]];
    out[s] = value;
  }
  return out;
}

/** Eq. (3): sum of c_i u_i' L u_i over the vectors of U; with c = 1, eq. (2). */
export function generalized(map, U, c) {
  return U.reduce((sum, u, i) => sum + c[i] * dot(u, applyLaplacian(map, u)), 0);
}

/** |cos| between two vectors. */
export const cosine = (u, v) => Math.abs(dot(u, v)) / Math.sqrt(dot(u, u) * dot(v, v) || 1);

// ---------------------------------------------------------------- the page

let count = 0;

/** Create an element: h("label", {for: "x"}, "text", child, …). */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A labelled range input with its value beside it. JupyterLab must not take its arrow keys. */
export function slider({ label, min, max, step = 1, value, show = String, onchange }) {
  const id = `lb-${Date.now().toString(36)}-${count++}`;
  const output = h("output", { for: id }, show(value));
  const input = h("input", { id, type: "range", min, max, step, value, "data-lm-suppress-shortcuts": "true" });
  input.addEventListener("input", () => {
    output.textContent = show(Number(input.value));
    onchange(Number(input.value));
  });
  return {
    element: h("div", { class: "lb-control" }, h("label", { for: id }, label), input, output),
    input,
    set(next, limits = {}) {
      Object.assign(input, limits);
      input.value = next;
      output.textContent = show(Number(input.value));
    },
  };
}

/** A labelled choice. */
export function choice({ label, options, value, onchange }) {
  const id = `lb-${Date.now().toString(36)}-${count++}`;
  const select = h(
    "select",
    { id, "data-lm-suppress-shortcuts": "true" },
    ...options.map((name) => h("option", { value: name }, name)),
  );
  select.value = value;
  select.addEventListener("change", () => onchange(select.value));
  return { element: h("div", { class: "lb-control" }, h("label", { for: id }, label), select), select };
}

/** A picture of numbers on a map; `draw(values, limit)` paints it, `describe(text)` sets what is read aloud. */
export function heatmap(map, className = "lb-map") {
  const canvas = h("canvas", { width: map.columns, height: map.rows, class: className, role: "img" });
  const context = canvas.getContext("2d");
  const image = context.createImageData(map.columns, map.rows);
  for (let k = 0; k < image.data.length; k += 4) image.data.set([...WALL, 255], k);
  return {
    element: canvas,
    describe: (text) => canvas.setAttribute("aria-label", text),
    draw(values, limit) {
      map.cells.forEach(([row, column], s) =>
        image.data.set(diverging(values[s] / limit), 4 * (row * map.columns + column)),
      );
      context.putImageData(image, 0, 0);
    },
  };
}

/** A line plot: `draw([{x, y, kind, label}], {x: [low, high], y: [low, high]})`; kinds line, dots, mark. */
export function plot({ xlabel, ylabel, label }) {
  const [width, height, left, bottom, top] = [360, 220, 52, 40, 12];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", "lb-plot");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  const text = (x, y, content, extra = "") => `<text x="${x}" y="${y}" ${extra}>${content}</text>`;
  return {
    element: svg,
    draw(series, limits) {
      const px = (x) => left + ((x - limits.x[0]) / (limits.x[1] - limits.x[0])) * (width - left - 12);
      const py = (y) =>
        height - bottom - ((y - limits.y[0]) / (limits.y[1] - limits.y[0] || 1)) * (height - bottom - top);
      const parts = series.map(({ x, y, kind, className = "" }) => {
        if (kind === "line")
          return `<polyline class="${className}" points="${x.map((value, k) => `${px(value).toFixed(1)},${py(y[k]).toFixed(1)}`).join(" ")}"/>`;
        return x
          .map(
            (value, k) =>
              `<circle class="${className}" cx="${px(value).toFixed(1)}" cy="${py(y[k]).toFixed(1)}" r="${kind === "mark" ? 6 : 3.2}"/>`,
          )
          .join("");
      });
      const ends = (range) => range.map((value) => Number(value.toPrecision(2)).toString());
      svg.innerHTML =
        `<path class="lb-axis" d="M${left},${top}V${height - bottom}H${width - 12}"/>` +
        parts.join("") +
        text(left, height - bottom + 16, ends(limits.x)[0], 'text-anchor="middle"') +
        text(width - 12, height - bottom + 16, ends(limits.x)[1], 'text-anchor="end"') +
        text(left - 6, height - bottom, ends(limits.y)[0], 'text-anchor="end"') +
        text(left - 6, top + 8, ends(limits.y)[1], 'text-anchor="end"') +
        text((left + width) / 2, height - 6, xlabel, 'text-anchor="middle"') +
        text(
          14,
          (height - bottom) / 2,
          ylabel,
          `text-anchor="middle" transform="rotate(-90 14 ${(height - bottom) / 2})"`,
        );
    },
  };
}

/** A line of text that screen readers announce, at most once in `pause` milliseconds. */
export function announcer(pause = 1000) {
  const element = h("p", { class: "lb-status", role: "status", "aria-live": "polite" });
  let waiting = null;
  let latest = "";
  return {
    element,
    say(text) {
      latest = text;
      waiting ??= setTimeout(() => {
        waiting = null;
        element.textContent = latest;
      }, pause);
    },
  };
}

export const STYLE = `
.lb-explorer { --lb-text: var(--pst-color-text-base, var(--jp-content-font-color1, #222)); --lb-line: var(--pst-color-border, var(--jp-border-color1, #ccc));
  --lb-accent: #2563eb; --lb-other: #d97706; color: var(--lb-text); font: 0.9rem/1.45 system-ui, sans-serif; border: 1px solid var(--lb-line);
  border-radius: 6px; padding: 0.8rem; margin: 0.5rem 0; background: var(--pst-color-background, var(--jp-layout-color0, #fff)); }
html[data-theme="dark"] .lb-explorer, [data-jp-theme-light="false"] .lb-explorer { --lb-accent: #7aa7ff; --lb-other: #f0a84b; }
.lb-explorer .lb-row { display: flex; flex-wrap: wrap; gap: 0.8rem; align-items: flex-start; }
.lb-explorer .lb-control { display: flex; gap: 0.5rem; align-items: center; min-height: 2rem; flex-wrap: wrap; }
.lb-explorer .lb-control label { min-width: 6.5rem; }
.lb-explorer .lb-weights { gap: 0 1.2rem; } .lb-explorer .lb-weights label { min-width: 1.8rem; } .lb-explorer .lb-weights input { width: 8rem; }
.lb-explorer input[type="range"] { width: 11rem; accent-color: var(--lb-accent); }
.lb-explorer select, .lb-explorer button, .lb-explorer input[type="number"] { font: inherit; color: inherit; background: transparent; border: 1px solid var(--lb-line);
  border-radius: 4px; padding: 0.25rem 0.6rem; min-height: 2rem; }
.lb-explorer option { color: #222; background: #fff; }
.lb-explorer :is(input, select, button):focus-visible { outline: 2px solid var(--lb-accent); outline-offset: 2px; }
.lb-explorer output { font-variant-numeric: tabular-nums; min-width: 3.2rem; }
.lb-explorer canvas { image-rendering: pixelated; border-radius: 3px; background: none; padding: 0; outline: 1px solid var(--lb-line); }
.lb-explorer .lb-map { width: 240px; max-width: 100%; height: auto; }
.lb-explorer .lb-small { width: 62px; height: auto; }
.lb-explorer .lb-grid { display: grid; grid-template-columns: repeat(auto-fill, 62px); gap: 4px; }
.lb-explorer .lb-plot { flex: 1 1 18rem; max-width: 380px; height: auto; }
.lb-explorer .lb-plot text { fill: var(--lb-text); font-size: 12px; }
.lb-explorer .lb-plot polyline { fill: none; stroke: var(--lb-accent); stroke-width: 2; }
.lb-explorer .lb-plot .lb-second { stroke: var(--lb-other); }
.lb-explorer .lb-plot circle { fill: var(--lb-accent); stroke: none; }
.lb-explorer .lb-plot circle.lb-second { fill: var(--lb-other); }
.lb-explorer .lb-axis { fill: none; stroke: var(--lb-text); stroke-width: 1; }
.lb-explorer .lb-status, .lb-explorer .lb-figures { margin: 0.4rem 0 0; font-variant-numeric: tabular-nums; }
.lb-explorer .lb-status { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.lb-explorer figure { margin: 0; } .lb-explorer figcaption { font-size: 0.85rem; color: inherit; }
`;

/** The frame of an explorer: clears `el`, adds the style, returns the box to fill. */
export function frame(el, label) {
  const box = h("div", { class: "lb-explorer", role: "group", "aria-label": label });
  el.replaceChildren(h("style", {}, STYLE), box);
  return box;
}

/** In a page without a kernel: what an explorer needs of Jupyter's model, kept in the page. */
export function standIn(state) {
  const listeners = new Map();
  return {
    get: (name) => state[name],
    set(name, value) {
      state[name] = value;
      for (const listener of listeners.get(`change:${name}`) ?? []) listener();
    },
    on(event, listener) {
      listeners.set(event, [...(listeners.get(event) ?? []), listener]);
    },
    off(event, listener) {
      listeners.set(
        event,
        (listeners.get(event) ?? []).filter((other) => other !== listener),
      );
    },
    save_changes() {},
  };
}

/** Keep a control and a trait of the model in step: returns a setter for the control's side. */
export function bind(model, name, apply) {
  model.on(`change:${name}`, () => apply(model.get(name)));
  return (value) => {
    model.set(name, value);
    model.save_changes();
  };
}
