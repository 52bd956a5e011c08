// Draw the map. Only this module uses the renderer: it takes points and colours and reports rows of nodes.

import createScatterplot from "./vendor/regl-scatterplot.js";
import { mapColours } from "./colours.js";
import { el, fill, name } from "./dom.js";

const LEVELS = [2.2, 6]; // zoom at which smaller regions get their names
const MOST_NAMES = 40; // names on the map at once
const FROM_NEAR = 0.55; // largest share of the map's height that is shown around a searched node
const EDGE_GAP = 22; // pixels between two names

export class NodeMap {
  // on: {hover(row | null), click(row, event), lasso(rows, how), clear(), move()}
  constructor(parent, on) {
    this.on = on;
    this.canvas = el("canvas", { class: "points", tabindex: "0", "aria-label": "map of all nodes" });
    this.lines = el("canvas", { class: "lines", "aria-hidden": "true" });
    this.names = el("div", { class: "regions", "aria-hidden": "true" });
    this.title = el("div", { class: "map-title" });
    this.frame = el("div", { class: "map" }, this.canvas, this.lines, this.names, this.title);
    parent.append(this.frame);
    this.levels = [];
    this.edges = { hovered: [], chosen: [] };
    this.marked = [];
    this.start = null;
    this.last = Promise.resolve(); // the renderer's unfinished work
  }

  async open(points, groups, colours) {
    const total = points.length / 2;
    this.x = points.subarray(0, total);
    this.y = points.subarray(total);
    const { background, strong } = mapColours();
    this.plot = createScatterplot({
      canvas: this.canvas,
      width: "auto",
      height: "auto",
      backgroundColor: background,
      pointSize: total > 300000 ? 1.5 : total > 30000 ? 2.5 : total > 3000 ? 4 : 7,
      pointSizeSelected: 2,
      pointOutlineWidth: 2,
      opacity: total > 30000 ? 0.6 : 0.85,
      opacityInactiveMax: 0.5,
      pointColorActive: strong,
      pointColorHover: strong,
      lassoColor: strong,
      lassoInitiator: false,
      lassoMinDelay: 5,
      lassoMinDist: 2,
      actionKeyMap: { lasso: "shift" },
      deselectOnDblClick: false,
      deselectOnEscape: false,
      performanceMode: total > 200000,
      spatialIndexUseWorker: false, // the page's policy forbids workers made from text
    });
    this.listen();
    await this.colour(groups, colours);
    this.extremes = extremes(this.x, this.y);
    this.base = this.transform().scale * this.whole;
    this.reset();
  }

  listen() {
    let lassoing = false;
    let how = "replace";
    this.canvas.addEventListener("mousedown", (event) => {
      how = event.altKey ? "intersect" : event.shiftKey ? "union" : "replace";
      this.pressed = event;
      lassoing = false;
    });
    this.plot.subscribe("lassoExtend", () => (lassoing = true));
    this.plot.subscribe("select", ({ points }) => {
      if (lassoing) this.on.lasso(Uint32Array.from(points).sort(), how);
      else if (points.length === 1) this.on.click(points[0], this.pressed);
    });
    this.plot.subscribe("deselect", () => {
      if (lassoing) this.on.lasso(Uint32Array.of(), how);
    });
    this.plot.subscribe("pointover", (row) => this.on.hover(row, this));
    this.plot.subscribe("pointout", () => this.on.hover(null, this));
    this.plot.subscribe("view", () => {
      this.refresh();
      this.on.move(this);
    });
    this.resizing = new ResizeObserver(() => requestAnimationFrame(() => (this.showsWhole() ? this.reset() : this.refresh())));
    this.resizing.observe(this.frame);
  }

  async colour(groups, colours) {
    const last = colours.length - 1;
    const z = Float32Array.from(groups.codes, (code) => Math.min(code, last));
    this.groups = z;
    this.palette = colours;
    this.plot.set({ colorBy: "category", pointColor: colours.length > 1 ? colours : [colours[0], colours[0]] });
    await this.redraw({});
  }

  // Run actions one after another, because the renderer ignores calls while it draws.
  inTurn(action) {
    this.last = this.last.then(action, action);
    return this.last;
  }

  redraw(options) {
    return this.inTurn(() => this.draw(options));
  }

  async draw(options) {
    const drawing = { x: this.x, y: this.y, z: this.groups };
    const index = this.index ? { spatialIndex: this.index } : {};
    await this.plot.draw(drawing, { zDataType: "categorical", preventFilterReset: true, ...index, ...options });
    this.index = this.plot.get("spatialIndex");
  }

  async move(points, levels) {
    const total = points.length / 2;
    this.x = points.subarray(0, total);
    this.y = points.subarray(total);
    this.index = null;
    this.extremes = extremes(this.x, this.y);
    this.levels = levels;
    await this.redraw({ transition: total <= 50000, transitionDuration: 600 });
    this.refresh();
  }

  setRegions(levels) {
    this.levels = levels;
    this.refresh();
  }

  recolour() {
    const { background, strong } = mapColours();
    this.plot.set({ backgroundColor: background, pointColorActive: strong, pointColorHover: strong, lassoColor: strong });
    this.refresh();
  }

  select(rows) {
    if (rows.length) this.plot.select(Array.from(rows), { preventEvent: true });
    else this.plot.deselect({ preventEvent: true });
  }

  filter(rows) {
    const quiet = { preventEvent: true };
    return this.inTurn(() => (rows ? this.plot.filter(Array.from(rows), quiet) : this.plot.unfilter(quiet)));
  }

  setEdges(kind, pairs) {
    this.edges[kind] = pairs;
    this.drawLines();
  }

  mark(rows) {
    this.marked = rows;
    this.drawLines();
  }

