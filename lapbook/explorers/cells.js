// What the explorers of options and of shaped rewards share: climbing from cell to cell, and a map to pick a cell from.
import { h, readMap, unpack } from "./common.js";

/** Undo lapbook.explorers.base.pack_all: for each map its cells, and for each representation its vectors. */
export function readWorlds(data) {
  return Object.fromEntries(
    Object.entries(data).map(([name, entry]) => {
      const columns = unpack({ ...entry, scale: 1 }); // the integers themselves, so that equal stays equal
      const d = entry.scales[0].length;
      const vectors = Object.fromEntries(entry.names.map((given, k) => [given, columns.slice(k * d, (k + 1) * d)]));
      const scales = Object.fromEntries(entry.names.map((given, k) => [given, entry.scales[k]]));
      return [name, { map: readMap(entry.text), names: entry.names, vectors, scales, d }];
    }),
  );
}

/** Where greedy climbing goes from each state: the best neighbour, the first of equals; a summit leads to itself. */
export function climb(map, values) {
  return map.neighbours.map((around, s) =>
    around.reduce((best, other) => (values[other] > values[best] ? other : best), s),
  );
}

/** The states from `start` to the summit above it. */
export function walk(next, start) {
  const states = [start];
  for (let s = start; next[s] !== s; s = next[s]) states.push(next[s]);
  return states;
}

/** "1 step", "2 steps", "no step". */
export const many = (count, word) => `${count || "no"} ${word}${count > 1 ? "s" : ""}`;

/** A cell in words. */
export const place = (map, s) => `row ${map.cells[s][0]}, column ${map.cells[s][1]}`;

/** The state nearest to a point of the map: a finger that hits a wall means the cell beside it. */
export function nearest(map, row, column) {
  const far = map.cells.map(([r, c]) => (r - row) ** 2 + (c - column) ** 2);
  return far.indexOf(Math.min(...far));
}

const KEYS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** The next state in a direction, across walls; s itself where there is none. */
export function beyond(map, s, [down, right]) {
  const [row, column] = map.cells[s];
  let [found, shortest] = [s, Infinity];
  map.cells.forEach(([r, c], t) => {
    const ahead = (r - row) * down + (c - column) * right;
    const aside = (r - row) * right + (c - column) * down;
    if (aside === 0 && ahead > 0 && ahead < shortest) [found, shortest] = [t, ahead];
  });
  return found;
}

const BOARD_STYLE = `
.lb-explorer .lb-controls { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); gap: 0.4rem 1.2rem; max-width: 42rem; margin: 0 0 0.8rem; }
.lb-explorer .lb-controls label { min-width: 7rem; }
.lb-explorer .lb-controls select { flex: 0 1 11rem; }
.lb-explorer .lb-controls input[type="range"] { flex: 0 1 9rem; width: 9rem; }
.lb-explorer .lb-controls output { min-width: 1.5rem; }
.lb-explorer .lb-controls .lb-control:has(:disabled) { opacity: 0.45; }
.lb-explorer .lb-board { position: relative; width: 26rem; max-width: 100%; cursor: pointer; border-radius: 3px; }
.lb-explorer .lb-board:focus-visible { outline: 2px solid var(--lb-accent); outline-offset: 3px; }
.lb-explorer .lb-board canvas { display: block; width: 100%; }
.lb-explorer .lb-board svg { position: absolute; inset: 0; width: 100%; height: 100%; background: none; pointer-events: none; }
.lb-explorer .lb-side { flex: 1 1 12rem; min-width: 0; }
.lb-explorer .lb-side p { margin: 0 0 0.9rem; }
.lb-explorer .lb-key { list-style: none; margin: 0; padding: 0; font-size: 0.85rem; }
.lb-explorer .lb-key li { display: flex; gap: 0.5rem; align-items: center; margin: 0 0 0.3rem; line-height: 1.3; }
.lb-explorer .lb-key svg { flex: none; width: 1.5rem; height: 1.5rem; background: none; }
.lb-explorer .lb-rim { fill: none; stroke: var(--lb-line); stroke-width: 0.05; }
.lb-explorer .lb-arrow { fill: none; stroke-width: 0.075; stroke-linecap: round; stroke-linejoin: round; stroke: #1f2937; opacity: 0.75; }
.lb-explorer .lb-arrow.lb-pale { stroke: #fff; opacity: 0.85; }
.lb-explorer .lb-key .lb-arrow { stroke: currentColor; }
.lb-explorer .lb-walk { fill: none; stroke: #1f2937; stroke-width: 0.36; stroke-linecap: round; stroke-linejoin: round; }
.lb-explorer .lb-walk.lb-inner { stroke: #fcd34d; stroke-width: 0.2; }
.lb-explorer .lb-mark { fill: #fff; stroke: #1f2937; stroke-width: 0.1; stroke-linejoin: round; paint-order: stroke; }
.lb-explorer .lb-mark.lb-gold { fill: #fcd34d; }
@media (prefers-reduced-motion: no-preference) {
  .lb-explorer .lb-board .lb-walk { stroke-dasharray: 1; animation: lb-draw 0.6s ease-out; }
  @keyframes lb-draw { from { stroke-dashoffset: 1; } to { stroke-dashoffset: 0; } }
}
`;

