// The state of the page in its address, after the #, so that people can reload, bookmark and send it.

export const MOST_ROWS = 20000; // largest selection in an address

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
  const written = new URLSearchParams();
  const set = (name, value) => value !== null && value !== undefined && value !== "" && written.set(name, value);
  set("colour", state.colour);
  set("map", state.layout);
  if (state.run) set("run", state.run);
  set("beside", state.second);
  set("node", state.node);
  set("with", state.other);
  set("hide", [...state.hidden].join(","));
  if (camera) set("view", camera.map((part) => Number(part.toFixed(4))).join(","));
  if (state.selection.length <= MOST_ROWS) set("select", packRows(state.selection));
  for (const { name, rows } of state.kept) {
    if (rows.length <= MOST_ROWS) written.append("kept", `${packRows(rows)}~${name}`);
  }
  history.replaceState(null, "", `#${written}`);
}

// Pack ascending rows: the differences between them, seven bits per byte, in base64 for addresses.
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