  lasso(on) {
    this.plot.set({ mouseMode: on ? "lasso" : "panZoom" });
    this.frame.classList.toggle("lassoing", on);
  }

  zoomTo(row) {
    const near = this.camera();
    const distance = Math.min(1 / near[0], FROM_NEAR);
    return this.plot.zoomToLocation([this.x[row], this.y[row]], distance, { transition: false });
  }

  // Return zoom and position, from which `setCamera` restores the view.
  camera() {
    const view = this.plot.get("cameraView");
    return [view[0], view[12], view[13]];
  }

  setCamera([scale, x, y]) {
    this.plot.set({ cameraView: Float32Array.of(scale, 0, 0, 0, 0, scale, 0, 0, 0, 0, 1, 0, x, y, 0, 1) });
    this.refresh();
  }

  zoomBy(factor) {
    const [scale, x, y] = this.camera();
    this.setCamera([scale * factor, x * factor, y * factor]);
  }

  panBy(x, y) {
    const [scale, left, top] = this.camera();
    this.setCamera([scale, left + x, top + y]);
  }

  // The zoom that shows the whole map. The renderer fits the map to the height; a narrow frame needs a smaller zoom.
  get whole() {
    return Math.min(1, this.frame.clientWidth / this.frame.clientHeight);
  }

  reset() {
    this.shown = this.whole;
    this.setCamera([this.shown, 0, 0]);
  }

  // Return whether nobody has moved the map since it was shown as a whole.
  showsWhole() {
    const [scale, x, y] = this.camera();
    return Math.abs(scale - this.shown) + Math.abs(x) + Math.abs(y) < 1e-4;
  }

  // Return the scales from map to pixels. The map is never rotated, so four nodes at its edges determine them.
  transform() {
    const [left, right, low, high] = this.extremes.map((row) => this.plot.getScreenPosition(row));
    const [l, r, b, t] = this.extremes;
    const scale = (right[0] - left[0]) / (this.x[r] - this.x[l] || 1);
    const rise = (high[1] - low[1]) / (this.y[t] - this.y[b] || 1);
    return { scale, x: left[0] - scale * this.x[l], rise, y: low[1] - rise * this.y[b] };
  }

  position(row) {
    const { scale, x, rise, y } = this.transform();
    return [x + scale * this.x[row], y + rise * this.y[row]];
  }

  // Return whether the renderer knows where nodes are on the screen.
  get ready() {
    return this.extremes && this.plot.get("isPointsDrawn");
  }

  refresh() {
    if (!this.ready) return;
    this.drawLines();
    this.placeNames();
  }

  drawLines() {
    if (!this.ready) return;
    const { clientWidth: width, clientHeight: height } = this.frame;
    const density = window.devicePixelRatio || 1;
    if (this.lines.width !== Math.round(width * density) || this.lines.height !== Math.round(height * density)) {
      this.lines.width = Math.round(width * density);
      this.lines.height = Math.round(height * density);
    }
    const pen = this.lines.getContext("2d");
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, width, height);
    const { scale, x, rise, y } = this.transform();
    const { edge, strong } = mapColours();
    for (const pairs of Object.values(this.edges)) {
      pen.beginPath();
      for (let at = 0; at < pairs.length; at += 2) {
        pen.moveTo(x + scale * this.x[pairs[at]], y + rise * this.y[pairs[at]]);
        pen.lineTo(x + scale * this.x[pairs[at + 1]], y + rise * this.y[pairs[at + 1]]);
      }
      pen.strokeStyle = edge;
      pen.globalAlpha = pairs.length > 400 ? 0.22 : 0.7;
      pen.lineWidth = pairs.length > 400 ? 0.8 : 1.5;
      pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = strong;
    pen.lineWidth = 2;
    for (const row of this.marked) {
      pen.beginPath();
      pen.arc(x + scale * this.x[row], y + rise * this.y[row], 8, 0, 7);
      pen.stroke();
    }
    this.frame.dataset.edges = (this.edges.hovered.length + this.edges.chosen.length) / 2;
  }

  placeNames() {
    const { scale, x, rise, y } = this.transform();
    const near = scale / this.base;
    const level = this.levels[Math.min(LEVELS.filter((step) => near >= step).length, this.levels.length - 1)] ?? [];
    const { clientWidth: width, clientHeight: height } = this.frame;
    const placed = [];
    for (const region of level) {
      const at = { left: x + scale * region.x, top: y + rise * region.y, name: region.name };
      const wide = Math.min(region.name.length, 28) * 3.6 + 6;
      const inside = at.left > wide && at.left < width - wide && at.top > 12 && at.top < height - 12;
      const free = placed.every(
        (other) => Math.abs(other.top - at.top) > EDGE_GAP || Math.abs(other.left - at.left) > wide + other.wide,
      );
      if (inside && free && placed.length < MOST_NAMES) placed.push({ ...at, wide });
    }
    fill(
      this.names,
      placed.map(({ left, top, name: text }) =>
        el("span", { class: "region", style: { left: `${left}px`, top: `${top}px` } }, name(text)),
      ),
    );
    this.frame.dataset.level = LEVELS.filter((step) => near >= step).length;
  }

  close() {
    this.resizing.disconnect();
    this.plot.destroy();
    this.frame.remove();
  }
}

// Return the rows furthest to the left, right, bottom and top.
function extremes(x, y) {
  let left = 0;
  let right = 0;
  let low = 0;
  let high = 0;
  for (let row = 1; row < x.length; row++) {
    if (x[row] < x[left]) left = row;
    if (x[row] > x[right]) right = row;
    if (y[row] < y[low]) low = row;
    if (y[row] > y[high]) high = row;
  }
  return [left, right, low, high];
}
