// The drawing of the map: circles for pictures, diamonds for texts, names of classes where they gather.

const SIZES = { image: 4.5, text: 3.6 };
const CLOSE = 14;
const MOST_NAMES = 24;
const LEAST_MEMBERS = 3;
const NAME_HEIGHT = 18;

function middle(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}

// The median lies among the members of a class even when some have strayed.
export function classNames(points) {
  const groups = new Map();
  for (const point of points) {
    if (point.label) groups.set(point.label, [...(groups.get(point.label) ?? []), point]);
  }
  return [...groups].filter(([, members]) => members.length >= LEAST_MEMBERS)
    .sort(([, one], [, other]) => other.length - one.length).slice(0, MOST_NAMES)
    .map(([name, members]) => ({ name, x: middle(members.map(({ x }) => x)), y: middle(members.map(({ y }) => y)) }));
}

export class Scatter {
  constructor(canvas, viewport, points) {
    Object.assign(this, { canvas, viewport, points, focused: null, crosshair: false, kinds: new Set(["image", "text"]) });
    this.names = classNames(points);
    this.context = canvas.getContext("2d");
  }

  readColours() {
    const style = getComputedStyle(this.canvas);
    // Canvas does not resolve light-dark(); a property that is a colour does.
    const resolve = (property) => style.getPropertyValue(property);
    this.colours = { image: resolve("color"), text: resolve("border-top-color"), ink: resolve("outline-color"), paper: resolve("background-color") };
    this.font = `600 12px ${style.fontFamily}`;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.viewport.resize(width, height);
    this.readColours();
    this.draw();
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  visible(point) {
    return this.kinds.has(point.kind);
  }

  paint() {
    const { context, viewport } = this;
    context.clearRect(0, 0, viewport.width, viewport.height);
    const grow = Math.min(2.2, 1 + Math.log2(Math.max(1, viewport.zoom)) / 4);
    // Texts first: there are more of them, and pictures should lie on top.
    for (const kind of ["text", "image"]) {
      context.fillStyle = this.colours[kind];
      context.globalAlpha = kind === "text" ? 0.6 : 0.85;
      for (const point of this.points) if (point.kind === kind && this.visible(point)) this.shape(point, SIZES[kind] * grow);
    }
    context.globalAlpha = 1;
    this.paintNames();
    if (this.focused) this.paintFocus(SIZES[this.focused.kind] * grow + 5);
    if (this.crosshair) this.paintCrosshair();
  }

  shape(point, size) {
    const [left, top] = this.viewport.toScreen(point);
    if (left < -size || top < -size || left > this.viewport.width + size || top > this.viewport.height + size) return;
    const { context } = this;
    context.beginPath();
    if (point.kind === "image") context.arc(left, top, size, 0, 2 * Math.PI);
    else {
      context.moveTo(left, top - size * 1.2);
      context.lineTo(left + size * 1.2, top);
      context.lineTo(left, top + size * 1.2);
      context.lineTo(left - size * 1.2, top);
    }
    context.fill();
  }

  paintNames() {
    const { context } = this;
    context.font = this.font;
    context.textAlign = "center";
    context.lineWidth = 4;
    context.lineJoin = "round";
    const taken = [];
    for (const name of this.names) {
      const [left, top] = this.viewport.toScreen(name);
      // Where names would cover one another the larger class has the place; zooming in makes room for the other.
      const half = context.measureText(name.name).width / 2 + 4;
      if (taken.some((other) => Math.abs(other.left - left) < other.half + half && Math.abs(other.top - top) < NAME_HEIGHT)) continue;
      taken.push({ left, top, half });
      context.strokeStyle = this.colours.paper;
      context.strokeText(name.name, left, top);
      context.fillStyle = this.colours.ink;
      context.fillText(name.name, left, top);
    }
  }

  paintFocus(size) {
    const [left, top] = this.viewport.toScreen(this.focused);
    this.context.strokeStyle = this.colours.ink;
    this.context.lineWidth = 2;
    this.context.beginPath();
    this.context.arc(left, top, size, 0, 2 * Math.PI);
    this.context.stroke();
  }

  paintCrosshair() {
    const [left, top] = [this.viewport.width / 2, this.viewport.height / 2];
    this.context.strokeStyle = this.colours.ink;
    this.context.lineWidth = 1.5;
    this.context.beginPath();
    for (const [x, y] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      this.context.moveTo(left + 6 * x, top + 6 * y);
      this.context.lineTo(left + 16 * x, top + 16 * y);
    }
    this.context.stroke();
  }

  nearest(left, top, howMany = 1, within = Infinity) {
    const measured = this.points.filter((point) => this.visible(point)).map((point) => {
      const [x, y] = this.viewport.toScreen(point);
      return { point, distance: Math.hypot(x - left, y - top) };
    });
    return measured.filter(({ distance }) => distance <= within).sort((one, other) => one.distance - other.distance).slice(0, howMany).map(({ point }) => point);
  }

  at(left, top) {
    return this.nearest(left, top, 1, CLOSE)[0] ?? null;
  }
}
