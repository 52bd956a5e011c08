// The page: one object holds its state, and the functions here make every change of it.

import { readAddress, writeAddress } from "./address.js";
import { openSource } from "./api.js";
import { groupColours, groupsOf, theme } from "./colours.js";
import { byId, count, el, fill, name, plural, settle } from "./dom.js";
import { openKeys } from "./keys.js";
import { showLegend } from "./legend.js";
import { NodeMap } from "./map.js";
import { emptyCard, showCard, showPair, showReasons } from "./node_card.js";
import { showRuns } from "./runs.js";
import { Questions } from "./questions.js";
import { openSearch } from "./search.js";
import { combine, showSelection } from "./selection.js";

const MOST_EDGE_ROWS = 2000; // largest selection whose edges are drawn
const state = { run: 0, second: null, layout: "", colour: "", hidden: new Set(), selection: Uint32Array.of(), node: null, other: null, kept: [] };
let api;
let about;
let column;
let colours;
let maps = [];
let moved = false; // true if somebody chose the map

const fail = (error) => {
  console.warn(error.message);
  fill(byId("notice"), error.message, " ", el("button", { type: "button", class: "plain", onclick: () => (byId("notice").hidden = true) }, "close"));
  byId("notice").hidden = false;
};

const guarded = (action) => async (...given) => {
  try {
    return await action(...given);
  } catch (error) {
    fail(error);
  }
};

const remember = settle(() => writeAddress(state, maps[0]?.plot ? maps[0].camera() : null), 150);

// ---- maps

const layoutOf = (run) => (about.runs[run].layouts.includes(state.layout) ? state.layout : about.runs[run].layouts[0]);

async function openMap(run) {
  const map = new NodeMap(byId("maps"), { hover, click, lasso, move: follow });
  map.run = run;
  map.title.replaceChildren(about.runs.length > 1 ? name(about.runs[run].name, "") : "");
  await map.open(await api.points(run, layoutOf(run)), column, colours);
  maps.push(map);
  api.regions(run, layoutOf(run)).then((levels) => map.setRegions(levels), fail);
  return map;
}

async function openMaps() {
  for (const map of maps.splice(0)) map.close();
  await openMap(state.run);
  if (state.second !== null) await openMap(state.second);
  await showFiltered();
  for (const map of maps) map.select(state.selection);
  await showEdges();
}

function follow() {
  placeHover();
  remember();
}

async function changeLayout(layout) {
  state.layout = layout;
  for (const map of maps) {
    const own = layoutOf(map.run);
    const [points, levels] = await Promise.all([api.points(map.run, own), api.regions(map.run, own)]);
    await map.move(points, levels);
  }
  controls();
  remember();
}

// ---- colours

let coloured = 0; // number of the latest choice of a colour
async function colourBy(chosen, hidden = []) {
  const turn = ++coloured;
  const groups = groupsOf(await api.column(chosen));
  if (turn !== coloured) return; // somebody has chosen another colour since
  state.colour = chosen;
  state.hidden = new Set(hidden.filter((group) => group < groups.names.length));
  column = groups;
  colours = groupColours(column);
  legend();
  for (const map of maps) await map.colour(column, colours);
  if (maps.length) await showFiltered();
  if (turn !== coloured) return;
  const choices = [...about.columns];
  if (!choices.some((choice) => choice.name === chosen)) choices.push({ name: chosen, title: chosen.replace(/^attribute:/, "") });
  fill(byId("colour"), choices.map((choice) => el("option", { value: choice.name, selected: choice.name === chosen }, choice.title.slice(0, 60))));
  remember();
}

async function showFiltered() {
  const visible = state.hidden.size ? [] : null;
  if (visible) column.codes.forEach((code, row) => state.hidden.has(code) || visible.push(row));
  for (const map of maps) await map.filter(visible);
}

function legend() {
  const hide = guarded(async (hidden) => {
    state.hidden = hidden;
    legend();
    await showFiltered();
    remember();
  });
  showLegend(column, colours, state.hidden, {
    all: () => hide(new Set()),
    only: (group) => hide(new Set(column.names.keys().filter((other) => other !== group))),
    toggle: (group) => {
      const hidden = new Set(state.hidden);
      if (!hidden.delete(group)) hidden.add(group);
      return hide(hidden);
    },
  });
}

