// The card of a node and the card that compares two nodes.

import { byId, count, el, fill, name, plural } from "./dom.js";

const figure = (number) => (number === null || number === undefined ? "" : number.toFixed(2));

function link(node, on) {
  return el("button", { type: "button", class: "plain", title: node.label || null, onclick: () => on.node(node.row) }, name(node.id));
}

function compare(node, on) {
  return el("button", { type: "button", class: "plain", title: "compare the two", "aria-label": "compare the two", onclick: () => on.compare(node.row) }, "⇄");
}

export function emptyCard(about) {
  const words = about.has_graph
    ? "Click a node on the map, or search for one, to see its attributes, its nearest nodes and its neighbours."
    : "Click a node on the map, or search for one, to see its nearest nodes. Start 'brane explore' with --graph to see its neighbours and attributes too.";
  fill(byId("node"), el("p", { class: "quiet" }, words));
}

// on: {node(row), compare(row), attribute(name), close()}
export function showCard(card, runs, on) {
  fill(
    byId("node"),
    el(
      "div",
      { class: "head" },
      el("h2", { id: "node-id" }, name(card.id)),
      el("button", { type: "button", class: "plain", onclick: on.close, "aria-label": "close the node" }, "✕"),
    ),
    card.label ? el("p", { id: "node-label" }, name(card.label)) : null,
    card.attribute_total ? attributes(card, on) : null,
    card.nearest.map((nearest, run) => nearestTable(nearest, runs.length > 1 ? runs[run].name : "", on)),
    card.neighbour_total ? neighbours(card, on) : null,
    el("div", { id: "reasons" }),
  );
}

function attributes(card, on) {
  const more = card.attribute_total - card.attributes.length;
  return [
    el("h3", {}, `Attributes (${count(card.attribute_total)})`),
    el(
      "div",
      { class: "tags" },
      card.attributes.map(([word, amount]) =>
        el(
          "button",
          { type: "button", class: "tag", title: "colour the map by this attribute and select its nodes", onclick: () => on.attribute(word) },
          name(word),
          amount === 1 ? null : el("span", { class: "number" }, ` ${Number(amount.toPrecision(3))}`),
        ),
      ),
      more > 0 ? el("span", { class: "quiet" }, `and ${count(more)} more`) : null,
    ),
  ];
}

function nearestTable(nearest, run, on) {
  return [
    el("h3", {}, run ? ["Nearest in ", name(run, "")] : "Nearest nodes"),
    el(
      "table",
      { class: "nearest" },
      el(
        "tr",
        {},
        el("th", {}, "node"),
        el("th", { title: "cosine of the two vectors: 1 if they have the same direction" }, "cosine"),
        el("th", {}, ""),
      ),
      nearest.map((node) =>
        el(
          "tr",
          { data: { row: node.row } },
          el("td", {}, link(node, on), node.linked ? el("span", { class: "quiet", title: "a neighbour in the graph" }, " •") : null),
          el("td", {}, figure(node.cosine)),
          el("td", {}, compare(node, on)),
        ),
      ),
    ),
  ];
}

function neighbours(card, on) {
  const more = card.neighbour_total - card.neighbours.length;
  const weighted = card.neighbours.some((node) => node.weight !== 1);
  return [
    el("h3", {}, `Neighbours in the graph (${count(card.neighbour_total)})`),
    el(
      "div",
      { class: "scroll" },
      el(
        "table",
        { class: "neighbours" },
        card.neighbours.map((node) =>
          el(
            "tr",
            { data: { row: node.row } },
            el("td", {}, link(node, on)),
            weighted ? el("td", {}, Number(node.weight.toPrecision(3))) : null,
            el("td", {}, compare(node, on)),
          ),
        ),
      ),
      more > 0 ? el("p", { class: "quiet" }, `and ${count(more)} more; the map shows all`) : null,
    ),
  ];
}

// Show the attributes and neighbours that shape a vector, and the suggested links, as far as a model gives them.
export function showReasons(reasons, on) {
  const place = byId("reasons");
  if (!place) return;
  const share = (part) => el("td", {}, `${Math.round(part * 100)} %`);
  const parts = [];
  if (reasons.attributes?.length || reasons.neighbours?.length) {
    parts.push(
      el("h3", {}, "What shapes this vector"),
      el(
        "table",
        { class: "shaped" },
        (reasons.attributes ?? []).map(([word, part]) => el("tr", {}, el("td", {}, name(word)), share(part))),
        (reasons.neighbours ?? []).map(([node, part]) => el("tr", {}, el("td", {}, link(node, on)), share(part))),
      ),
    );
  }
  if (reasons.suggested?.length) {
    parts.push(
      el("h3", {}, "Suggested links"),
      el(
        "table",
        { class: "suggested" },
        reasons.suggested.map((node) => el("tr", { title: node.why }, el("td", {}, link(node, on)), el("td", {}, figure(node.score)))),
      ),
    );
  }
  fill(place, parts);
}

// on: {node(row), close()}
export function showPair(pair, runs, on) {
  const section = byId("pair");
  section.hidden = !pair;
  if (!pair) return;
  const [one, other] = pair.nodes;
  const alike = pair.cosines.map((cosine, run) => (runs.length > 1 ? `${figure(cosine)} in ${runs[run].name}` : figure(cosine)));
  fill(
    section,
    el(
      "div",
      { class: "head" },
      el("h2", {}, "Two nodes"),
      el("button", { type: "button", class: "plain", onclick: on.close, "aria-label": "close the comparison" }, "✕"),
    ),
    el("p", {}, link(one, on), " and ", link(other, on), pair.linked ? " are linked" : " are not linked"),
    el("p", { id: "pair-alike" }, `cosine: ${alike.join(", ")}`),
    el("h3", {}, `Attributes in common (${count(pair.attributes.length)})`),
    pair.attributes.length
      ? el("div", { class: "tags", id: "pair-attributes" }, pair.attributes.map((word) => el("span", { class: "tag" }, name(word))))
      : el("p", { class: "quiet" }, "none"),
    el("p", { class: "quiet" }, `${plural(pair.only[0], "attribute")} only of the first node, ${plural(pair.only[1], "attribute")} only of the second`),
    el("h3", {}, `Neighbours in common (${count(pair.neighbour_total)})`),
    pair.neighbours.length
      ? el("div", { class: "tags", id: "pair-neighbours" }, pair.neighbours.map((node) => el("button", { type: "button", class: "tag", onclick: () => on.node(node.row) }, name(node.id))))
      : el("p", { class: "quiet" }, "none"),
  );
}
