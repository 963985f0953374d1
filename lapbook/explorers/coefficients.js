// Chapter 3: choose d and the coefficients, and watch the generalized objective being minimised.
import {
  announcer,
  applyLaplacian,
  bind,
  choice,
  cosine,
  dot,
  frame,
  generalized,
  h,
  heatmap,
  readMap,
  slider,
  unpack,
} from "./common.js";

/** The nearest orthonormal frame, U(U'U)^(-1/2), by Newton–Schulz; U is an array of d vectors, nearly orthonormal. */
export function polar(U) {
  let V = U.map((u) => u.slice());
  for (let round = 0; round < 60; round++) {
    const G = V.map((u) => V.map((v) => dot(u, v)));
    let error = 0;
    G.forEach((row, i) => row.forEach((g, j) => (error = Math.max(error, Math.abs(g - (i === j ? 1 : 0))))));
    if (error < 1e-14) break;
    const size = error > 0.9 ? Math.sqrt(Math.max(...G.map((row) => row.reduce((sum, g) => sum + Math.abs(g), 0)))) : 1;
    V = V.map((_, i) => {
      const out = new Float64Array(V[0].length);
      for (let j = 0; j < V.length; j++) {
        const weight = (i === j ? 1.5 : 0) / size - (0.5 * G[i][j]) / size ** 3;
        for (let s = 0; s < out.length; s++) out[s] += weight * V[j][s];
      }
      return out;
    });
  }
  return V;
}

/** A random start from a seed (mulberry32 and Box–Muller), orthonormal. */
export function randomFrame(n, d, seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  const scale = 1 / Math.sqrt(n);
  return polar(Array.from({ length: d }, () => Float64Array.from({ length: n }, () => scale * normal())));
}

/** Nesterov's descent with restart and polar retraction, as lapbook.objective.minimise: call step() as often as you like. */
export function descent(map, c, start) {
  const degree = Math.max(...map.neighbours.map((around) => around.length));
  const rate = 1 / (2 * Math.max(...c.map(Math.abs)) * 2 * degree);
  let [U, ahead, age, before] = [start, start, 0, Infinity];
  return {
    get U() {
      return U;
    },
    get value() {
      return generalized(map, U, c);
    },
    step() {
      const next = polar(
        ahead.map((u, i) => {
          const Lu = applyLaplacian(map, u);
          return u.map((x, s) => x - 2 * rate * c[i] * Lu[s]);
        }),
      );
      const value = generalized(map, next, c);
      age = value <= before ? age + 1 : 0;
      const beta = age / (age + 3);
      ahead = polar(next.map((u, i) => u.map((x, s) => x + beta * (x - U[i][s]))));
      [U, before] = [next, value];
    },
  };
}

const ENOUGH = 20000; // steps; every preset has long settled by then

export const PRESETS = {
  paper: (d) => Array.from({ length: d }, (_, i) => d - i),
  equal: (d) => Array(d).fill(1),
  convex: (d) => Array.from({ length: d }, (_, i) => 1 + (d - 1 - i) ** 2 / Math.max(d - 1, 1)),
  concave: (d) => Array.from({ length: d }, (_, i) => d - i ** 2 / Math.max(d - 1, 1)),
  reversed: (d) => Array.from({ length: d }, (_, i) => i + 1),
  "two equal": (d) => Array.from({ length: d }, (_, i) => (i === 2 ? d - 1 : d - i)),
};

