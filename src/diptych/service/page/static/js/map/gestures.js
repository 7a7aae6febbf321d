// Moving about the map: mouse, fingers, keys.

const STEP = 60;
const ZOOM_STEP = 1.35;
const STILL = 5;

export function listenToGestures(canvas, viewport, { onView, onPoint, onOpen, onLeave }) {
  const pointers = new Map();
  let travelled = 0;
  const spot = (event) => [event.offsetX, event.offsetY];
  const spread = () => {
    const [one, other] = [...pointers.values()];
    return { size: Math.hypot(one[0] - other[0], one[1] - other[1]), middle: [(one[0] + other[0]) / 2, (one[1] + other[1]) / 2] };
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, spot(event));
    travelled = pointers.size > 1 ? Infinity : 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return onPoint(...spot(event));
    const before = pointers.size === 2 ? spread() : null;
    const last = pointers.get(event.pointerId);
    pointers.set(event.pointerId, spot(event));
    const [left, top] = [event.offsetX - last[0], event.offsetY - last[1]];
    travelled += Math.hypot(left, top);
    if (before) {
      const after = spread();
      viewport.zoomBy(after.size / Math.max(1, before.size), ...after.middle);
      viewport.pan(after.middle[0] - before.middle[0], after.middle[1] - before.middle[1]);
    } else viewport.pan(left, top);
    onView();
  });
  const release = (event) => {
    const held = pointers.delete(event.pointerId);
    if (held && event.type === "pointerup" && travelled < STILL) onOpen(...spot(event));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => pointers.size || onLeave());
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    viewport.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.03 : 0.0015)), ...spot(event));
    onView();
  }, { passive: false });

  const keys = {
    ArrowLeft: () => viewport.pan(STEP, 0), ArrowRight: () => viewport.pan(-STEP, 0), ArrowUp: () => viewport.pan(0, STEP), ArrowDown: () => viewport.pan(0, -STEP),
    "+": () => viewport.zoomBy(ZOOM_STEP), "=": () => viewport.zoomBy(ZOOM_STEP), "-": () => viewport.zoomBy(1 / ZOOM_STEP), 0: () => viewport.reset(),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") onOpen(viewport.width / 2, viewport.height / 2, true);
    else if (keys[event.key]) {
      keys[event.key]();
      onView();
    } else return;
    event.preventDefault();
  });
}
