// Columns of tiles whose heights are known beforehand, so that nothing moves when pictures arrive.
// The document keeps the order of the ranking; only the places on the screen are chosen here.

const SHAPES = { narrowest: 0.6, widest: 2.2, unknown: 1 };
// A tile goes to the first column that is about as short as the shortest, so that ranks run from left to right.
const SLACK = 0.4;

export class Masonry {
  constructor(host) {
    this.host = host;
    this.heights = [];
    this.placed = 0;
    this.width = 0;
    this.observer = new ResizeObserver(() => this.host.clientWidth !== this.width && this.layOut());
    this.observer.observe(host);
  }

  close() {
    this.observer.disconnect();
  }

  layOut() {
    const style = getComputedStyle(this.host);
    this.width = this.host.clientWidth;
    this.gap = parseFloat(style.getPropertyValue("--gap")) || 16;
    this.foot = parseFloat(style.getPropertyValue("--foot")) || 48;
    const columns = Math.max(2, Math.floor((this.width + this.gap) / ((parseFloat(style.getPropertyValue("--tile")) || 200) + this.gap)));
    this.column = (this.width - this.gap * (columns - 1)) / columns;
    this.heights = new Array(columns).fill(0);
    this.placed = 0;
    this.extend();
  }

  extend() {
    if (!this.width) return this.host.clientWidth ? this.layOut() : undefined;
    const children = this.host.children;
    for (; this.placed < children.length; this.placed++) {
      const child = children[this.placed];
      if (child.classList.contains("line")) this.placeLine(child);
      else this.placeTile(child);
    }
    this.host.style.setProperty("height", `${Math.max(0, Math.max(...this.heights) - this.gap)}px`);
  }

  placeTile(tile) {
    const shape = Math.min(SHAPES.widest, Math.max(SHAPES.narrowest, Number(tile.dataset.shape) || SHAPES.unknown));
    const height = Math.round(this.column / shape) + this.foot;
    const lowest = Math.min(...this.heights);
    const column = this.heights.findIndex((value) => value <= lowest + SLACK * this.column);
    this.put(tile, column * (this.column + this.gap), this.heights[column], this.column, height);
    this.heights[column] += height + this.gap;
  }

  placeLine(line) {
    const top = Math.max(...this.heights);
    this.put(line, 0, top, this.width, null);
    this.heights.fill(top + line.offsetHeight + this.gap);
  }

  put(element, left, top, width, height) {
    element.style.setProperty("transform", `translate(${left}px, ${top}px)`);
    element.style.setProperty("width", `${width}px`);
    if (height !== null) element.style.setProperty("height", `${height}px`);
  }
}
