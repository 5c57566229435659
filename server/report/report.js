// Unpacks and draws the figures, turns the page light or dark, sorts the tables and filters that of trials.
"use strict";

const root = document.documentElement;
const nonce = document.currentScript.nonce;
const preferred = window.matchMedia("(prefers-color-scheme: dark)");

const theme = () => root.dataset.theme || (preferred.matches ? "dark" : "light");

async function unpacked(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function run(code) {
  const script = document.createElement("script");
  script.nonce = nonce;
  script.textContent = code;
  document.head.append(script);
}

function note(place, text) {
  const line = document.createElement("p");
  line.className = "notice";
  line.textContent = text;
  place.replaceChildren(line);
  place.style.height = "auto";
}

async function drawAll() {
  const places = [...document.querySelectorAll("[data-figure]")];
  if (typeof DecompressionStream === "undefined") {
    places.forEach((place) => note(place, "This browser is too old for the figures: they need one of 2023 or later."));
    return;
  }
  run(await unpacked("packed-plotly"));
  const made = JSON.parse(await unpacked("packed-figures"));
  const config = { displaylogo: false, responsive: true };
  const draw = (place, view) => {
    const { data, layout } = structuredClone(made.figures[place.dataset.figure][view]);
    return Plotly.react(place, data, { ...layout, template: made.templates[theme()] }, config);
  };
  let drawn = 0;
  for (const place of places) {
    try {
      await draw(place, Object.keys(made.figures[place.dataset.figure])[0]);
      drawn += 1;
      offerViews(place, (view) => draw(place, view));
    } catch (error) {
      note(place, `This figure could not be drawn: ${error.message}`);
    }
  }
  root.dataset.drawn = `${drawn} of ${places.length}`;
  const turn = () => places.forEach((place) => place.data && Plotly.relayout(place, { template: made.templates[theme()] }));
  preferred.addEventListener("change", turn);
  document.addEventListener("themechange", turn);
}

function offerViews(place, show) {
  const choice = document.querySelector(`[data-views="${place.dataset.figure}"]`);
  choice?.addEventListener("change", () => show(choice.value));
}

function offerThemes() {
  const button = document.getElementById("theme");
  const label = () => { button.textContent = theme() === "dark" ? "Light" : "Dark"; };
  button.hidden = false;
  label();
  preferred.addEventListener("change", label);
  button.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    label();
    document.dispatchEvent(new Event("themechange"));
  });
}

function compare(one, other) {
  if (one === "" || other === "") return (one === "") - (other === "");
  const [a, b] = [Number(one), Number(other)];
  return Number.isNaN(a) || Number.isNaN(b) ? String(one).localeCompare(String(other)) : a - b;
}

function key(row, column) {
  const cell = row.cells[column];
  return cell.dataset.key === undefined ? cell.textContent.trim() : cell.dataset.key;
}

function sortBy(table, head, column) {
  const descending = head.getAttribute("aria-sort") === "ascending";
  table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
  // What has no value stays at the end, whichever way.
  rows.sort(([a], [b]) => (descending && a !== "" && b !== "" ? compare(b, a) : compare(a, b)));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

function offerOrders(table) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sortBy(table, head, column));
    head.replaceChildren(button);
  });
}

function offerFilter() {
  const table = document.getElementById("trials");
  if (!table) return;
  const rows = [...table.tBodies[0].rows].map((row) => [row, row.textContent.toLowerCase()]);
  const filter = document.getElementById("filter");
  const count = document.getElementById("count");
  filter.closest("p").hidden = false;
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = words.length ? `${shown} of ${rows.length}` : "";
  });
}

offerThemes();
document.querySelectorAll("table.sortable").forEach(offerOrders);
offerFilter();
drawAll().catch((error) => {
  root.dataset.failed = error.message;
  document.querySelectorAll("[data-figure]").forEach((place) => note(place, `The figures could not be drawn: ${error.message}`));
});
