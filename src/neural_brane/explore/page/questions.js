// Answer the page's questions from the data of a source: the server or the page's own file. The rules for search, order
// and length of lists are here, except those that Python needs too: it includes their results in the data.

const MOST_FOUND = 12; // search results of each kind
const MOST_NEIGHBOURS = 60; // neighbours in a card; the map shows all
const MOST_ATTRIBUTES = 80; // attributes in a card
const MOST_HOVERED = 500; // edges drawn for the node under the pointer
const MOST_LISTED = 15; // typical attributes and labels of a selection
const MOST_EDGES = 20000; // edges drawn for a selection

export class Questions {
  constructor(source) {
    this.source = source;
  }

  about = () => this.source.get("about");
  points = async (run, layout) => (await this.source.get("points", { run, layout })).values;
  regions = async (run, layout) => (await this.source.get("regions", { run, layout })).levels;

  // Load the names and labels of all nodes, once.
  async known() {
    this.loaded ??= this.load();
    try {
      return await this.loaded;
    } catch (error) {
      this.loaded = null;
      throw error;
    }
  }

  async load() {
    const [names, about] = await Promise.all([this.source.get("names"), this.about()]);
    const labelled = about.columns.some((column) => column.name === "label");
    const label = labelled ? await this.source.get("column", { name: "label" }) : { names: [], counts: [], values: [] };
    const brief = (row) => ({ row, id: names.ids[row], label: label.names[label.values[row]] ?? "" });
    return { ...names, label, brief, total: about.nodes, runs: about.runs };
  }

  async described(rows) {
    const { brief } = await this.known();
    return Array.from(rows, brief).map(({ id, label }) => [id, label]);
  }

  // Return the values that colour the nodes.
  async column(name) {
    if (!name.startsWith("attribute:")) return this.source.get("column", { name });
    const title = name.slice("attribute:".length);
    const { rows, amounts } = await this.holders(title);
    const { total } = await this.known();
    if (amounts.some((amount) => amount !== amounts[0])) {
      const values = new Float32Array(total);
      rows.forEach((row, at) => (values[row] = amounts[at]));
      return { title, kind: "number", values };
    }
    const values = new Uint32Array(total).fill(1);
    for (const row of rows) values[row] = 0;
    const counts = [rows.length, total - rows.length];
    return { title, kind: "category", names: [`with ${title}`, `without ${title}`], counts, none: 0, plain: [1], values };
  }

  async holders(attribute) {
    const at = (await this.known()).attributes.indexOf(attribute);
    if (at < 0) throw new Error(`No node has the attribute '${attribute}'. Search for a part of its name.`);
    return this.source.holders(at);
  }

  // Find ids, attributes and labels that contain a text; upper and lower case are the same.
  async search(text) {
    const { ids, attributes, holders, label, brief } = await this.known();
    const nodes = matches(ids, text);
    return {
      nodes: nodes.slice(0, MOST_FOUND).map(brief),
      node_total: nodes.length,
      attributes: matches(attributes, text).slice(0, MOST_FOUND).map((at) => [attributes[at], holders[at]]),
      labels: matches(label.names, text).slice(0, MOST_FOUND).map((at) => [label.names[at], label.counts[at]]),
    };
  }

  // Return the nodes with an attribute or a label, or with an id that contains a text.
  async rows(kind, name) {
    if (kind === "attribute") return Uint32Array.from((await this.holders(name)).rows).sort();
    const { ids, label } = await this.known();
    if (kind === "id") return Uint32Array.from(matches(ids, name)).sort();
    const code = label.names.indexOf(name);
    return Uint32Array.from(ids.keys()).filter((row) => label.values[row] === code);
  }

  async hover(row) {
    const [{ brief }, links] = await Promise.all([this.known(), this.source.lists("links", [row])]);
    return { ...brief(row), degree: links.rows.length, neighbours: Array.from(links.rows.slice(0, MOST_HOVERED)) };
  }

  // Return the attributes, neighbours and nearest nodes of one node.
  async card(row) {
    const known = await this.known();
    const lists = known.runs.map((_, run) => this.source.lists("nearest", [row], { run }));
    const [links, had, ...nearest] = await Promise.all([
      this.source.lists("links", [row]),
      this.source.lists("attributes", [row]),
      ...lists,
    ]);
    const linked = new Set(links.rows);
    return {
      ...known.brief(row),
      attributes: Array.from(had.columns.slice(0, MOST_ATTRIBUTES), (column, at) => [known.attributes[column], had.amounts[at]]),
      attribute_total: had.columns.length,
      neighbours: Array.from(links.rows.slice(0, MOST_NEIGHBOURS), (other, at) => ({ ...known.brief(other), weight: links.weights[at] })),
      neighbour_total: links.rows.length,
      nearest: nearest.map(({ rows, cosines }) =>
        Array.from(rows, (other, at) => ({ ...known.brief(other), cosine: cosines[at], linked: linked.has(other) })),
      ),
    };
  }

