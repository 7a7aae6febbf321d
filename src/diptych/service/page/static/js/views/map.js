// The map view: pictures and texts of the collection in two dimensions.

import { address, ask, isAbort, query, session } from "../parts/api.js";
import { h, iconButton } from "../parts/dom.js";
import { count, date } from "../parts/format.js";
import { outcome, showJob, startJob } from "../parts/jobs.js";
import { failure, notice, tell } from "../parts/messages.js";
import { addressOf, itemPath, openItem, readPlace } from "../parts/place.js";
import { thumbnail } from "../search/tile.js";
import { listenToGestures } from "../map/gestures.js";
import { Scatter } from "../map/scatter.js";
import { Viewport } from "../map/viewport.js";

const LISTED = 8;
const SETTLED_AFTER = 120;

class MapView {
  constructor(root, app) {
    this.app = app;
    this.collection = app.collection.name;
    this.stopping = new AbortController();
    this.remark = h("p", {});
    this.body = h("div", { class: "map-body", "aria-busy": "true" });
    root.append(h("div", { class: "map-view" }, h("div", { class: "page-head" }, h("h1", {}, "Map"), this.remark), this.body));
    this.load();
  }

  update() {}

  close() {
    this.stopping.abort();
    this.resizing?.disconnect();
    clearTimeout(this.timer);
  }

  async load() {
    try {
      this.draw(await ask(address(this.collection, "map") + query({ retriever: readPlace().params.get("by") }), { signal: this.stopping.signal }));
    } catch (error) {
      if (isAbort(error)) return;
      this.body.replaceChildren(error.kind === "no-map" ? this.offer() : failure(error, () => this.load()));
    }
    this.body.removeAttribute("aria-busy");
  }

  offer() {
    this.remark.textContent = "Similar pictures and texts lie close to each other.";
    const text = "A map shows similar pictures and captions close to each other. It takes up to a minute to make.";
    if (session.read_only) return notice("No map yet", "Whoever runs the service can make one.");
    return notice("No map yet", text, h("button", { type: "button", class: "primary", onclick: () => this.make() }, "Make a map"));
  }

  async make() {
    try {
      const job = await startJob(this.collection, "map");
      const panel = h("div", { class: "notice" });
      this.body.replaceChildren(panel);
      const end = await showJob(panel, h("h2", {}, "Making a map"), this.collection, job, this.stopping.signal);
      if (end && end.state !== "done") tell(outcome(end), end.state === "failed" ? "error" : "done");
    } catch (error) {
      tell(error.message, "error");
    }
    if (!this.stopping.signal.aborted) this.load();
  }

  draw(map) {
    this.remark.textContent = `${count(map.items_in_map, "item")}, placed by the search model ${map.retriever}, made ${date(map.made)}. ${map.note}`;
    this.viewport = new Viewport(map.points);
    this.canvas = h("canvas", { class: "map-canvas", tabindex: 0, role: "application", "aria-roledescription": "map", "aria-label": "Pictures and texts. Arrow keys move, plus and minus zoom, Enter opens what is in the middle.", "aria-describedby": "map-near-title" });
    this.card = h("div", { class: "map-card", hidden: true });
    this.near = h("ul", { class: "map-near" });
    this.stage = h("div", { class: "map-stage" }, this.canvas, this.card, this.legend(), this.tools());
    this.body.replaceChildren(this.stage,
      h("section", { class: "map-list", "aria-labelledby": "map-near-title" }, h("h2", { id: "map-near-title" }, "Near the middle"), this.near));
    this.scatter = new Scatter(this.canvas, this.viewport, map.points);
    this.app.list = null;
    this.listen();
  }

  listen() {
    listenToGestures(this.canvas, this.viewport, {
      onView: () => this.moved(), onPoint: (left, top) => this.point(this.scatter.at(left, top)),
      onOpen: (left, top, nearest) => this.open(nearest ? this.scatter.nearest(left, top)[0] : this.scatter.at(left, top)), onLeave: () => this.point(null),
    });
    const crosshair = () => {
      this.scatter.crosshair = this.canvas.matches(":focus-visible");
      this.scatter.draw();
    };
    this.canvas.addEventListener("focus", crosshair);
    this.canvas.addEventListener("blur", crosshair);
    const recolour = () => this.scatter.resize();
    window.addEventListener("diptych:theme", recolour, { signal: this.stopping.signal });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour, { signal: this.stopping.signal });
    this.resizing = new ResizeObserver(() => {
      this.scatter.resize();
      this.listNear();
    });
    this.resizing.observe(this.canvas);
  }

  legend() {
    const kind = (name, label) => h("label", { class: `legend-${name}` },
      h("input", { type: "checkbox", checked: true, onchange: (event) => this.toggle(name, event.target.checked) }), h("span", { class: "legend-shape", "aria-hidden": "true" }), label);
    return h("fieldset", { class: "map-legend" }, h("legend", { class: "hidden" }, "Shown on the map"), kind("image", "Pictures"), kind("text", "Texts"));
  }

  tools() {
    const zoom = (factor) => () => {
      this.viewport.zoomBy(factor);
      this.moved();
    };
    const whole = h("button", { type: "button", onclick: () => { this.viewport.reset(); this.moved(); } }, "Fit");
    const again = !session.read_only && h("button", { type: "button", onclick: () => this.make() }, "Redraw");
    return h("div", { class: "map-tools" }, iconButton("plus", "Zoom in", { onclick: zoom(1.5) }), iconButton("minus", "Zoom out", { onclick: zoom(1 / 1.5) }), whole, again);
  }

  toggle(kind, on) {
    this.scatter.kinds[on ? "add" : "delete"](kind);
    this.moved();
  }

  moved() {
    this.scatter.draw();
    this.point(null);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.listNear(), SETTLED_AFTER);
  }

  picture(point) {
    return thumbnail(this.collection, { id: point.id, picture: true }, { loading: "eager" });
  }

  point(point) {
    if (point === this.scatter.focused) return;
    this.scatter.focused = point;
    this.scatter.draw();
    this.canvas.classList.toggle("pointing", Boolean(point));
    this.card.hidden = !point;
    if (!point) return;
    const [left, top] = this.viewport.toScreen(point);
    this.card.replaceChildren(...[point.kind === "image" ? this.picture(point) : h("p", { class: "map-text" }, point.text ?? ""), point.label && h("p", { class: "faint" }, point.label)].filter(Boolean));
    this.card.classList.toggle("below", top < 230);
    this.card.style.setProperty("left", `${Math.min(this.viewport.width - 100, Math.max(100, left))}px`);
    this.card.style.setProperty("top", `${top}px`);
  }

  listNear() {
    const points = this.scatter.nearest(this.viewport.width / 2, this.viewport.height / 2, LISTED);
    const entry = (point) => h("li", {}, h("a", {
      href: addressOf(itemPath(point.id), readPlace().params), onclick: (event) => {
        event.preventDefault();
        this.open(point);
      }, onfocus: () => this.point(point), onblur: () => this.point(null),
    }, point.kind === "image" ? this.picture(point) : h("span", { class: "legend-text" }, h("span", { class: "legend-shape" })),
    h("span", {}, point.kind === "image" ? point.label ?? "picture" : point.text ?? "text")));
    this.near.replaceChildren(...points.map(entry));
  }

  open(point) {
    if (!point) return;
    this.app.list = { answers: [], focus: () => {} };
    openItem(point.id);
  }
}

export const open = (root, app) => new MapView(root, app);
