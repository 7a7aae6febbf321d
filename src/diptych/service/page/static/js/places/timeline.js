// When pictures were taken: a bar for each year, or for each month of one; a bar that is pressed is a filter.

import { h, icon } from "../parts/dom.js";
import { count } from "../parts/format.js";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HIGHEST = 64;
const LOWEST = 3;

const yearFilter = (year) => `taken=${year}`;
const CHOSEN = /^taken=(\d{4})(-\d\d)?$/;
const sum = (periods) => periods.reduce((total, period) => total + period.count, 0);

function bar(entry, most, filters, onToggle) {
  const pressed = filters.includes(entry.filter);
  const height = entry.count ? Math.max(LOWEST, Math.round((HIGHEST * entry.count) / most)) : 0;
  return h("li", {}, h("button", { type: "button", class: "time-bar", "aria-pressed": String(pressed), disabled: !entry.count && !pressed,
    "aria-label": `${entry.name}: ${count(entry.count, "picture")}`, title: `${entry.name}: ${count(entry.count, "picture")}`, onclick: () => onToggle(entry.filter, !pressed) },
  h("span", { class: "time-height", style: { height: `${height}px` } }), h("span", { class: "time-label" }, entry.label)));
}

function years(periods) {
  const numbers = periods.map(({ period }) => Number(period.slice(0, 4)));
  const [first, last] = [Math.min(...numbers), Math.max(...numbers)];
  // A gap of decades would push the bars off the screen; then only years with pictures have one.
  const shown = last - first < 40 ? Array.from({ length: last - first + 1 }, (_, place) => first + place) : [...new Set(numbers)];
  return shown.map((year) => ({ name: String(year), label: String(year), filter: yearFilter(year), count: sum(periods.filter(({ period }) => period.startsWith(`${year}`))) }));
}

function months(periods, year) {
  return MONTHS.map((label, place) => {
    const period = `${year}-${String(place + 1).padStart(2, "0")}`;
    return { name: `${label} ${year}`, label, filter: `taken=${period}`, count: sum(periods.filter((one) => one.period === period)) };
  });
}

export function timeline(periods, filters, { onToggle, onYears }) {
  const all = years(periods);
  const chosen = [...new Set(filters.map((filter) => filter.match(CHOSEN)?.[1]).filter(Boolean))];
  const year = chosen.length === 1 ? chosen[0] : all.length === 1 ? all[0].name : null;
  // A month is chosen instead of its year: side by side they would be alternatives, and the year would hold both.
  const toggle = (filter, on) => onToggle(filter, on, year && yearFilter(year));
  const entries = year ? months(periods, year) : all;
  const most = Math.max(1, ...entries.map((entry) => entry.count));
  const back = chosen.length === 1 && all.length > 1 && h("button", { type: "button", class: "quiet with-word", onclick: onYears }, icon("previous"), "All years");
  return h("section", { class: "timeline", "aria-labelledby": "timeline-title" },
    h("div", { class: "overview-head" }, h("h3", { id: "timeline-title" }, year ? `Taken in ${year}` : "Taken"), back),
    h("ol", { class: "time-bars", tabindex: 0, "aria-label": year ? `Months of ${year}` : "Years" }, entries.map((entry) => bar(entry, most, filters, toggle))));
}
