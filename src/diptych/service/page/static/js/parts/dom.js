// Elements without markup in strings: nothing that comes from a collection is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, part] of Object.entries(value)) element.style.setProperty(key, part);
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);

export const svg = (tag, properties = {}, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

export const hidden = (text) => h("span", { class: "hidden" }, text);

const PATHS = {
  search: "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM15.5 15.5 20 20",
  picture: "M4 5h16v14H4zM4 16l4.5-4.5 4 4 3-3L20 17M15.5 9h.01",
  close: "M6 6l12 12M18 6 6 18",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  filter: "M4 6h16M7 12h10M10 18h4",
  previous: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  link: "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1",
  open: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  bin: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  light: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5 19 19M5 19l1.5-1.5M17.5 6.5 19 5",
  dark: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z",
  auto: "M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16zM12 4v16M12 8h4.5M12 12h8M12 16h4.5",
  keys: "M3 7h18v10H3zM7 11h.01M12 11h.01M17 11h.01M8 14h8",
  album: "M6 4h12v16l-6-4-6 4z",
  text: "M5 7h14M5 12h14M5 17h9",
};

export function icon(name) {
  const path = svg("path", { d: PATHS[name] });
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, path);
}

export const iconButton = (name, label, properties = {}) =>
  h("button", { type: "button", "aria-label": label, title: label, ...properties, class: `quiet ${properties.class ?? ""}` }, icon(name));
