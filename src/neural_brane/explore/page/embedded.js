// The same questions as to the server, answered from the data within this file: columns of numbers and lists of names.

const MOST_FOUND = 12;
const MOST_NEIGHBOURS = 60;
const MOST_ATTRIBUTES = 80;
const MOST_LISTED = 15;
const MOST_EDGES = 20000;

export async function embeddedApi(element) {
  const data = JSON.parse(element.textContent);
  const array = (name, Kind) => {
    const text = atob(data.arrays[name]);
    return new Kind(Uint8Array.from(text, (letter) => letter.charCodeAt(0)).buffer);
  };
  return new Embedded(data, array).questions();
}

class Embedded {
  constructor(data, array) {
    Object.assign(this, data.names); // ids, attributes, labels
    this.data = data;
    this.array = array;
    this.total = this.ids.length;
    this.columns = data.columns;
    this.codes = data.columns.label ? array("label", Uint16Array) : null;
    this.links = { start: array("link_start", Uint32Array), rows: array("link_rows", Uint32Array), weights: array("link_weights", Float32Array) };
    this.had = { start: array("had_start", Uint32Array), columns: array("had_columns", Uint32Array), amounts: array("had_amounts", Float32Array) };
    this.counts = new Uint32Array(this.attributes.length);
    for (const column of this.had.columns) this.counts[column]++;
    this.nearest = data.about.runs.map((_, run) => ({
      rows: array(`nearest_rows_${run}`, Uint32Array),
      cosines: array(`nearest_cosines_${run}`, Float32Array),
      scores: data.arrays[`nearest_scores_${run}`] === undefined ? null : array(`nearest_scores_${run}`, Float32Array),
    }));
    this.attributeAt = new Map(this.attributes.map((word, at) => [word, at]));
  }

  questions() {
    return {
      about: async () => this.data.about,
      points: async (run, layout) => this.array(`points_${run}_${layout}`, Float32Array),
      regions: async (run, layout) => this.data.regions[`${run}_${layout}`],
      column: async (name) => this.column(name),
      search: async (text) => this.search(text.trim().toLowerCase()),
      rows: async (kind, name) => this.rowsOf(kind, name),
      hover: async (row) => ({ ...this.brief(row), degree: this.neighbours(row).length, neighbours: this.neighbours(row).slice(0, 500) }),
      card: async (row) => this.card(row),
      reasons: async () => ({}), // only a model can tell
      pair: async (one, other) => this.pair(one, other),
      summary: async (rows) => this.summary(rows),
      described: async (rows) => Array.from(rows, (row) => [this.ids[row], this.label(row)]),
      edges: async (rows) => this.edges(rows),
    };
  }

  label(row) {
    return this.codes ? (this.columns.label.names[this.codes[row]] ?? "") : "";
  }

  brief(row) {
    return { row, id: this.ids[row], label: this.label(row) };
  }

  // The neighbours of a node, by the weight of the edge.
  neighbours(row) {
    const { start, rows, weights } = this.links;
    const places = Array.from({ length: start[row + 1] - start[row] }, (_, at) => start[row] + at);
    return places.sort((a, b) => weights[b] - weights[a] || a - b).map((at) => rows[at]);
  }

  // The attributes of a node with their amounts, the rarest first.
  attributesOf(row) {
    const { start, columns, amounts } = this.had;
    const places = Array.from({ length: start[row + 1] - start[row] }, (_, at) => start[row] + at);
    places.sort((a, b) => this.counts[columns[a]] - this.counts[columns[b]] || a - b);
    return places.map((at) => [this.attributes[columns[at]], amounts[at]]);
  }

  // The nodes that have an attribute, and how much of it.
  withAttribute(name) {
    const wanted = this.attributeAt.get(name);
    const rows = [];
    const amounts = [];
    for (let row = 0; row < this.total; row++) {
      for (let at = this.had.start[row]; at < this.had.start[row + 1]; at++) {
        if (this.had.columns[at] === wanted) {
          rows.push(row);
          amounts.push(this.had.amounts[at]);
        }
      }
    }
    if (!rows.length) throw new Error(`no node has an attribute '${name}'; search for one by a part of its name`);
    return { rows, amounts };
  }

  column(name) {
    if (!name.startsWith("attribute:")) {
      const about = this.columns[name];
      if (!about) throw new Error(`there is no colour '${name}'`);
      return { about, values: this.array(name, about.kind === "number" ? Float32Array : Uint16Array) };
    }
    const title = name.slice("attribute:".length);
    const { rows, amounts } = this.withAttribute(title);
    if (amounts.some((amount) => amount !== amounts[0])) {
      const values = new Float32Array(this.total);
      rows.forEach((row, at) => (values[row] = amounts[at]));
      return { about: { title, kind: "number", low: values.reduce((a, b) => Math.min(a, b)), high: values.reduce((a, b) => Math.max(a, b)) }, values };
    }
    const values = new Uint16Array(this.total).fill(1);
    for (const row of rows) values[row] = 0;
    const counts = [rows.length, this.total - rows.length];
    return { about: { title, kind: "category", names: [`has ${title}`, "has it not"], counts, none: 0, plain: [1] }, values };
  }

