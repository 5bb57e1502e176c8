"use strict";
// Behind the report: which kernel for a matrix, and the table of all measurements. The data are columns:
// {name, values: [...]} of numbers, or {name, words: [...], at: [...]} with each word once.
const data = JSON.parse(document.getElementById("data").textContent);
const columns = data.columns.map(column => ({...column, get: column.words ? row => column.words[column.at[row]]
                                                                        : row => column.values[row]}));
const column = Object.fromEntries(columns.map(each => [each.name, each]));
const count = (columns[0].at ?? columns[0].values).length;
const $ = id => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
function digits(value) {
  if (typeof value !== "number") return value ?? "";
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 0.01 ? value.toFixed(2) : value.toPrecision(2);
}

// --- What is asked stands in the address, so that a link leads to the same rows ------------------------

const fields = ["q", "kernel", "precision", "source", "sort", "for", "in", "products"];
function restore() {
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const name of fields) if (asked.has(name)) $(name).value = asked.get(name);
}
function remember() {
  const asked = new URLSearchParams();
  for (const name of fields) if ($(name).value !== $(name).dataset.first) asked.set(name, $(name).value);
  history.replaceState(null, "", asked.size ? "#" + asked : location.pathname + location.search);
}

// --- Which kernel for my matrix ------------------------------------------------------------------------

// Of one matrix, kernels by the time of setup and all products, with the product from which each is ahead of CSR that
// needs no setup.
function choose() {
  const matrix = $("for").value, products = Math.max(1, Number($("products").value) || 1), precision = $("in").value;
  const rows = [];
  for (let row = 0; row < count; ++row) {
    if (column.matrix.get(row) === matrix && column.precision.get(row) === precision) rows.push(row);
  }
  const total = row => column["setup ms"].get(row) + products * column["warm us"].get(row) / 1000;
  const base = rows.find(row => column.kernel.get(row) === "cusparse_csr_alg1");
  rows.sort((a, b) => total(a) - total(b));
  const body = $("choice");
  body.replaceChildren(...rows.slice(0, 8).map(row => {
    const gain = base === undefined ? NaN : column["warm us"].get(base) - column["warm us"].get(row);
    const even = row === base ? "—" : gain > 0 ? Math.ceil(1000 * column["setup ms"].get(row) / gain).toLocaleString("en") : "never";
    return element("tr", {}, ...[column.kernel.get(row), digits(column["warm us"].get(row)),
      `${digits(column.lower.get(row))} to ${digits(column.upper.get(row))}`, digits(column["setup ms"].get(row)),
      digits(total(row)), base === undefined ? "—" : even].map((text, at) => element("td", {className: at ? "number" : "", textContent: text})));
  }));
  $("choice-note").textContent = rows.length
    ? `${rows.length} kernels measured on ${matrix}, ${precision}, warm; ${products.toLocaleString("en")} products of it.`
    : `Nothing is measured on ${matrix} in ${precision}.`;
}

// --- All measurements -----------------------------------------------------------------------------------

