// Chapter 8: which pseudo-reward leads to a goal, and where does climbing it get stuck?
import { announcer, bind, choice, frame, h, slider } from "./common.js";
import { MARKS, arrange, arrows, board, climb, many, moveTo, place, readWorlds, swatch, walk } from "./cells.js";

// Colours as in lapbook.plots.SEQUENTIAL.
const PURPLES = ["f7fcfd", "e0ecf4", "bfd3e6", "9ebcda", "8c96c6", "8c6bb1", "88419d", "810f7c", "4d004b"].map((hex) =>
  [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16)),
);

/** Colour of a value in [-1, 0], light to dark, as [red, green, blue]. */
export function sequential(value) {
  const x = (Math.max(-1, Math.min(0, value)) + 1) * (PURPLES.length - 1);
  const k = Math.min(Math.floor(x), PURPLES.length - 2);
  return PURPLES[k].map((low, channel) => Math.round(low + (x - k) * (PURPLES[k + 1][channel] - low)));
}

const square = (x) => x * x;
const distances = (columns, goal) =>
  Float64Array.from(columns[0], (_, s) => Math.sqrt(columns.reduce((sum, u) => sum + square(u[s] - u[goal]), 0)));

/** The pseudo-rewards: how far f is from what it is at the goal. */
export const REWARDS = {
  "one dimension": ({ vectors }, name, i, goal) => {
    const u = vectors[name][i - 1];
    return u.map((x) => -square(x - u[goal]));
  },
  "all dimensions": ({ vectors, scales }, name, i, goal) =>
    distances(
      vectors[name].map((u, k) => u.map((x) => x * scales[name][k])),
      goal,
    ).map((x) => -x),
  position: ({ map }, name, i, goal) =>
    distances(
      [0, 1].map((axis) => map.cells.map((cell) => cell[axis])),
      goal,
    ).map((x) => -x),
};

/** Where climbing a reward leads: from which states to the goal, and at which other states it stops. */
export function climbing(map, reward, goal) {
  const next = climb(map, reward);
  const states = next.map((_, s) => s);
  const reached = states.filter((s) => s !== goal && walk(next, s).includes(goal));
  return { next, reached, summits: states.filter((s) => s !== goal && next[s] === s) };
}

export default {
  render({ model, el }) {
    const box = frame(el, "Shape a reward");
    const worlds = readWorlds(model.get("data"));
    const { names, d } = Object.values(worlds)[0];
    const figures = h("p", { class: "lb-figures" });
    const status = announcer();
    const picture = board(bind(model, "goal", update));
    bind(model, "map", update);
    const map = choice({
      label: "Map",
      options: Object.keys(worlds),
      value: model.get("map"),
      onchange: (name) => moveTo(model, worlds, name, "goal"),
    });
    const kind = choice({
      label: "Reward from",
      options: Object.keys(REWARDS),
      value: model.get("kind"),
      onchange: bind(model, "kind", update),
    });
    const representation = choice({
      label: "Representation",
      options: names,
      value: model.get("representation"),
      onchange: bind(model, "representation", update),
    });
    const dimension = slider({
      label: "Dimension i",
      min: 2,
      max: d,
      value: 2,
      onchange: bind(model, "dimension", update),
    });
    arrange(box, {
      controls: [map, kind, representation, dimension],
      picture,
      figures,
      status,
      meaning: [
        [MARKS.star(0.75, 0.75), "goal: click a cell, or use the arrow keys on the map"],
        [MARKS.summit(0.75, 0.75), "false summit: no step leads to a larger reward"],
        [`<path class="lb-arrow" d="${MARKS.arrow(0.75, 0.75, [0, 1])}"/>`, "climbing leads to the goal"],
        [swatch([-1, -0.75, -0.5, -0.25, 0].map(sequential)), "the reward: small to large"],
      ],
    });
    update();

    function update() {
      const name = model.get("map");
      const [from, features, i] = [model.get("kind"), model.get("representation"), model.get("dimension")];
      const world = worlds[name];
      const goal = Math.min(model.get("goal"), world.map.n - 1);
      const reward = REWARDS[from](world, features, i, goal);
      const { next, reached, summits } = climbing(world.map, reward, goal);
      const lowest = -Math.min(...reward) || 1;
      const colours = Array.from(reward, (x) => sequential(x / lowest));
      const at = (s) => [world.map.cells[s][1] + 0.5, world.map.cells[s][0] + 0.5];
      picture.show(
        world.map,
        goal,
        colours,
        arrows(world.map, next, reached, colours) +
          summits.map((s) => MARKS.summit(...at(s))).join("") +
          MARKS.star(...at(goal)),
      );
      map.select.value = name;
      kind.select.value = from;
      representation.select.value = features;
      representation.select.disabled = from === "position";
      dimension.set(i);
      dimension.input.disabled = from !== "one dimension";
      const text =
        `Climbing reaches the goal in ${place(world.map, goal)} from ${reached.length} of the ${world.map.n - 1} ` +
        `other states. There ${summits.length > 1 ? "are" : "is"} ${many(summits.length, "false summit")}.`;
      figures.textContent = text;
      const what = {
        "one dimension": `dimension ${i} of ${features}`,
        "all dimensions": `all dimensions of ${features}`,
        position: "the position",
      }[from];
      picture.describe(`Reward from ${what} on ${name}, arrow keys move the goal. ${text}`);
      status.say(`${name}, reward from ${what}. ${text}`);
    }
  },
};
