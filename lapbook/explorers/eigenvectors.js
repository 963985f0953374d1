// Chapter 1: one eigenvector at a time, on its map and in the spectrum.
import { announcer, bind, choice, frame, h, heatmap, plot, readMap, slider, unpack } from "./common.js";

export default {
  render({ model, el }) {
    const data = model.get("data");
    const box = frame(el, "Explore eigenvectors");
    const maps = Object.fromEntries(
      Object.entries(data).map(([name, entry]) => [
        name,
        { map: readMap(entry.text), vectors: unpack(entry), values: entry.values },
      ]),
    );
    const figures = h("p", { class: "lb-figures" });
    const status = announcer();
    const picture = h("figure");
    const spectrum = plot({
      xlabel: "dimension i",
      ylabel: "eigenvalue",
      label: "The eigenvalues in order, the chosen one marked",
    });
    let canvas = null;

    const setLayout = bind(model, "map", update);
    const setDimension = bind(model, "dimension", update);
    const maze = choice({ label: "Map", options: Object.keys(maps), value: model.get("map"), onchange: setLayout });
    const dimension = slider({
      label: "Dimension i",
      min: 1,
      max: 20,
      value: model.get("dimension"),
      onchange: setDimension,
    });
    box.append(
      h("div", { class: "lb-row" }, maze.element, dimension.element),
      h("div", { class: "lb-row" }, picture, spectrum.element),
      figures,
      status.element,
    );
    update();

    function update() {
      const name = model.get("map");
      const i = model.get("dimension");
      const { map, vectors, values } = maps[name];
      if (canvas?.map !== map) {
        canvas = { map, ...heatmap(map) };
        picture.replaceChildren(canvas.element);
      }
      const u = vectors[i - 1];
      canvas.draw(u, Math.max(...u.map(Math.abs)));
      canvas.describe(`Eigenvector ${i} on ${name}, red positive, blue negative`);
      const index = values.map((_, k) => k + 1);
      spectrum.draw(
        [
          { x: index, y: values, kind: "dots" },
          { x: [i], y: [values[i - 1]], kind: "mark", className: "lb-second" },
        ],
        { x: [1, values.length], y: [0, values[values.length - 1]] },
      );
      maze.select.value = name;
      dimension.set(i);
      const scale =
        i === 1 ? "it never fades" : `a random walk forgets it in about ${Math.round(4 / values[i - 1])} steps`;
      figures.textContent = `λ${i} = ${values[i - 1].toFixed(4)}; ${scale}.`;
      status.say(`${name}, dimension ${i}, eigenvalue ${values[i - 1].toFixed(4)}`);
    }
  },
};
