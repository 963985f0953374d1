// Chapter 7: an option climbs one dimension, up or down, until no step leads further.
import { announcer, bind, choice, diverging, frame, h, slider } from "./common.js";
import { MARKS, arrange, arrows, board, climb, many, moveTo, place, readWorlds, swatch, walk } from "./cells.js";

/** Steps until the option ends, the mean over the states where it can begin. */
export function meanLength(next) {
  const lengths = next.map((_, s) => walk(next, s).length - 1).filter((steps) => steps > 0);
  return lengths.reduce((sum, steps) => sum + steps, 0) / lengths.length;
}

const DIRECTIONS = { "to larger values": 1, "to smaller values": -1 };
const EXTREMA = { 1: ["a local maximum", "the local maxima"], "-1": ["a local minimum", "the local minima"] };
const direction = (sign) => Object.keys(DIRECTIONS).find((name) => DIRECTIONS[name] === sign);

export default {
  render({ model, el }) {
    const box = frame(el, "Follow an option");
    const worlds = readWorlds(model.get("data"));
    const { names, d } = Object.values(worlds)[0];
    const figures = h("p", { class: "lb-figures" });
    const status = announcer();
    const picture = board(bind(model, "start", update));
    bind(model, "map", update);
    const map = choice({
      label: "Map",
      options: Object.keys(worlds),
      value: model.get("map"),
      onchange: (name) => moveTo(model, worlds, name, "start"),
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
    const setSign = bind(model, "sign", update);
    const sign = choice({
      label: "Direction",
      options: Object.keys(DIRECTIONS),
      value: direction(model.get("sign")),
      onchange: (name) => setSign(DIRECTIONS[name]),
    });
    const middle = [0.75, 0.75];
    arrange(box, {
      controls: [map, representation, dimension, sign],
      picture,
      figures,
      status,
      meaning: [
        [MARKS.dot(...middle, "lb-gold", 0.4), "start: click a cell, or use the arrow keys on the map"],
        [MARKS.line("0.2,0.75 1.3,0.75"), "the walk from there"],
        [`<path class="lb-arrow" d="${MARKS.arrow(...middle, [0, 1])}"/>`, "the step that the option takes"],
        [MARKS.dot(...middle), "where it ends"],
        [swatch([-0.8, -0.4, 0, 0.4, 0.8].map(diverging)), "the dimension: small to large"],
      ],
    });
    update();

    function update() {
      const name = model.get("map");
      const [i, up, kind] = [model.get("dimension"), model.get("sign"), model.get("representation")];
      const world = worlds[name];
      const u = world.vectors[kind][i - 1];
      const start = Math.min(model.get("start"), world.map.n - 1);
      const next = climb(world.map, up === 1 ? u : u.map((x) => -x));
      const way = walk(next, start);
      const states = next.map((_, s) => s);
      const ends = states.filter((s) => next[s] === s);
      const limit = Math.max(...u.map(Math.abs)) || 1;
      const colours = Array.from(u, (x) => diverging(x / limit));
      const at = (s) => [world.map.cells[s][1] + 0.5, world.map.cells[s][0] + 0.5];
      const moving = states.filter((s) => next[s] !== s && !way.includes(s));
      picture.show(
        world.map,
        start,
        colours,
        arrows(world.map, next, moving, colours) +
          MARKS.line(way.map((s) => at(s).join(",")).join(" ")) +
          ends.map((s) => MARKS.dot(...at(s))).join("") +
          MARKS.dot(...at(way[way.length - 1]), "lb-gold", 0.12) +
          MARKS.dot(...at(start), "lb-gold", 0.4),
      );
      map.select.value = name;
      representation.select.value = kind;
      dimension.set(i);
      sign.select.value = direction(up);
      const here = place(world.map, start);
      const begins = world.map.n - ends.length;
      const text = [
        way.length > 1
          ? `From ${here} the option takes ${many(way.length - 1, "step")}.`
          : `The option cannot begin in ${here}, where it ends.`,
        begins && `From the ${begins} states where it can begin it takes ${meanLength(next).toFixed(1)} in the mean.`,
        `It ends in ${many(ends.length, "cell")}, ${EXTREMA[up][ends.length > 1 ? 1 : 0]}.`,
      ]
        .filter(Boolean)
        .join(" ");
      figures.textContent = text;
      picture.describe(`Dimension ${i} of ${kind} on ${name}, arrow keys move the start. ${text}`);
      status.say(`${name}, ${kind}, dimension ${i}, ${direction(up)}. ${text}`);
    }
  },
};
