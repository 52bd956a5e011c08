// The legend: the meaning of each colour, its number of nodes, and a button that hides them.

import { byId, count, el, fill, name, plural } from "./dom.js";

const MOST_LISTED = 200;

// on: {toggle(group), only(group), all()}
export function showLegend(column, colours, hidden, on) {
  const rows = column.names.slice(0, MOST_LISTED).map((text, group) =>
    el(
      "li",
      {},
      el(
        "button",
        { type: "button", class: "group", "aria-pressed": String(!hidden.has(group)), onclick: () => on.toggle(group) },
        el("span", { class: "dot", style: { background: colours[group] } }),
        name(text),
        el("span", { class: "number" }, count(column.counts[group])),
      ),
      el("button", { type: "button", class: "plain", title: "show only these nodes", onclick: () => on.only(group) }, "only"),
    ),
  );
  const shown = column.counts.reduce((sum, number, group) => sum + (hidden.has(group) ? 0 : number), 0);
  fill(
    byId("legend"),
    el(
      "div",
      { class: "head" },
      el("h2", {}, "Colour: ", name(column.title, "")),
      hidden.size ? el("button", { type: "button", class: "plain", onclick: on.all }, "show all") : null,
    ),
    el("ul", { class: "legend" }, rows),
    column.names.length > MOST_LISTED
      ? el("p", { class: "quiet" }, `and ${count(column.names.length - MOST_LISTED)} more; use the search to find them`)
      : null,
    hidden.size ? el("p", { class: "quiet", id: "shown" }, `${plural(shown, "node")} shown`) : null,
  );
}
