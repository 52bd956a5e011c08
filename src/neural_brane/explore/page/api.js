// What can be asked about the nodes: of the server that served this page, or of the data within the page's own file.

import { embeddedApi } from "./embedded.js";

export async function openApi() {
  const data = document.getElementById("data");
  return data ? embeddedApi(data) : serverApi();
}

function serverApi() {
  const ask = async (path, given = {}, options = {}) => {
    let answer;
    try {
      answer = await fetch(`api/${path}?${new URLSearchParams(given)}`, options);
    } catch {
      throw new Error("The server has ended. Start 'brane explore' again, and open the address that it prints.");
    }
    if (!answer.ok) throw new Error(await answer.text());
    return answer;
  };
  const json = async (...asked) => (await ask(...asked)).json();
  const bytes = async (...asked) => (await ask(...asked)).arrayBuffer();
  const send = (rows) => ({ method: "POST", body: Uint32Array.from(rows) });
  return {
    about: () => json("about"),
    points: async (run, layout) => new Float32Array(await bytes("points", { run, layout })),
    regions: (run, layout) => json("regions", { run, layout }),
    column: async (name) => unpack(await bytes("column", { name })),
    search: (text) => json("search", { text }),
    rows: async (kind, name) => new Uint32Array(await bytes("rows", { kind, name })),
    hover: (row) => json("hover", { row }),
    card: (row) => json("card", { row }),
    reasons: (row) => json("reasons", { row }),
    pair: (one, other) => json("pair", { one, other }),
    summary: (rows) => json("summary", {}, send(rows)),
    described: (rows) => json("described", {}, send(rows)),
    edges: async (rows) => new Uint32Array(await bytes("edges", {}, send(rows))),
  };
}

// A description as JSON, and numbers after it: whole ones of two bytes for classes, floats of four for amounts.
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const Kind = about.kind === "number" ? Float32Array : Uint16Array;
  return { about, values: new Kind(buffer, 4 + length) };
}
