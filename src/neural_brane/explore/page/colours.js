// Colours for light and dark pages, distinguishable with any colour vision.

const CLASSES = {
  light: ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7a5c00", "#4b2e83", "#88a000", "#8c1d40"],
  dark: ["#3d9be0", "#f0b429", "#2cc295", "#f27b35", "#e39ac2", "#8ad0ff", "#c9a94f", "#a996ee", "#bfd94c", "#e0708f"],
};
const STEPS = {
  light: ["#d9d2a6", "#b3c48f", "#7fb184", "#4a9a84", "#287a8c", "#2b5688", "#33317a"],
  dark: ["#3f4f8f", "#3a6fa0", "#3a92a3", "#52b296", "#8acb7f", "#c6dd74", "#fdf0a0"],
};
const PLAIN = { light: "#b9c0c8", dark: "#59636f" };

export const theme = () =>
  document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

// Return the colour of every group of a column: bright for the largest classes, grey for the others and for no class.
export function groupColours(column) {
  const mode = theme();
  if (column.ordered) {
    const steps = STEPS[mode];
    const last = Math.max(column.names.length - 1, 1);
    return column.names.map((_, at) => steps[Math.round((at / last) * (steps.length - 1))]);
  }
  const bright = CLASSES[mode];
  const plain = new Set(column.plain);
  return column.names.map((_, at) => (plain.has(at) || at >= bright.length ? PLAIN[mode] : bright[at]));
}

export function mapColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (variable) => style.getPropertyValue(variable).trim();
  return { background: read("--map"), strong: read("--text"), edge: read("--edge") };
}

const MOST_STEPS = 7;

// Divide a column into groups: its classes, or a few steps of its numbers. Nodes without a class are the last group.
export function groupsOf(column) {
  if (column.kind === "number") return steps(column);
  const { title, kind, names, counts, none, plain = [], values: codes } = column;
  if (!none) return { title, kind, names, counts, plain, codes };
  const last = names.length;
  return { title, kind, names: [...names, "no label"], counts: [...counts, none], plain: [...plain, last], codes };
}

function steps({ title, values }) {
  const sorted = Float32Array.from(values).sort();
  const edges = [];
  for (let at = 1; at < MOST_STEPS; at++) {
    const value = sorted[Math.floor((at / MOST_STEPS) * sorted.length)];
    if (value > (edges.at(-1) ?? sorted[0])) edges.push(value);
  }
  const codes = new Uint16Array(values.length);
  const counts = new Array(edges.length + 1).fill(0);
  for (let row = 0; row < values.length; row++) {
    let step = 0;
    while (step < edges.length && values[row] >= edges[step]) step++;
    codes[row] = step;
    counts[step]++;
  }
  const whole = values.every(Number.isInteger);
  const names = counts.map((_, step) => {
    const low = step ? edges[step - 1] : sorted[0];
    const high = step < edges.length ? edges[step] : sorted.at(-1);
    if (!whole) return `${short(low)} to ${short(high)}`;
    const last = step < edges.length ? high - 1 : high;
    return low === last ? `${low}` : `${low} to ${last}`;
  });
  return { title, kind: "number", ordered: true, names, counts, plain: [], codes };
}

const short = (number) => String(Number(number.toPrecision(3)));
