// Where pictures were taken: the outlines of the countries and a circle for each place; nothing is fetched from elsewhere.

import { address, ask, isAbort, query } from "../parts/api.js";
import { h, iconButton, svg } from "../parts/dom.js";
import { count, number } from "../parts/format.js";
import { joinFilters } from "../parts/search-state.js";
import { listenToGestures } from "../map/gestures.js";

const SETTLED_AFTER = 150;
const LISTED = 6;
const MOST_ZOOM = 400;
const [SMALLEST, LARGEST] = [5, 17];
const REACH = 12;

// The part of the world that is seen: a zoom and a middle, in degrees. It never leaves the world.
class WorldView {
  constructor() {
    Object.assign(this, { width: 360, height: 180 });
    this.reset();
  }

  reset() {
    Object.assign(this, { zoom: 1, x: 0, y: 0 });
  }

  get scale() {
    return (this.width / 360) * this.zoom;
  }

  get box() {
    const [across, down] = [this.width / this.scale / 2, this.height / this.scale / 2];
    return { south: Math.max(-90, -this.y - down), west: Math.max(-180, this.x - across), north: Math.min(90, down - this.y), east: Math.min(180, this.x + across) };
  }

  toScreen({ longitude, latitude }) {
    return [(longitude - this.x) * this.scale + this.width / 2, (-latitude - this.y) * this.scale + this.height / 2];
  }

  pan(left, top) {
    const [across, down] = [180 - this.width / this.scale / 2, 90 - this.height / this.scale / 2];
    this.x = Math.min(across, Math.max(-across, this.x - left / this.scale));
    this.y = Math.min(Math.max(0, down), Math.max(-Math.max(0, down), this.y - top / this.scale));
  }

  zoomBy(factor, left = this.width / 2, top = this.height / 2) {
    const [across, down] = [left - this.width / 2, top - this.height / 2];
    const before = this.scale;
    this.zoom = Math.min(MOST_ZOOM, Math.max(1, this.zoom * factor));
    this.x += across / before - across / this.scale;
    this.y += down / before - down / this.scale;
    this.pan(0, 0);
  }
}

const corner = (latitude, longitude) => `${number4(latitude)},${number4(longitude)}`;
const number4 = (value) => Number(value.toFixed(4));
const nameOf = (cell) => cell.place ?? `${number4(cell.latitude).toFixed(1)}, ${number4(cell.longitude).toFixed(1)}`;

export class World {
  constructor(collection, onToggle) {
    Object.assign(this, { collection, onToggle, view: new WorldView(), cells: [], filters: [] });
    this.land = svg("path", { class: "land" });
    this.circles = svg("g", {});
    this.drawing = svg("svg", {
      class: "world-drawing", tabindex: 0, role: "application", "aria-roledescription": "map",
      "aria-label": "World map of the pictures. Arrow keys move, plus and minus zoom, Enter filters by the place nearest to the middle; the places are listed below it.",
    }, this.land, this.circles);
    this.list = h("ul", { class: "world-places", "aria-label": "Places with most pictures" });
    const zoom = (factor) => () => {
      this.view.zoomBy(factor);
      this.moved();
    };
    this.here = h("button", { type: "button", onclick: () => this.toggleHere() }, "Only what is in view");
    const whole = h("button", { type: "button", onclick: () => { this.view.reset(); this.moved(); } }, "Whole world");
    this.element = h("section", { class: "world", "aria-labelledby": "world-title" },
      h("div", { class: "overview-head" }, h("h3", { id: "world-title" }, "Places"),
        h("div", { class: "world-tools" }, iconButton("plus", "Zoom in", { onclick: zoom(1.8) }), iconButton("minus", "Zoom out", { onclick: zoom(1 / 1.8) }), whole, this.here)),
      this.drawing, this.list);
    listenToGestures(this.drawing, this.view, { onView: () => this.moved(), onPoint: (left, top) => this.point(left, top), onLeave: () => {}, onOpen: (left, top, nearest) => this.open(left, top, nearest) });
    this.resizing = new ResizeObserver(() => this.draw());
    this.resizing.observe(this.drawing);
    import("./land.js").then(({ LAND }) => this.land.setAttribute("d", LAND));
  }

  close() {
    this.resizing.disconnect();
    this.asking?.abort();
    clearTimeout(this.timer);
  }

  // Returns whether there is any place to show.
  async show(filters, others) {
    Object.assign(this, { filters, others });
    await this.ask();
    return this.cells.length > 0 || this.view.zoom > 1;
  }

  async ask() {
    this.asking?.abort();
    this.asking = new AbortController();
    const asked = { filter: joinFilters(this.others), ...(this.view.zoom > 1 ? this.view.box : {}) };
    this.cells = (await ask(address(this.collection, "world") + query(asked), { signal: this.asking.signal })).cells;
    this.draw();
  }

  moved() {
    this.draw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask().catch((error) => isAbort(error) || this.list.replaceChildren()), SETTLED_AFTER);
  }

  get hereFilter() {
    const { south, west, north, east } = this.view.box;
    return `within:"${corner(south, west)} to ${corner(north, east)}"`;
  }

  toggleHere() {
    this.onToggle(this.hereFilter, !this.filters.includes(this.hereFilter));
  }

  radius(cell) {
    return Math.min(LARGEST, SMALLEST + 1.6 * Math.sqrt(cell.count));
  }

  draw() {
    const { clientWidth, clientHeight } = this.drawing;
    if (!clientWidth) return;
    Object.assign(this.view, { width: clientWidth, height: clientHeight });
    const { view } = this;
    this.land.setAttribute("transform", `translate(${view.width / 2} ${view.height / 2}) scale(${view.scale}) translate(${-view.x} ${-view.y})`);
    this.circles.replaceChildren(...[...this.cells].reverse().map((cell) => {
      const [cx, cy] = view.toScreen(cell);
      const chosen = this.filters.includes(cell.filter) ? "chosen" : "";
      return svg("circle", { class: `place ${chosen}`, cx, cy, r: this.radius(cell) }, svg("title", {}, `${nameOf(cell)}: ${count(cell.count, "picture")}`));
    }));
    this.here.hidden = view.zoom <= 1 && !this.filters.includes(this.hereFilter);
    this.here.setAttribute("aria-pressed", String(this.filters.includes(this.hereFilter)));
    this.list.replaceChildren(...this.cells.slice(0, LISTED).map((cell) => {
      const pressed = this.filters.includes(cell.filter);
      return h("li", {}, h("button", { type: "button", "aria-pressed": String(pressed), onclick: () => this.onToggle(cell.filter, !pressed) }, nameOf(cell), h("small", {}, number(cell.count))));
    }));
  }

  at(left, top, nearest = false) {
    const far = (cell) => {
      const [x, y] = this.view.toScreen(cell);
      return Math.hypot(x - left, y - top) - this.radius(cell);
    };
    const [best] = [...this.cells].sort((one, other) => far(one) - far(other));
    return best && (nearest || far(best) < REACH) ? best : null;
  }

  point(left, top) {
    this.drawing.classList.toggle("pointing", this.at(left, top) !== null);
  }

  open(left, top, nearest) {
    const cell = this.at(left, top, nearest);
    if (cell) this.onToggle(cell.filter, !this.filters.includes(cell.filter));
  }
}
