// Move and zoom the map with the keyboard and the buttons.

import { byId } from "./dom.js";

const STEP = 0.15; // distance that an arrow key moves the map

// on: {closeNode(), clear(), shown()}
export function openKeys(maps, on) {
  const each = (action) => () => maps().forEach(action);
  const lasso = () => {
    const pressed = byId("lasso").getAttribute("aria-pressed") !== "true";
    byId("lasso").setAttribute("aria-pressed", String(pressed));
    maps().forEach((map) => map.lasso(pressed));
  };
  const nearer = each((map) => map.zoomBy(1.5));
  const farther = each((map) => map.zoomBy(1 / 1.5));
  const whole = each((map) => map.reset());
  byId("lasso").addEventListener("click", lasso);
  byId("nearer").addEventListener("click", nearer);
  byId("farther").addEventListener("click", farther);
  byId("whole").addEventListener("click", whole);
  byId("keys").addEventListener("click", () => byId("help").showModal());
  const actions = {
    "/": () => byId("search-text").focus(),
    "?": () => byId("help").showModal(),
    l: lasso,
    "+": nearer,
    "=": nearer,
    "-": farther,
    0: whole,
    ArrowLeft: each((map) => map.panBy(STEP, 0)),
    ArrowRight: each((map) => map.panBy(-STEP, 0)),
    ArrowUp: each((map) => map.panBy(0, -STEP)),
    ArrowDown: each((map) => map.panBy(0, STEP)),
    Escape: () => (on.shown() ? on.closeNode() : on.clear()),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
}
