// Chapter 5: watch a baseline and the generalized objective learn, beside the truth.
import { announcer, bind, choice, cosine, frame, h, heatmap, plot, readMap, slider, unpack } from "./common.js";

/** Undo lapbook.explorers.film: bytes -127 … 127, frames of d vectors of length n. */
export function unreel(bytes, n, d) {
  const raw = Int8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
  const frames = [];
  for (let start = 0; start < raw.length; start += n * d) {
    frames.push(Array.from({ length: d }, (_, i) => raw.subarray(start + i * n, start + (i + 1) * n)));
  }
  return frames;
}

/** SimGT: the mean over dimensions of |cos|. */
export const simGT = (vectors, truth) =>
  vectors.reduce((sum, u, i) => sum + cosine(u, truth[i]), 0) / vectors.length;

const METHODS = { gd: "baseline", ggd: "ours" };

export default {
  render({ model, el }) {
    const box = frame(el, "Play back training");
    const films = Object.fromEntries(
      Object.entries(model.get("data")).map(([name, entry]) => {
        const truth = unpack(entry);
        const reels = Object.fromEntries(
          Object.keys(METHODS).map((method) => [method, unreel(entry.films[method], entry.n, truth.length)]),
        );
        const scores = Object.fromEntries(
          Object.entries(reels).map(([method, frames]) => [method, frames.map((vectors) => simGT(vectors, truth))]),
        );
        return [name, { map: readMap(entry.text), truth, reels, scores, steps: entry.steps }];
      }),
    );
    const figures = h("p", { class: "lb-figures" });
    const status = announcer();
    const pictures = h("div", { class: "lb-row" });
    const curves = plot({
      xlabel: "training steps, powers of ten",
      ylabel: "SimGT",
      label: "SimGT of both methods against training steps, the chosen step marked",
    });
    let shown = null;

    const setMap = bind(model, "map", update);
    const setFrame = bind(model, "frame", update);
    const setDimension = bind(model, "dimension", update);
    const map = choice({ label: "Map", options: Object.keys(films), value: model.get("map"), onchange: setMap });
    const step = slider({
      label: "Training step",
      min: 1,
      max: 2,
      value: 1,
      show: (k) => films[model.get("map")].steps[k - 1]?.toLocaleString("en") ?? "",
      onchange: setFrame,
    });
    const dimension = slider({ label: "Dimension i", min: 1, max: 10, value: 1, onchange: setDimension });
    box.append(
      h("div", { class: "lb-row" }, map.element, step.element, dimension.element),
      pictures,
      h("div", { class: "lb-row" }, curves.element),
      figures,
      status.element,
    );
    update();

    function update() {
      const name = model.get("map");
      const film = films[name];
      const k = Math.min(model.get("frame"), film.steps.length);
      const i = Math.min(model.get("dimension"), film.truth.length);
      if (shown?.film !== film) {
        const views = ["truth", ...Object.keys(METHODS)].map((key) => {
          const view = { key, ...heatmap(film.map), caption: h("figcaption") };
          view.element.style.width = "11rem"; // three beside one another in a page
          view.figure = h("figure", {}, view.element, view.caption);
          return view;
        });
        shown = { film, views };
        pictures.replaceChildren(...views.map((view) => view.figure));
      }
      const now = { truth: film.truth[i - 1] };
      for (const method of Object.keys(METHODS)) now[method] = film.reels[method][k - 1][i - 1];
      for (const view of shown.views) {
        const u = now[view.key];
        view.draw(u, Math.max(...u.map(Math.abs)) || 1);
        const label = view.key === "truth" ? `truth, e${i}` : METHODS[view.key];
        const close = view.key === "truth" ? "" : `, |cos| = ${cosine(u, now.truth).toFixed(2)}`;
        view.caption.textContent = label + close;
        view.describe(`Dimension ${i} on ${name}, ${label}${close}`);
      }
      const x = film.steps.map(Math.log10);
      curves.draw(
        Object.keys(METHODS).flatMap((method) => {
          const className = method === "gd" ? "lb-second" : "";
          const y = film.scores[method];
          return [
            { x, y, kind: "line", className },
            { x: [x[k - 1]], y: [y[k - 1]], kind: "mark", className },
          ];
        }),
        { x: [x[0], x[x.length - 1]], y: [0, 1] },
      );
      map.select.value = name;
      step.set(k, { max: film.steps.length });
      dimension.set(i, { max: film.truth.length });
      const [gd, ggd] = Object.keys(METHODS).map((method) => film.scores[method][k - 1].toFixed(2));
      const text = `After ${film.steps[k - 1].toLocaleString("en")} steps SimGT is ${gd} for the baseline`;
      figures.textContent = `${text} (orange) and ${ggd} for ours (blue).`;
      status.say(`${name}, dimension ${i}. ${text} and ${ggd} for ours.`);
    }
  },
};
