// Choose the vectors and the map that the page shows, and vectors to compare them with.

import { byId, el, fill } from "./dom.js";

const TITLES = { pca: "overview (PCA)", tsne: "neighbourhoods (t-SNE)" };

export const layoutTitle = (layout) => TITLES[layout] ?? layout;

// on: {run(number), second(number | null), layout(name)}
export function showRuns(about, state, on) {
  const choose = (id, label, options, chosen, act) =>
    el(
      "label",
      {},
      `${label} `,
      el(
        "select",
        { id, onchange: (event) => act(event.target.value) },
        options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
      ),
    );
  const files = about.runs.map((run, at) => [String(at), run.name]);
  const layouts = about.runs[state.run].layouts.map((layout) => [layout, layoutTitle(layout)]);
  const several = files.length > 1;
  fill(
    byId("runs"),
    several ? choose("run", "vectors", files, String(state.run), (value) => on.run(Number(value))) : null,
    several
      ? choose("second", "compare with", [["", "none"], ...files.filter(([at]) => at !== String(state.run))],
          state.second === null ? "" : String(state.second),
          (value) => on.second(value === "" ? null : Number(value)))
      : null,
    layouts.length > 1 ? choose("layout", "map", layouts, state.layout, on.layout) : null,
  );
}