const height = 24;  // of a row, as in report.css
let shown = [];
function pattern(text) {  // "csr_*,ell" as a regular expression
  const parts = text.split(",").map(part => part.trim()).filter(part => part);
  return new RegExp("^(" + parts.map(part => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*")).join("|") + ")$");
}
function matching(of, test) {  // each word is tested once
  const fits = of.words.map(test);
  return row => fits[of.at[row]];
}
function filter() {
  const tests = [], words = $("q").value.toLowerCase();
  if (words) tests.push(matching(column.matrix, word => word.toLowerCase().includes(words)));
  if ($("kernel").value.trim()) { const wanted = pattern($("kernel").value); tests.push(matching(column.kernel, word => wanted.test(word))); }
  for (const name of ["precision", "source"]) if ($(name).value) tests.push(matching(column[name], word => word === $(name).value));
  shown = [];
  for (let row = 0; row < count; ++row) if (tests.every(test => test(row))) shown.push(row);
  const [name, down] = $("sort").value.split(" ");
  const by = columns[Number(name)];
  if (by) {
    const order = by.words && by.words.map((word, at) => [word, at]).sort((a, b) => a[0] < b[0] ? -1 : 1)
      .reduce((ranks, [, at], rank) => (ranks[at] = rank, ranks), []);
    const value = order ? row => order[by.at[row]] : row => by.values[row] ?? Infinity;
    shown.sort((a, b) => (down ? -1 : 1) * (value(a) - value(b)));
  }
  $("count").textContent = `${shown.length.toLocaleString("en")} of ${count.toLocaleString("en")} measurements`;
  for (const head of document.querySelectorAll("#heads th")) {
    const mine = head.dataset.column === name && $("sort").value;
    head.setAttribute("aria-sort", mine ? (down ? "descending" : "ascending") : "none");
  }
  $("all").setAttribute("aria-rowcount", shown.length + 1);
  $("window").scrollTop = 0;
  draw();
}
// Only rows that can be seen are in the document.
function draw() {
  const frame = $("window"), first = Math.max(0, Math.floor(frame.scrollTop / height) - 5);
  const last = Math.min(shown.length, first + Math.ceil(frame.clientHeight / height) + 10);
  const gap = size => element("tr", {ariaHidden: "true"}, element("td", {colSpan: columns.length, className: "gap", style: `height: ${size}px`}));
  const rows = shown.slice(first, last).map((row, at) => {
    const line = element("tr", {}, ...columns.map(each => element("td", {className: each.words ? "" : "number", textContent: digits(each.get(row))})));
    line.setAttribute("aria-rowindex", first + at + 2);
    return line;
  });
  $("rows").replaceChildren(gap(first * height), ...rows, gap((shown.length - last) * height));
}
function save(name, type, text) {
  const link = element("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
function csv() {
  const quoted = value => /[",\n]/.test(value) ? `"${String(value).replace(/"/g, '""')}"` : value ?? "";
  return [columns.map(each => quoted(each.name)), ...shown.map(row => columns.map(each => quoted(each.get(row))))]
    .map(line => line.join(",")).join("\n") + "\n";
}
function json() {
  return JSON.stringify(shown.map(row => Object.fromEntries(columns.map(each => [each.name, each.get(row)]))));
}

// --- Start -----------------------------------------------------------------------------------------------

for (const [name, of] of [["precision", column.precision], ["source", column.source]]) {
  $(name).append(...of.words.toSorted().map(word => element("option", {value: word, textContent: word})));
}
$("for").append(...column.matrix.words.toSorted().map(word => element("option", {value: word, textContent: word})));
if (column.matrix.words.includes("G3_circuit")) $("for").value = "G3_circuit";
$("heads").append(...columns.map((each, at) => {
  const turn = element("button", {type: "button", textContent: each.name});
  turn.addEventListener("click", () => {
    $("sort").value = $("sort").value === `${at}` ? `${at} down` : `${at}`;
    filter();
    remember();
  });
  const head = element("th", {scope: "col", className: each.words ? "" : "number"}, turn);
  head.dataset.column = `${at}`;
  return head;
}));
for (const name of fields) {
  $(name).dataset.first = $(name).value;
  $(name).addEventListener("input", () => {
    if (["for", "in", "products"].includes(name)) choose(); else filter();
    remember();
  });
}
$("window").addEventListener("scroll", draw);
$("csv").addEventListener("click", () => save("measurements.csv", "text/csv", csv()));
$("json").addEventListener("click", () => save("measurements.json", "application/json", json()));
addEventListener("hashchange", () => { if (location.hash.includes("=")) { restore(); filter(); choose(); } });
restore();
filter();
choose();

// --- The other tables: a click on a column's head sorts by it, a second one turns the order round -------

function value(row, at) {
  const text = row.cells[at].textContent.trim().replace(/,/g, "");
  const number = parseFloat(text);
  return Number.isNaN(number) ? text.toLowerCase() : number;
}
function sort(head) {
  const at = head.cellIndex, body = head.closest("table").tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const compare = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b) : typeof a === "number" ? -1 : 1;
  const rows = [...body.rows].map(row => [value(row, at), row]);
  rows.sort((a, b) => (down ? -1 : 1) * compare(a[0], b[0]));
  body.append(...rows.map(pair => pair[1]));
}
for (const head of document.querySelectorAll("table:not(#all) th:not([scope])")) {
  const turn = element("button", {type: "button", textContent: head.textContent});
  turn.addEventListener("click", () => sort(head));
  head.replaceChildren(turn);
}
