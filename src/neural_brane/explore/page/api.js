// Read the page's data from the server or from the page's own file. Both give the same answers.

export function openSource() {
  const element = document.getElementById("data");
  return element ? new FileSource(JSON.parse(element.textContent)) : new ServerSource();
}

class ServerSource {
  async ask(name, query = {}, options = {}) {
    let answer;
    try {
      answer = await fetch(`api/${name}?${new URLSearchParams(query)}`, options);
    } catch {
      throw new Error("The server has stopped. Start 'brane explore' again, and open the address that it prints.");
    }
    if (!answer.ok) throw new Error(await answer.text());
    return unpack(await answer.arrayBuffer());
  }

  get = (name, query) => this.ask(name, query);
  // Return a list for each row; the lists follow one another in arrays, and `start` is where each begins.
  lists = (name, rows, query) => this.ask(name, query, { method: "POST", body: Uint32Array.from(rows) });
  holders = (attribute) => this.ask("holders", { attribute });
  count = (rows) => this.lists("count", rows);
  alike = (one, other) => this.ask("alike", { one, other });
  reasons = (row) => this.ask("reasons", { row });
}

// The file contains the lists of all nodes, but no vectors and no model, so some answers are incomplete.
class FileSource {
  constructor(data) {
    this.data = data;
    this.opened = new Map();
  }

  async get(name, query = {}) {
    const address = `${name}?${new URLSearchParams(query)}`;
    if (!Object.hasOwn(this.data, address)) throw new Error(`This file does not contain ${name} ${Object.values(query).join(" ")}.`);
    if (!this.opened.has(address)) this.opened.set(address, expand(this.data[address]).then(unpack));
    return this.opened.get(address);
  }

  async lists(name, rows, query) {
    const { start, ...arrays } = await this.get(name, query);
    const places = [];
    const begins = [0];
    for (const row of rows) {
      for (let at = start[row]; at < start[row + 1]; at++) places.push(at);
      begins.push(places.length);
    }
    const picked = Object.entries(arrays).map(([key, array]) => [key, array.constructor.from(places, (at) => array[at])]);
    return { start: begins, ...Object.fromEntries(picked) };
  }

  async holders(attribute) {
    const { start, columns, amounts } = await this.get("attributes");
    const found = { rows: [], amounts: [] };
    for (let row = 0, at = 0; at < columns.length; at++) {
      while (at >= start[row + 1]) row++;
      if (columns[at] !== attribute) continue;
      found.rows.push(row);
      found.amounts.push(amounts[at]);
    }
    return found;
  }

  async count(rows) {
    const chosen = new Set(rows);
    const { columns } = await this.lists("attributes", chosen);
    const links = await this.lists("links", chosen);
    const found = new Map();
    for (const column of columns) found.set(column, (found.get(column) ?? 0) + 1);
    let ends = 0;
    [...chosen].forEach((row, at) => {
      for (const other of links.rows.subarray(links.start[at], links.start[at + 1])) if (chosen.has(other)) ends += other === row ? 2 : 1;
    });
    return { columns: [...found.keys()], found: [...found.values()], edges: ends / 2 };
  }

  async alike(one, other) {
    const { runs } = await this.get("about");
    const lists = await Promise.all(runs.map((_, run) => this.lists("nearest", [one], { run })));
    const places = lists.map((nearest) => nearest.rows.indexOf(other));
    return { cosines: lists.map((nearest, run) => nearest.cosines[places[run]] ?? null) };
  }

  reasons = async () => ({});
}

const KINDS = { u4: Uint32Array, f4: Float32Array };

// Unpack an answer: the length of a header, the header as JSON, and the arrays that it names.
function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const { plain, arrays } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + length;
  for (const [name, kind, size] of arrays) {
    plain[name] = new KINDS[kind](buffer, at, size);
    at += 4 * size;
  }
  return plain;
}

async function expand(text) {
  const letters = atob(text);
  const packed = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) packed[at] = letters.charCodeAt(at);
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}
