// A video, at the moment that was found; where the browser cannot play it, the picture of that moment.

import { address, thumbnailOf } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { ZoomPicture } from "./zoom-picture.js";

export class VideoStage {
  constructor(collection, item, title) {
    const source = `${address(collection, "items", item.id, "original")}#t=${item.seconds}`;
    this.video = h("video", { src: source, controls: true, playsinline: true, preload: "metadata", poster: thumbnailOf(collection, item), "aria-label": title, "data-keep": "video" });
    this.element = h("div", { class: "stage video-stage" }, this.video);
    this.video.addEventListener("error", () => this.showPicture(collection, item, title), { once: true });
  }

  showPicture(collection, item, title) {
    this.still = new ZoomPicture(collection, item, title);
    this.element.classList.remove("video-stage");
    this.element.replaceChildren(this.still.element, h("p", { class: "stage-note" }, "This browser cannot play the video; this is the moment that was found. “Original” saves it."));
  }

  toggle(event) {
    if (this.still) this.still.toggle(event);
    else if (this.video.paused) this.video.play();
    else this.video.pause();
  }
}
