// The selected nodes: their labels and typical attributes, export, and saved selections.

import { MOST_ROWS } from "./address.js";
import { byId, count, download, el, fill, name, plural } from "./dom.js";

export function union(one, other) {
  return Uint32Array.from(new Set([...one, ...other])).sort();
}

export function intersection(one, other) {
  const both = new Set(other);
  return Uint32Array.from(one).filter((row) => both.has(row));
}

export const combine = (before, rows, how) =>
  how === "union" ? union(before, rows) : how === "intersect" ? intersection(before, rows) : rows;

// on: {attribute(name), label(name), clear(), keep(name), take(place), forget(place), describe()}
export function showSelection(rows, summary, kept, on) {
  const section = byId("selection");
  const before = byId("keep-name");
  const [typed, typing] = [before?.value ?? "", before !== null && before === document.activeElement];
  section.hidden = !rows.length && !kept.length;
  fill(section, rows.length ? selected(rows, summary, on) : el("h2", {}, "Selections"), kept.length ? keptList(kept, on) : null);
  const field = byId("keep-name");
  if (field && typed && !kept.some((one) => one.name === typed.trim())) field.value = typed; // drawn again while somebody typed
  if (field && typing) field.focus();
}

function selected(rows, summary, on) {
  const field = el("input", { id: "keep-name", placeholder: "name of the selection", "aria-label": "name of the selection", maxlength: "80" });
  const keep = () => field.value.trim() && on.keep(field.value.trim());
  field.addEventListener("keydown", (event) => event.key === "Enter" && keep());
  return [
    el(
      "div",
      { class: "head" },
      el("h2", { id: "selected" }, `${plural(rows.length, "node")} selected`),
      el("button", { type: "button", class: "plain", onclick: on.clear }, "clear"),
    ),
    summary?.edges ? el("p", { class: "quiet" }, `${plural(summary.edges, "edge")} among them`) : null,
    rows.length > MOST_ROWS ? el("p", { class: "quiet" }, "too many nodes for the address: a reload clears this selection") : null,
    summary ? [classes(summary, on), outstanding(summary, on)] : el("p", { class: "quiet" }, "counting …"),
    el(
      "div",
      { class: "row" },
      el("button", { type: "button", id: "export-csv", onclick: () => exportAs("csv", on) }, "export CSV"),
      el("button", { type: "button", id: "export-json", onclick: () => exportAs("json", on) }, "export JSON"),
    ),
    el("div", { class: "row" }, field, el("button", { type: "button", id: "keep", onclick: keep }, "save")),
  ];
}

function classes(summary, on) {
  if (!summary.classes.length) return null;
  const more = summary.class_total - summary.classes.length;
  return [
    el("h3", {}, "Labels"),
    el(
      "table",
      { id: "classes" },
      summary.classes.map(([word, inside]) => {
        const share = inside / summary.count;
        return el(
          "tr",
          {},
          el("td", {}, el("button", { type: "button", class: "plain", onclick: () => on.label(word) }, name(word))),
          el("td", {}, el("span", { class: "bar", style: { width: `${Math.max(share * 60, 1)}px` } })),
          el("td", {}, count(inside)),
        );
      }),
    ),
    more > 0 ? el("p", { class: "quiet" }, `and ${count(more)} more`) : null,
  ];
}

function outstanding(summary, on) {
  if (!summary.attributes.length) return null;
  return [
    el("h3", {}, "Attributes more common here than in the graph"),
    el(
      "table",
      { id: "outstanding" },
      el("tr", {}, el("th", {}, "attribute"), el("th", {}, "nodes"), el("th", { title: "share of these nodes with the attribute, divided by the share of all nodes" }, "times as common")),
      summary.attributes.map(([word, inside, lift]) =>
        el(
          "tr",
          {},
          el("td", {}, el("button", { type: "button", class: "plain", onclick: () => on.attribute(word) }, name(word))),
          el("td", {}, count(inside)),
          el("td", {}, `${lift < 10 ? lift.toFixed(1) : count(Math.round(lift))} ×`),
        ),
      ),
    ),
  ];
}

function keptList(kept, on) {
  return [
    el("h3", {}, "Saved"),
    el(
      "ul",
      { id: "kept" },
      kept.map((one, place) =>
        el(
          "li",
          { class: "head" },
          el("button", { type: "button", class: "plain", onclick: () => on.take(place) }, name(one.name)),
          el("span", { class: "number" }, count(one.rows.length)),
          el("button", { type: "button", class: "plain", onclick: () => on.forget(place), "aria-label": "remove this selection" }, "✕"),
        ),
      ),
    ),
  ];
}

async function exportAs(format, on) {
  const nodes = await on.describe();
  if (!nodes) return;
  if (format === "json") {
    download("selection.json", "application/json", `${JSON.stringify(nodes.map(([id, label]) => ({ id, label })), null, 1)}\n`);
  } else {
    const lines = [["id", "label"], ...nodes].map((fields) => fields.map(quoted).join(","));
    download("selection.csv", "text/csv", `${lines.join("\r\n")}\r\n`);
  }
}

const quoted = (field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field);
