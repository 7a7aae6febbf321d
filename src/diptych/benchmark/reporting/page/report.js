for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const key = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = parseFloat(text.replace("−", "-").replace("< ", "").replace(/,/g, ""));
    return Number.isNaN(number) ? (text === "–" ? -Infinity : text.toLowerCase()) : number;
  };
  table.querySelectorAll("thead th").forEach((heading, column) => {
    if (!heading.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const wasDescending = heading.getAttribute("aria-sort") === "descending";
      const upwards = heading.classList.contains("text") ? heading.getAttribute("aria-sort") !== "ascending" : wasDescending;
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", upwards ? "ascending" : "descending");
      const rows = [...body.rows].sort((a, b) => {
        const [one, other] = [key(a, column), key(b, column)];
        const order = typeof one === typeof other ? (one < other ? -1 : one > other ? 1 : 0) : typeof one === "number" ? -1 : 1;
        return upwards ? order : -order;
      });
      body.append(...rows);
    });
  });
}
