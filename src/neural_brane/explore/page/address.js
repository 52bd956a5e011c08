// The view in the address, after the #: it can be reloaded, kept as a bookmark and sent.

export const MOST_ROWS = 20000; // of a selection that the address can hold

export function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (/^\d+$/.test(given.get(name) ?? "") ? Number(given.get(name)) : null);
  const camera = (given.get("view") ?? "").split(",").map(Number);
  return {
    colour: given.get("colour"),
    layout: given.get("map"),
    run: number("run"),
    second: number("beside"),
    node: number("node"),
    other: number("with"),
    hidden: (given.get("hide") ?? "").split(",").filter(Boolean).map(Number),
    camera: camera.length === 3 && camera.every(Number.isFinite) ? camera : null,
    selection: unpackRows(given.get("select") ?? ""),
    kept: given.getAll("kept").map((text) => {
      const [rows, ...name] = text.split("~");
      return { name: name.join("~"), rows: unpackRows(rows) };
    }),
  };
}

export function writeAddress(state, camera) {
  const said = new URLSearchParams();
  const say = (name, value) => value !== null && value !== undefined && value !== "" && said.set(name, value);
  say("colour", state.colour);
  say("map", state.layout);
  if (state.run) say("run", state.run);
  say("beside", state.second);
  say("node", state.node);
  say("with", state.other);
  say("hide", [...state.hidden].join(","));
  if (camera) say("view", camera.map((part) => Number(part.toFixed(4))).join(","));
  if (state.selection.length <= MOST_ROWS) say("select", packRows(state.selection));
  for (const { name, rows } of state.kept) {
    if (rows.length <= MOST_ROWS) said.append("kept", `${packRows(rows)}~${name}`);
  }
  history.replaceState(null, "", `#${said}`);
}

// Ascending rows as the differences between them, seven bits to a byte, in letters that an address can hold.
export function packRows(rows) {
  let text = "";
  let before = -1;
  for (const row of rows) {
    let gap = row - before;
    before = row;
    while (gap > 127) {
      text += String.fromCharCode((gap & 127) | 128);
      gap >>>= 7;
    }
    text += String.fromCharCode(gap);
  }
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function unpackRows(packed) {
  const rows = [];
  let text;
  try {
    text = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return Uint32Array.of();
  }
  let row = -1;
  let gap = 0;
  let shift = 0;
  for (const letter of text) {
    const code = letter.charCodeAt(0);
    gap += (code & 127) * 2 ** shift;
    shift += 7;
    if (code < 128) {
      row += gap;
      rows.push(row);
      gap = shift = 0;
    }
  }
  return Uint32Array.from(rows);
}