export default {
  render({ model, el }) {
    const entry = Object.values(model.get("data"))[0];
    const map = readMap(entry.text);
    const truth = unpack(entry);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const box = frame(el, "Coefficient playground");
    const figures = h("p", { class: "lb-figures" });
    const status = announcer();
    const weights = h("div", { class: "lb-row lb-weights", role: "group", "aria-label": "Coefficients" });
    const found = h("div", { class: "lb-grid" });
    const target = h("div", { class: "lb-grid" });
    const matrix = h("canvas", { class: "lb-map", role: "img" });
    let [run, steps, running, sliders, shown] = [null, 0, false, [], []];

    const setCoefficients = bind(model, "coefficients", () => {
      rebuild();
      // A moved slider shows at once: take the first steps now.
      advance(performance.now() + 150);
      draw();
    });
    const dimension = slider({
      label: "Dimensions d",
      min: 2,
      max: 10,
      value: 10,
      onchange: (d) => setCoefficients(PRESETS.paper(d)),
    });
    const preset = choice({
      label: "Preset",
      options: ["own", ...Object.keys(PRESETS)],
      value: "paper",
      onchange: (name) => PRESETS[name] && setCoefficients(PRESETS[name](c().length)),
    });
    const seed = h("input", {
      type: "number",
      min: 0,
      max: 9999,
      value: model.get("seed"),
      "aria-label": "Seed",
      "data-lm-suppress-shortcuts": "true",
      style: "width:5rem",
    });
    const setSeed = bind(model, "seed", (value) => {
      seed.value = value;
      reset();
    });
    seed.addEventListener("change", () => setSeed(Math.max(0, Math.floor(Number(seed.value) || 0))));
    const start = h("button", { type: "button", onclick: () => (running ? pause() : go()) }, "Run");
    const again = h("button", { type: "button", onclick: reset }, "Reset");
    box.append(
      h("div", { class: "lb-row" }, dimension.element, preset.element),
      weights,
      h("div", { class: "lb-row" }, h("div", { class: "lb-control" }, start, again, h("span", {}, "Seed"), seed)),
      figures,
      h(
        "div",
        { class: "lb-row" },
        h(
          "figure",
          { style: "flex: 1 1 20rem; min-width: 0" },
          h("figcaption", {}, "found: u₁ … u_d"),
          found,
          h("figcaption", {}, "truth: e₁ … e_d"),
          target,
        ),
        h("figure", {}, h("figcaption", {}, "|cos(uᵢ, eⱼ)|: row i, column j"), matrix),
      ),
      status.element,
    );
    rebuild();

    function c() {
      return model.get("coefficients");
    }

    function rebuild() {
      const d = c().length;
      const top = Math.max(10, ...c());
      if (sliders.length !== d) {
        sliders = c().map((value, i) =>
          slider({
            label: `c${i + 1}`,
            min: 0.1,
            max: top,
            step: 0.1,
            value,
            show: (x) => x.toFixed(1),
            onchange: (x) => setCoefficients(c().map((old, k) => (k === i ? x : old))),
          }),
        );
        weights.replaceChildren(...sliders.map((one) => one.element));
        shown = c().map(() => [heatmap(map, "lb-small"), heatmap(map, "lb-small")]);
        found.replaceChildren(...shown.map(([one]) => one.element));
        target.replaceChildren(...shown.map(([, one]) => one.element));
        shown.forEach(([, one], i) => {
          one.draw(truth[i], Math.max(...truth[i].map(Math.abs)));
          one.describe(`Eigenvector ${i + 1}`);
        });
        [matrix.width, matrix.height] = [d, d];
      }
      sliders.forEach((one, i) => one.set(c()[i], { max: top }));
      dimension.set(d);
      const same = Object.entries(PRESETS).find(([, make]) => make(d).every((x, i) => Math.abs(x - c()[i]) < 1e-9));
      preset.select.value = same ? same[0] : "own";
      reset();
    }

    function reset() {
      run = descent(map, c(), randomFrame(map.n, c().length, model.get("seed")));
      steps = 0;
      draw();
    }

    function go() {
      running = true;
      start.textContent = "Pause";
      tick();
    }

    function pause() {
      running = false;
      start.textContent = "Run";
    }

    function advance(until) {
      while (performance.now() < until && steps < ENOUGH) {
        run.step();
        steps += 1;
      }
    }

    function tick() {
      if (!running || !el.isConnected) return pause();
      // With reduced motion the picture changes twice a second instead of in every frame.
      advance(performance.now() + (calm ? 400 : 25));
      draw();
      if (steps >= ENOUGH) return pause();
      setTimeout(tick, calm ? 100 : 0);
    }

    function draw() {
      const U = run.U;
      const d = U.length;
      const share = U.map((u) => truth.slice(0, d).map((e) => cosine(u, e)));
      const context = matrix.getContext("2d");
      const image = context.createImageData(d, d);
      share.forEach((row, i) =>
        row.forEach((value, j) => {
          const grey = Math.round(255 * (1 - value));
          image.data.set([grey, grey, grey, 255], 4 * (i * d + j));
        }),
      );
      context.putImageData(image, 0, 0);
      const order = share.map((row) => row.indexOf(Math.max(...row)) + 1);
      matrix.setAttribute("aria-label", `Closest eigenvector of each dimension: ${order.join(", ")}`);
      U.forEach((u, i) => {
        shown[i][0].draw(dot(u, truth[i]) < 0 ? u.map((x) => -x) : u, Math.max(...u.map(Math.abs)));
        shown[i][0].describe(`Found vector ${i + 1}, closest to eigenvector ${order[i]}`);
      });
      const similarity = share.reduce((sum, row, i) => sum + row[i], 0) / d;
      const lowest = [...c()].sort((a, b) => b - a).reduce((sum, x, i) => sum + x * entry.values[i], 0);
      const gap = Math.max(0, run.value - lowest);
      el.dataset.simgt = similarity.toFixed(4);
      el.dataset.order = order.join(",");
      el.dataset.steps = steps;
      figures.textContent = `Step ${steps}   SimGT ${similarity.toFixed(3)}   objective ${gap.toExponential(1)} above its minimum`;
      status.say(`Step ${steps}, SimGT ${similarity.toFixed(2)}`);
    }
  },
};
