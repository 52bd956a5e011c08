// Search while somebody types: ids of nodes, attributes and labels.

import { byId, count, el, fill, name, plural, settle } from "./dom.js";

// on: {node(row), attribute(name), label(name), ids(text)}
export function openSearch(api, on, fail) {
  const field = byId("search-text");
  const list = byId("search-found");
  let searches = 0;
  let choices = [];
  let at = 0;
  let chosenFor = null; // the text for which somebody chose a result
  let pending = null; // the text whose first result is chosen when the answer comes
  let shownFor = null; // the text whose results are listed

  const close = () => {
    searches++;
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
  };
  const mark = (next) => {
    at = (next + choices.length) % choices.length;
    choices.forEach(({ button }, place) => button.setAttribute("aria-selected", String(place === at)));
    choices[at].button.scrollIntoView({ block: "nearest" });
  };
  const choice = (text, aside, act) => {
    const run = () => {
      chosenFor = field.value;
      close();
      act();
    };
    const button = el("button", { type: "button", class: "found", role: "option", onclick: run }, name(text), el("small", {}, aside));
    choices.push({ button, run });
    return button;
  };

  const show = (text, found) => {
    choices = [];
    shownFor = text;
    const parts = [];
    if (found.nodes.length) {
      parts.push(el("h3", {}, found.node_total > found.nodes.length ? `Nodes (${count(found.node_total)})` : "Nodes"));
      parts.push(...found.nodes.map((node) => choice(node.id, node.label, () => on.node(node.row))));
      if (found.node_total > 1) parts.push(choice(`select all ${count(found.node_total)}`, "", () => on.ids(text)));
    }
    if (found.attributes.length) {
      parts.push(el("h3", {}, "Attributes"));
      parts.push(...found.attributes.map(([word, number]) => choice(word, plural(number, "node"), () => on.attribute(word))));
    }
    if (found.labels.length) {
      parts.push(el("h3", {}, "Labels"));
      parts.push(...found.labels.map(([word, number]) => choice(word, plural(number, "node"), () => on.label(word))));
    }
    fill(list, parts.length ? parts : el("p", { class: "quiet" }, "no results; try a part of the name"));
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
    if (choices.length) mark(0);
    if (pending === text) choices[0]?.run();
    pending = null;
  };

  const look = async () => {
    const text = field.value;
    if (!text.trim()) return close();
    if (text === chosenFor) return;
    const mine = ++searches;
    try {
      const found = await api.search(text);
      if (mine === searches) show(text, found);
    } catch (error) {
      fail(error);
    }
  };

  // Enter after fast typing means the typed text, not the results that are still listed.
  const enter = () => {
    chosenFor = null;
    if (!list.hidden && shownFor === field.value) return choices[at]?.run();
    pending = field.value;
    return look();
  };

  field.addEventListener("input", settle(look, 120));
  field.addEventListener("input", () => (chosenFor = null));
  field.addEventListener("focus", () => {
    chosenFor = null;
    if (field.value.trim()) look();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      close();
      field.blur();
    } else if (!list.hidden && choices.length && event.key === "ArrowDown") mark(at + 1);
    else if (!list.hidden && choices.length && event.key === "ArrowUp") mark(at - 1);
    else if (event.key === "Enter") enter();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!byId("search").contains(event.target)) close();
  });
}
