// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en-GB");
const short = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 3 });
const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const count = (number, one, many = `${one}s`) => `${whole.format(number)} ${number === 1 ? one : many}`;
export const number = (value) => (Number.isInteger(value) ? whole.format(value) : short.format(value));
export const percent = (share) => `${share > 0 && share < 0.01 ? "<1" : Math.round(share * 100)}%`;
export const date = (iso) => (iso ? day.format(new Date(iso)) : "");
export const time = (iso) => (iso ? moment.format(new Date(iso)) : "");

export function duration(seconds) {
  if (seconds < 0.0995) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export function clock(seconds) {
  const [minutes, rest] = [Math.floor(seconds / 60), String(Math.floor(seconds % 60)).padStart(2, "0")];
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}

export function bytes(size) {
  const unit = size < 1e6 ? ["kB", 1e3] : size < 1e9 ? ["MB", 1e6] : ["GB", 1e9];
  return `${short.format(size / unit[1])} ${unit[0]}`;
}

export const pValue = (p) => (p < 0.001 ? "p < 0.001" : `p = ${p.toFixed(3)}`);
