// The picture of an item: the small one at once, the whole one as soon as it is here, all of it or at its true size.

import { address, thumbnailOf } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { pictureBoxes } from "../parts/picture-boxes.js";

export class ZoomPicture {
  constructor(collection, item, title, found = {}) {
    this.image = h("img", { class: "blurred", src: thumbnailOf(collection, item), alt: item.captions?.[0] ?? title, width: item.width, height: item.height });
    this.button = h("button", { type: "button", class: "zoom", "aria-pressed": "false", "aria-label": "Zoom (z)", title: "Zoom (z)", "data-keep": "zoom", onclick: (event) => this.toggle(event) }, this.image, pictureBoxes(found, item, "meet"));
    this.element = h("div", { class: "stage" }, this.button);
    const original = new Image();
    original.onload = () => {
      this.image.src = original.src;
      this.image.classList.remove("blurred");
    };
    original.onerror = () => {
      this.image.classList.remove("blurred");
      this.element.append(h("p", { class: "stage-note" }, "The original is gone or cannot be shown; this is the small copy."));
    };
    original.src = address(collection, "items", item.id, "rendering");
  }

  toggle(event) {
    const zoomed = this.element.classList.toggle("zoomed");
    this.button.setAttribute("aria-pressed", String(zoomed));
    if (!zoomed) return;
    // What was pointed at stays under the pointer.
    const spot = event?.detail ? [event.offsetX / event.target.clientWidth, event.offsetY / event.target.clientHeight] : [0.5, 0.5];
    requestAnimationFrame(() => this.element.scrollTo(
      this.element.scrollWidth * spot[0] - this.element.clientWidth / 2, this.element.scrollHeight * spot[1] - this.element.clientHeight / 2));
  }
}