/** Parts of a drawing in units of a cell, as SVG text; (x, y) is the middle of the cell. */
export const MARKS = {
  dot: (x, y, kind = "", r = 0.3) => `<circle class="lb-mark ${kind}" cx="${x}" cy="${y}" r="${r}"/>`,
  summit: (x, y) => `<path class="lb-mark" d="M${x},${y - 0.34}l0.36,0.62h-0.72z"/>`,
  star: (x, y) =>
    `<path class="lb-mark lb-gold" d="M${Array.from({ length: 10 }, (_, k) => {
      const [r, turn] = [k % 2 ? 0.25 : 0.56, (k * Math.PI) / 5];
      return `${(x + r * Math.sin(turn)).toFixed(2)},${(y - r * Math.cos(turn)).toFixed(2)}`;
    }).join("L")}z"/>`,
  arrow: (x, y, [down, right]) => {
    const at = (along, aside) =>
      `${(x + along * right + aside * down).toFixed(2)},${(y + along * down + aside * right).toFixed(2)}`;
    return `M${at(-0.24, 0)}L${at(0.24, 0)}M${at(0.06, -0.17)}L${at(0.24, 0)}L${at(0.06, 0.17)}`;
  },
  line: (points) =>
    ["", " lb-inner"].map((kind) => `<polyline class="lb-walk${kind}" pathLength="1" points="${points}"/>`).join(""),
};

/** The arrows of some states, dark on light cells and light on dark ones. */
export function arrows(map, next, states, colours) {
  const strokes = { "": "", "lb-pale": "" };
  for (const s of states) {
    const [[row, column], [r, c]] = [map.cells[s], map.cells[next[s]]];
    const [red, green, blue] = colours[s];
    const kind = 0.3 * red + 0.59 * green + 0.11 * blue < 135 ? "lb-pale" : "";
    strokes[kind] += MARKS.arrow(column + 0.5, row + 0.5, [r - row, c - column]);
  }
  return Object.entries(strokes)
    .map(([kind, d]) => `<path class="lb-arrow ${kind}" d="${d}"/>`)
    .join("");
}

/** Five colours side by side, for the key. */
export const swatch = (colours) =>
  colours.map((rgb, k) => `<rect x="${0.29 * k}" y="0.4" width="0.3" height="0.7" fill="rgb(${rgb})"/>`).join("") +
  `<rect class="lb-rim" x="0.02" y="0.4" width="1.44" height="0.7"/>`;

/** What the marks mean: pairs of a drawing around (0.75, 0.75) and its name. */
function key(pairs) {
  const items = pairs.map(([drawing, name]) => {
    const item = h("li", {});
    item.innerHTML = `<svg viewBox="0 0 1.5 1.5" aria-hidden="true">${drawing}</svg>`;
    item.append(name);
    return item;
  });
  return h("ul", { class: "lb-key" }, ...items);
}

/** Fill the box of an explorer: the controls, below them the map, beside it the text and the key. */
export function arrange(box, { controls, picture, figures, status, meaning }) {
  box.append(
    h("style", {}, BOARD_STYLE),
    h("div", { class: "lb-controls" }, ...controls.map((control) => control.element)),
    h("div", { class: "lb-row" }, picture.element, h("div", { class: "lb-side" }, figures, key(meaning))),
    status.element,
  );
}

/**
 * A map in which one cell is picked, by a click or with the arrow keys. `show(map, picked, colours, drawing)` paints
 * it: colours as [red, green, blue] for each state, the drawing as SVG text in units of a cell.
 */
export function board(onpick) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const overlay = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  overlay.setAttribute("aria-hidden", "true");
  const element = h(
    "div",
    { class: "lb-board", tabindex: "0", role: "application", "data-lm-suppress-shortcuts": "true" },
    canvas,
    overlay,
  );
  let [map, picked] = [null, 0];
  const pick = (s) => s !== picked && onpick(s);
  const point = ({ clientX, clientY }) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const [row, column] = [((clientY - top) / height) * map.rows, ((clientX - left) / width) * map.columns];
    pick(nearest(map, row - 0.5, column - 0.5));
  };
  element.addEventListener("click", point);
  element.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse" && event.buttons === 1) point(event); // a finger that moves scrolls the page
  });
  element.addEventListener("keydown", (event) => {
    if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    pick(beyond(map, picked, KEYS[event.key]));
  });
  return {
    element,
    show(next, state, colours, drawing) {
      [map, picked] = [next, state];
      [canvas.width, canvas.height] = [map.columns, map.rows];
      overlay.setAttribute("viewBox", `0 0 ${map.columns} ${map.rows}`);
      const context = canvas.getContext("2d");
      context.fillStyle = "#3b4252";
      context.fillRect(0, 0, map.columns, map.rows);
      map.cells.forEach(([row, column], s) => {
        context.fillStyle = `rgb(${colours[s].join(" ")})`;
        context.fillRect(column, row, 1, 1);
      });
      overlay.innerHTML = drawing;
    },
    describe: (text) => element.setAttribute("aria-label", text),
  };
}

/** Move to another map and stay at the same place in it. */
export function moveTo(model, worlds, name, trait) {
  const [from, to] = [worlds[model.get("map")].map, worlds[name].map];
  const [row, column] = from.cells[Math.min(model.get(trait), from.n - 1)];
  model.set("map", name);
  model.set(trait, nearest(to, row, column));
  model.save_changes(); // both at once: a state of one map need not be one of the other
}
