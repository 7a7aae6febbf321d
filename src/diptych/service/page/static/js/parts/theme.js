// Light, dark, or as the system says.

import { icon, iconButton } from "./dom.js";

const ORDER = ["auto", "light", "dark"];
const NAMES = { auto: "as the system", light: "light", dark: "dark" };

function remember(theme) {
  try {
    localStorage.setItem("diptych:theme", theme);
  } catch { /* Without storage the choice lasts as long as the page. */ }
}

export function themeButton() {
  const root = document.documentElement;
  const button = iconButton("auto", "", { class: "theme" });
  const show = () => {
    const theme = root.dataset.theme ?? "auto";
    const label = `Colours: ${NAMES[theme]}`;
    button.replaceChildren(icon(theme));
    button.setAttribute("aria-label", label);
    button.title = label;
    window.dispatchEvent(new Event("diptych:theme"));
  };
  button.addEventListener("click", () => {
    const theme = ORDER[(ORDER.indexOf(root.dataset.theme ?? "auto") + 1) % ORDER.length];
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
    remember(theme);
    show();
  });
  show();
  return button;
}
