// Chapter 2: turn two eigenvectors in their plane; graph drawing does not notice, decreasing coefficients do.
import { announcer, bind, frame, generalized, h, heatmap, plot, readMap, slider, unpack } from "./common.js";

/** u_i and u_j turned by an angle (degrees) in their plane. */
export function turn(u, v, degrees) {
  const [cos, sin] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  return [u.map((x, s) => cos * x + sin * v[s]), u.map((x, s) => -sin * x + cos * v[s])];
}

/** (c_i - c_j)(λ_j - λ_i) sin²θ */
export const planeGap = (degrees, c, values) =>
  (c[0] - c[1]) * (values[1] - values[0]) * Math.sin((degrees * Math.PI) / 180) ** 2;

export default {
  render({ model, el }) {
    const entry = Object.values(model.get("data"))[0];
    const map = readMap(entry.text);
    const vectors = unpack(entry);
    const d = model.get("coefficients").length;
    const box = frame(el, "Turn two eigenvectors in their plane");
    const first = heatmap(map);
    const second = heatmap(map);
    const curves = plot({
      xlabel: "angle (degrees)",
      ylabel: "gap",
      label: "Both objectives against the angle, with a marker at the chosen angle",
    });
    const figures = h("p", { class: "lb-figures" });
    const status = announcer();
    const setPlane = bind(model, "plane", update);
    const setAngle = bind(model, "angle", update);
    const i = slider({
      label: "First vector i",
      min: 1,
      max: d - 1,
      value: 1,
      onchange: (value) => setPlane([value, Math.max(value + 1, model.get("plane")[1])]),
    });
    const j = slider({
      label: "Second vector j",
      min: 2,
      max: d,
      value: 2,
      onchange: (value) => setPlane([Math.min(value - 1, model.get("plane")[0]), value]),
    });
    const angle = slider({
      label: "Angle",
      min: -90,
      max: 90,
      value: 0,
      show: (value) => `${value}°`,
      onchange: setAngle,
    });
    const [left, right] = [h("figcaption"), h("figcaption")];
    box.append(
      h("div", { class: "lb-row" }, i.element, j.element, angle.element),
      h(
        "div",
        { class: "lb-row" },
        h("figure", {}, first.element, left),
        h("figure", {}, second.element, right),
        curves.element,
      ),
      figures,
      status.element,
    );
    update();

    function update() {
      const [a, b] = model.get("plane");
      const theta = model.get("angle");
      const c = model.get("coefficients");
      const pair = [c[a - 1], c[b - 1]];
      const values = [entry.values[a - 1], entry.values[b - 1]];
      const U = turn(vectors[a - 1], vectors[b - 1], theta);
      const limit = Math.max(...vectors[a - 1].map(Math.abs), ...vectors[b - 1].map(Math.abs));
      first.draw(U[0], limit);
      second.draw(U[1], limit);
      first.describe(`Eigenvector ${a} turned by ${theta} degrees`);
      second.describe(`Eigenvector ${b} turned by ${theta} degrees`);
      left.textContent = `u${a}`;
      right.textContent = `u${b}`;
      // Measured on the turned vectors, not taken from the formula that draws the curve.
      const weighted = generalized(map, U, pair) - pair[0] * values[0] - pair[1] * values[1];
      const plain = generalized(map, U, [1, 1]) - values[0] - values[1];
      const grid = Array.from({ length: 61 }, (_, k) => -90 + 3 * k);
      const curve = grid.map((degrees) => planeGap(degrees, pair, values));
      curves.draw(
        [
          { x: grid, y: grid.map(() => 0), kind: "line", className: "lb-second" },
          { x: grid, y: curve, kind: "line" },
          { x: [theta], y: [plain], kind: "mark", className: "lb-second" },
          { x: [theta], y: [weighted], kind: "mark" },
        ],
        { x: [-90, 90], y: [0, Math.max(...curve) * 1.08] },
      );
      i.set(a);
      j.set(b);
      angle.set(theta);
      figures.textContent = `Graph drawing (orange): ${Math.abs(plain).toFixed(5)} above its minimum. With c = ${pair.join(" and ")} (blue): ${weighted.toFixed(5)}.`;
      status.say(
        `Plane ${a}, ${b}, angle ${theta} degrees: graph drawing gap ${Math.abs(plain).toFixed(5)}, generalized gap ${weighted.toFixed(5)}`,
      );
    }
  },
};