  search(wanted) {
    const nodes = wanted ? matches(this.ids, wanted) : [];
    const labels = this.columns.label ?? { names: [], counts: [] };
    return {
      nodes: nodes.slice(0, MOST_FOUND).map((row) => this.brief(row)),
      node_total: nodes.length,
      attributes: matches(this.attributes, wanted).slice(0, MOST_FOUND).map((at) => [this.attributes[at], this.counts[at]]),
      labels: matches(labels.names, wanted).slice(0, MOST_FOUND).map((at) => [labels.names[at], labels.counts[at]]),
    };
  }

  rowsOf(kind, name) {
    if (kind === "attribute") return Uint32Array.from(this.withAttribute(name).rows);
    if (kind === "label") return Uint32Array.from(this.ids.keys()).filter((row) => this.label(row) === name);
    return Uint32Array.from(matches(this.ids, name.trim().toLowerCase())).sort();
  }

  nearestOf(run, row) {
    const { rows, cosines, scores } = this.nearest[run];
    const width = rows.length / this.total;
    const linked = new Set(this.neighbours(row));
    return Array.from({ length: width }, (_, at) => row * width + at).map((at) => ({
      ...this.brief(rows[at]),
      cosine: cosines[at],
      score: scores ? scores[at] : null,
      linked: linked.has(rows[at]),
    }));
  }

  card(row) {
    const attributes = this.attributesOf(row);
    const neighbours = this.neighbours(row);
    const weight = new Map();
    for (let at = this.links.start[row]; at < this.links.start[row + 1]; at++) weight.set(this.links.rows[at], this.links.weights[at]);
    return {
      ...this.brief(row),
      attributes: attributes.slice(0, MOST_ATTRIBUTES),
      attribute_total: attributes.length,
      neighbours: neighbours.slice(0, MOST_NEIGHBOURS).map((other) => ({ ...this.brief(other), weight: weight.get(other) })),
      neighbour_total: neighbours.length,
      nearest: this.nearest.map((_, run) => this.nearestOf(run, row)),
    };
  }

  pair(one, other) {
    const first = this.attributesOf(one).map(([word]) => word);
    const second = new Set(this.attributesOf(other).map(([word]) => word));
    const shared = first.filter((word) => second.has(word));
    const theirs = new Set(this.neighbours(other));
    const ours = this.neighbours(one);
    const common = ours.filter((row) => theirs.has(row)).sort((a, b) => a - b);
    return {
      nodes: [this.brief(one), this.brief(other)],
      cosines: this.nearest.map((_, run) => this.nearestOf(run, one).find((node) => node.row === other)?.cosine ?? null),
      score: this.nearestOf(0, one).find((node) => node.row === other)?.score ?? null,
      linked: ours.includes(other),
      attributes: shared,
      only: [first.length - shared.length, second.size - shared.length],
      neighbours: common.slice(0, MOST_NEIGHBOURS).map((row) => this.brief(row)),
      neighbour_total: common.length,
    };
  }

  summary(rows) {
    const inside = new Uint32Array(this.attributes.length);
    const classes = new Map();
    const chosen = new Set(rows);
    let edges = 0;
    for (const row of rows) {
      for (let at = this.had.start[row]; at < this.had.start[row + 1]; at++) inside[this.had.columns[at]]++;
      if (this.label(row)) classes.set(this.codes[row], (classes.get(this.codes[row]) ?? 0) + 1);
      for (const other of this.neighbours(row)) if (chosen.has(other)) edges += other === row ? 2 : 1;
    }
    const lift = (at) => inside[at] / ((this.counts[at] * rows.length) / this.total);
    const fewest = rows.length > 3 ? 2 : 1;
    const surprise = (at) => inside[at] * Math.log(lift(at));
    const best = [...inside.keys()].filter((at) => inside[at] >= fewest && lift(at) > 1);
    best.sort((a, b) => surprise(b) - surprise(a) || a - b);
    const labels = [...classes].sort(([one, a], [other, b]) => b - a || one - other);
    return {
      count: rows.length,
      classes: labels.slice(0, MOST_LISTED).map(([code, number]) => [this.columns.label.names[code], number, this.columns.label.counts[code]]),
      class_total: labels.length,
      attributes: best.slice(0, MOST_LISTED).map((at) => [this.attributes[at], inside[at], this.counts[at], lift(at)]),
      edges: edges / 2,
    };
  }

  edges(rows) {
    const pairs = [];
    const chosen = new Set(rows);
    for (const row of rows) {
      for (const other of this.neighbours(row)) {
        if ((!chosen.has(other) || row <= other) && pairs.length < 2 * MOST_EDGES) pairs.push(row, other);
      }
    }
    return Uint32Array.from(pairs);
  }
}

// The places of names that hold a text: those that are it, those that begin with it, then the shortest.
function matches(names, wanted) {
  if (!wanted) return [];
  const found = [];
  names.forEach((given, at) => {
    const text = given.toLowerCase();
    if (text.includes(wanted)) found.push({ at, rank: text === wanted ? 0 : text.startsWith(wanted) ? 1 : 2, length: text.length });
  });
  return found.sort((a, b) => a.rank - b.rank || a.length - b.length || a.at - b.at).map(({ at }) => at);
}
