// What part of the map is seen: a zoom and a centre, in the map's own coordinates from 0 to 1.

const [LEAST, MOST] = [0.8, 60];

const LEAST_EXTENT = 0.05;

function extent(values) {
  const low = values.reduce((one, other) => Math.min(one, other), 1);
  const high = values.reduce((one, other) => Math.max(one, other), 0);
  return low > high ? { middle: 0.5, size: 1 } : { middle: (low + high) / 2, size: Math.max(LEAST_EXTENT, high - low) };
}

export class Viewport {
  // At first every point is seen, as large as the screen lets them be.
  constructor(points = []) {
    this.across = extent(points.map(({ x }) => x));
    this.down = extent(points.map(({ y }) => y));
    this.reset();
    this.width = this.height = 1;
  }

  reset() {
    Object.assign(this, { zoom: 1, x: this.across.middle, y: this.down.middle });
  }

  resize(width, height) {
    Object.assign(this, { width, height });
  }

  get scale() {
    return Math.min(this.width / this.across.size, this.height / this.down.size) * 0.9 * this.zoom;
  }

  toScreen({ x, y }) {
    return [(x - this.x) * this.scale + this.width / 2, (y - this.y) * this.scale + this.height / 2];
  }

  toMap(left, top) {
    return { x: (left - this.width / 2) / this.scale + this.x, y: (top - this.height / 2) / this.scale + this.y };
  }

  pan(left, top) {
    this.x = Math.min(1.2, Math.max(-0.2, this.x - left / this.scale));
    this.y = Math.min(1.2, Math.max(-0.2, this.y - top / this.scale));
  }

  // The spot under the pointer stays where it is.
  zoomBy(factor, left = this.width / 2, top = this.height / 2) {
    const before = this.toMap(left, top);
    this.zoom = Math.min(MOST, Math.max(LEAST, this.zoom * factor));
    const after = this.toMap(left, top);
    this.x += before.x - after.x;
    this.y += before.y - after.y;
  }
}