function changeTheme() {
  document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
  recolour();
}

function recolour() {
  colours = groupColours(column);
  for (const map of maps) {
    map.recolour();
    map.colour(column, colours);
  }
  legend();
}

// ---- nodes

let pointed = null;
const hover = guarded(async (row, map) => {
  pointed = row === null ? null : { row, map };
  if (row === null) {
    byId("hover").hidden = true;
    for (const one of maps) one.setEdges("hovered", []);
    return;
  }
  const node = await api.hover(row);
  if (pointed?.row !== row) return;
  fill(
    byId("hover"),
    name(node.id),
    node.label ? el("div", {}, name(node.label)) : null,
    about.has_graph ? el("div", { class: "quiet" }, plural(node.degree, "neighbour")) : null,
  );
  byId("hover").hidden = false;
  placeHover();
  for (const one of maps) one.setEdges("hovered", node.neighbours.flatMap((other) => [row, other]));
});

function placeHover() {
  if (!pointed) return;
  const card = byId("hover");
  const stage = byId("stage").getBoundingClientRect();
  const frame = pointed.map.frame.getBoundingClientRect();
  const [x, y] = pointed.map.position(pointed.row);
  const left = frame.left - stage.left + x;
  card.style.left = `${Math.min(left + 14, stage.width - card.offsetWidth - 6)}px`;
  const top = frame.top - stage.top + y + 14;
  card.style.top = `${Math.max(Math.min(top, stage.height - card.offsetHeight - 6), 4)}px`;
}

const onCard = {
  node: (row) => showNode(row, { near: true }),
  compare: (row) => comparePair(row),
  attribute: (word) => chooseAttribute(word),
  close: () => closeNode(),
};

const showNode = guarded(async (row, { near = false } = {}) => {
  state.node = row;
  state.other = null;
  showPair(null);
  const card = await api.card(row);
  if (state.node !== row) return;
  showCard(card, about.runs, onCard);
  if (near) for (const map of maps) await map.zoomTo(row);
  for (const map of maps) map.select(state.selection);
  await showEdges();
  remember();
  showReasons(await api.reasons(row), onCard);
});

function closeNode() {
  state.node = state.other = null;
  showPair(null);
  emptyCard(about);
  showEdges();
  remember();
}

const comparePair = guarded(async (row) => {
  if (state.node === null || state.node === row) return showNode(row);
  state.other = row;
  showPair(await api.pair(state.node, row), about.runs, { node: onCard.node, close: () => showNode(state.node) });
  byId("pair").scrollIntoView({ block: "nearest" });
  await showEdges();
  remember();
});

function click(row, event) {
  for (const map of maps) map.select(state.selection);
  return event?.shiftKey ? comparePair(row) : showNode(row);
}

// Draw the edges of the shown nodes and, if they are few, of the selected nodes. Ignore answers to earlier questions.
let edgeQuestions = 0;
const showEdges = guarded(async () => {
  const mine = ++edgeQuestions;
  const rows = new Set(state.selection.length <= MOST_EDGE_ROWS ? state.selection : []);
  if (state.node !== null) rows.add(state.node);
  if (state.other !== null) rows.add(state.other);
  const pairs = rows.size && about.has_graph ? await api.edges([...rows].sort((a, b) => a - b)) : [];
  if (mine !== edgeQuestions) return;
  for (const map of maps) {
    map.setEdges("chosen", pairs);
    map.mark([state.node, state.other].filter((row) => row !== null));
  }
});

// ---- selection

const lasso = (rows, how) => select(combine(state.selection, rows, how));

const onSelection = {
  attribute: (word) => chooseAttribute(word, false),
  label: guarded(async (word) => select(await api.rows("label", word))),
  clear: () => select(Uint32Array.of()),
  describe: guarded(() => api.described(state.selection)),
  keep: (title) => {
    state.kept = [...state.kept.filter((one) => one.name !== title), { name: title, rows: state.selection }];
    return select(state.selection);
  },
  take: (place) => select(state.kept[place].rows),
  forget: (place) => {
    state.kept = state.kept.filter((_, other) => other !== place);
    return select(state.selection);
  },
};

