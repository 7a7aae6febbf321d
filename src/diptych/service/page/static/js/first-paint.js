// Runs before anything is drawn, so that a chosen theme never flashes the other one.
try {
  const theme = localStorage.getItem("diptych:theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* Storage may be forbidden; the system's theme is then used. */ }