  // Return the reasons for a node's vector and the links that a model suggests; empty without a model.
  async reasons(row) {
    const [{ brief }, { attributes, neighbours, suggested }] = await Promise.all([this.known(), this.source.reasons(row)]);
    return {
      attributes,
      neighbours: neighbours?.map(([other, share]) => [brief(other), share]),
      suggested: suggested?.map((one) => ({ ...brief(one.row), ...one })),
    };
  }

  // Compare two nodes.
  async pair(one, other) {
    const [known, links, had, alike] = await Promise.all([
      this.known(),
      this.source.lists("links", [one, other]),
      this.source.lists("attributes", [one, other]),
      this.source.alike(one, other),
    ]);
    const [ours, theirs] = parts(links.start, links.rows);
    const [first, second] = parts(had.start, had.columns);
    const shared = common(first, second);
    const neighbours = common(ours, theirs).sort((a, b) => a - b);
    return {
      ...alike,
      nodes: [known.brief(one), known.brief(other)],
      linked: ours.includes(other),
      attributes: shared.map((column) => known.attributes[column]),
      only: [first.length - shared.length, second.length - shared.length],
      neighbours: neighbours.slice(0, MOST_NEIGHBOURS).map(known.brief),
      neighbour_total: neighbours.length,
    };
  }

  // Summarise nodes: their labels, the edges among them, and typical attributes by the rule of `rank_typical` in Python.
  async summary(rows) {
    const [{ attributes, holders, label, total }, counted] = await Promise.all([this.known(), this.source.count(rows)]);
    const inside = new Map();
    for (const row of rows) inside.set(label.values[row], (inside.get(label.values[row]) ?? 0) + 1);
    const classes = [...inside].filter(([code]) => code < label.names.length);
    classes.sort(([one, a], [other, b]) => b - a || one - other);
    const typical = Array.from(counted.columns, (column, at) => {
      const found = counted.found[at];
      const lift = (found * total) / (rows.length * holders[column]);
      return { column, found, lift, score: found > 1 ? (found / rows.length) * Math.log(Math.max(lift, 1)) : 0 };
    }).filter(({ score }) => score > 0);
    typical.sort((one, other) => other.score - one.score || one.column - other.column);
    return {
      count: rows.length,
      classes: classes.slice(0, MOST_LISTED).map(([code, found]) => [label.names[code], found]),
      class_total: classes.length,
      attributes: typical.slice(0, MOST_LISTED).map(({ column, found, lift }) => [attributes[column], found, lift]),
      edges: counted.edges,
    };
  }

  // Return each edge of some nodes once, as pairs of rows; if there are too many to draw, the heaviest.
  async edges(rows) {
    const { start, rows: others, weights } = await this.source.lists("links", rows);
    const chosen = new Set(rows);
    const found = [];
    [...rows].forEach((row, at) => {
      for (let place = start[at]; place < start[at + 1]; place++) {
        if (!chosen.has(others[place]) || row <= others[place]) found.push([row, others[place], weights[place]]);
      }
    });
    if (found.length > MOST_EDGES) found.sort(([, , one], [, , other]) => other - one);
    return Uint32Array.from(found.slice(0, MOST_EDGES).flatMap(([row, other]) => [row, other]));
  }
}

const parts = (start, array) => [0, 1].map((at) => Array.from(array.slice(start[at], start[at + 1])));

function common(ones, others) {
  const both = new Set(others);
  return ones.filter((one) => both.has(one));
}

// Return the indices of names that contain a text: equal names first, then names that begin with it, then the shortest.
function matches(names, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const found = [];
  names.forEach((given, at) => {
    const name = given.toLowerCase();
    if (name.includes(wanted)) found.push({ at, rank: name === wanted ? 0 : name.startsWith(wanted) ? 1 : 2, length: name.length });
  });
  return found.sort((a, b) => a.rank - b.rank || a.length - b.length || a.at - b.at).map(({ at }) => at);
}