const select = guarded(async (rows) => {
  state.selection = rows;
  for (const map of maps) map.select(rows);
  showSelection(rows, null, state.kept, onSelection);
  remember();
  const [summary] = await Promise.all([rows.length ? api.summary(rows) : null, showEdges()]);
  if (state.selection === rows) showSelection(rows, summary, state.kept, onSelection);
});

const chooseAttribute = guarded(async (word, alsoSelect = true) => {
  await colourBy(`attribute:${word}`);
  if (alsoSelect) await select(await api.rows("attribute", word));
});

// ---- the whole page

function controls() {
  showRuns(about, state, {
    run: guarded(async (run) => {
      state.run = run;
      if (state.second === run) state.second = null;
      controls();
      await openMaps();
      remember();
    }),
    second: guarded(async (run) => {
      state.second = run;
      controls();
      await openMaps();
      remember();
    }),
    layout: guarded((layout) => {
      moved = true;
      return changeLayout(layout);
    }),
  });
}

// While the server computes the t-SNE map, show its progress; then show the map, unless somebody chose another.
async function waitForMap() {
  const place = byId("making");
  while (about.making && !about.making.failed) {
    place.hidden = false;
    place.textContent = `computing the t-SNE map: ${Math.round(about.making.share * 100)} %`;
    place.title = about.making.words;
    await new Promise((done) => setTimeout(done, 1000));
    about = await api.about();
  }
  place.hidden = true;
  if (about.making?.failed) return fail(new Error(about.making.failed));
  controls();
  if (!moved && about.runs[state.run].layouts.includes("tsne")) await changeLayout("tsne");
}

function showFacts() {
  document.title = `${about.title} · brane explore`;
  byId("title").replaceChildren(name(about.title, ""));
  const facts = [plural(about.nodes, "node")];
  if (about.has_graph) facts.push(plural(about.edges, "edge"), plural(about.attributes, "attribute"));
  byId("facts").textContent = facts.join(" · ");
  if (about.left_out) {
    byId("left-out").hidden = false;
    byId("left-out").textContent = `Left out of this file: ${about.left_out}`;
  }
}

async function restore(given) {
  const within = (row) => row !== null && row < about.nodes;
  state.kept = given.kept;
  if (given.camera) for (const map of maps) map.setCamera(given.camera);
  await select(given.selection.filter(within));
  if (within(given.node)) await showNode(given.node);
  else emptyCard(about);
  if (within(given.node) && within(given.other)) await comparePair(given.other);
}

async function start() {
  api = new Questions(openSource());
  about = await api.about();
  const given = readAddress();
  const isRun = (run) => run !== null && run < about.runs.length;
  state.run = isRun(given.run) ? given.run : 0;
  state.second = isRun(given.second) && given.second !== state.run ? given.second : null;
  state.layout = about.runs[state.run].layouts.includes(given.layout) ? given.layout : about.runs[state.run].layouts.at(-1);
  moved = given.layout !== null;
  showFacts();
  try {
    await colourBy(given.colour ?? about.columns[0].name, given.hidden);
  } catch (error) {
    fail(error);
    await colourBy(about.columns[0].name);
  }
  controls();
  await openMaps();
  await restore(given);
  byId("colour").addEventListener("change", guarded((event) => colourBy(event.target.value)));
  byId("theme").addEventListener("click", changeTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  openSearch(api, { node: onCard.node, attribute: chooseAttribute, label: onSelection.label, ids: guarded(async (text) => select(await api.rows("id", text))) }, fail);
  openKeys(() => maps, { closeNode, clear: onSelection.clear, shown: () => state.node !== null });
  document.body.dataset.state = "ready";
  api.known().catch(fail); // load the names before the first search
  waitForMap().catch(fail);
}

start().catch((error) => {
  document.body.dataset.state = "error";
  byId("facts").textContent = "";
  fail(/WebGL|regl/.test(error.message) ? new Error("This browser cannot draw the map because it lacks WebGL. Turn on hardware acceleration, or use another browser.") : error);
});
