// The page: what is asked stands in the address, and every part is drawn from it.

const $ = id => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made)
      made[name] = value;
    else
      made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null));
  return made;
}
const note = text => element("p", {className: "note", textContent: text});
function digits(value) {
  if (typeof value !== "number") return value ?? "—";
  if (!Number.isFinite(value)) return "—";
  return value >= 1e4 ? whole(Math.round(value)) :
      value >= 100    ? value.toFixed(0) :
      value >= 10     ? value.toFixed(1) :
      value >= 0.01   ? value.toFixed(2) :
                        value.toPrecision(2);
}
const whole = value => value.toLocaleString("en");
function duration(ms) {
  return ms >= 1000 ? `${digits(ms / 1000)} s` :
      ms >= 1 ? `${digits(ms)} ms` :
                `${digits(1000 * ms)} us`;
}
const gflops = (row, state) => 2e-6 * row.nnz / row[`${state}_ms`];

// Milliseconds. cuSPARSE's first product in a process opens the library, which takes longer than
// any conversion to CSR or COO and is not the kernel's setup.
const OPENING = 50;
const opens = row => /^cusparse_(csr|coo)/.test(row.kernel) && row.setup_ms > OPENING;
const setup = row => (opens(row) ? 0 : row.setup_ms) + row.preprocess_ms;

// --- What is asked, and the address --------------------------------------------------

const FIELDS = [
  "device", "precision", "state", "source", "kind", "step", "kernel", "q", "m", "a_kernel",
  "a_precision", "a_device", "b_kernel", "b_precision", "b_device"
];
const FILTERS = FIELDS.slice(0, 8);
let data, shown = [], sort = "", active = 0;

function restore() {
  const asked = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const name of FIELDS) {
    const wanted = asked.get(name) ?? $(name).dataset.first;
    if (!$(name).options || [...$(name).options].some(option => option.value === wanted))
      $(name).value = wanted;
  }
  sort = asked.get("sort") ?? "";
}
function remember() {
  const asked = new URLSearchParams();
  for (const name of FIELDS)
    if ($(name).value !== $(name).dataset.first) asked.set(name, $(name).value);
  if (sort) asked.set("sort", sort);
  history.replaceState(null, "", asked.size ? "#" + asked : location.pathname + location.search);
}

// "csr_*,cant,dof=8" as a test of names: each word is one of `known`, a part of some, or a pattern.
// A comma before "key=" is within a name.
function named(text, known) {
  const words =
      text.toLowerCase().split(/,(?![a-z_]+=)/).map(word => word.trim()).filter(word => word);
  const names = new Set(Object.keys(known).map(name => name.toLowerCase()));
  const fits = words.map(word => {
    if (names.has(word)) return name => name === word;
    if (!word.includes("*")) return name => name.includes(word);
    const parts = word.split("*").map(part => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
    const whole = new RegExp(`^${parts.join(".*")}$`);
    return name => whole.test(name);
  });
  return name => fits.some(test => test(name.toLowerCase()));
}
// A test of rows by those filters that are named.
function filter(names) {
  const tests = [], wanted = name => names.includes(name) ? $(name).value : "";
  for (const name of ["device", "precision", "source", "kind"]) {
    const value = wanted(name);
    if (value) tests.push(row => row[name] === value);
  }
  if (wanted("step")) {
    const step = +wanted("step");
    tests.push(row => row.step === step);
  }
  for (const [field, column, known] of [
           ["kernel", "kernel", data.kernels], ["q", "matrix", data.matrices]]) {
    if (!wanted(field).trim()) continue;
    const fits = named(wanted(field), known);
    tests.push(row => fits(row[column]));
  }
  return row => tests.every(test => test(row));
}
const state = () => $("state").value;
const precision = () => $("precision").value || "f64";
const device = () => $("device").value || data.first;

function select(matrix) {
  if (![...$("m").options].some(option => option.value === matrix)) return;
  const place = document.activeElement?.closest("#scatter, #window")
                    ?.id;  // whose marks and rows are made anew
  $("m").value = matrix;
  chosen(place === "window");
  if (place === "scatter") $("scatter").querySelector(".selected")?.focus();
}

// --- What measures it again, and values under the pointer ----------------------------

const asArgument = row => row.source === "file" ?
    `data/${data.matrices[row.matrix].detail.split("/").pop()}` :
    row.matrix;
function command(row) {
  return `make run MATRIX='${asArgument(row)}' PRECISION=${row.precision} ARGS="--kernel ${
      row.kernel} --json records.jsonl"`;
}
function tipOf(row, at = state()) {
  return `${row.kernel} on ${row.matrix}${row.source === "stand-in" ? " (stand-in)" : ""}, ${
             row.precision}, ${row.device}\n` +
      `${duration(row[`${at}_ms`])} ${at} (spread ${duration(row[`${at}_lower_ms`])} to ${
             duration(row[`${at}_upper_ms`])}), ${digits(gflops(row, at))} GFLOP/s\n` +
      `setup ${duration(setup(row))}${
             opens(row) ? ` (and ${duration(row.setup_ms)} to open cuSPARSE)` :
                          ""}${row.alone ? "" : " while other processes prepared matrices"}${
             row.choice ? `; chose ${row.choice}` : ""}; commit ${row.commit || "unknown"}${
             row.code === "other" ? ", whose machine code is not today's" :
                                    ""}\nAgain: ${command(row)}`;
}
function showTip(text, box) {
  const tip = $("tip");
  tip.textContent = text;
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left =
      `${Math.max(4, Math.min(box.left + 12, document.documentElement.clientWidth - width - 8))}px`;
  tip.style.top = `${
      box.bottom + height + 12 < innerHeight ? box.bottom + 8 :
                                               Math.max(4, box.top - height - 8)}px`;
}
const hideTip = () => {
  $("tip").hidden = true;
};
function hasTip(node, text) {
  const show = () => showTip(text(), node.getBoundingClientRect());
  for (const event of ["pointerenter", "focus"]) node.addEventListener(event, show);
  for (const event of ["pointerleave", "blur"]) node.addEventListener(event, hideTip);
}

// `words`: how many columns, from the first, have words and not numbers.
function fill(table, heads, rows, words = 1) {
  const classOf = at => at < words ? "" : "number";
  table.tHead.replaceChildren(element(
      "tr", {},
      ...heads.map(
          (head, at) => element("th", {scope: "col", className: classOf(at), textContent: head}))));
  table.tBodies[0].replaceChildren(...rows.map(
      cells => element(
          "tr", {}, ...cells.map((cell, at) => element("td", {className: classOf(at)}, cell)))));
}
function link(matrix) {
  const button = element("button", {type: "button", className: "link", textContent: matrix});
  button.addEventListener("click", () => select(matrix));
  return button;
}

// --- How do two compare --------------------------------------------------------------

const OF_STEP = "fastest of step ", OF_CUSPARSE = "fastest of cuSPARSE",
      OF_OURS = "fastest of all steps", OF_CSR = "fastest of ours on plain CSR";
function fitting(choice) {
  if (choice === OF_CUSPARSE) return row => row.kernel.startsWith("cusparse_");
  if (choice === OF_OURS) return row => row.step > 0 && !row.host;
  if (choice === OF_CSR) return row => row.step > 0 && !row.host && row.format === "CSR";
  if (choice.startsWith(OF_STEP)) {
    const step = +choice.slice(OF_STEP.length);
    return row => row.step === step;
  }
  return row => row.kernel === choice;
}
function drawCompared() {
  const column = `${state()}_ms`, passes = filter(["source", "kind", "q"]);
  const side = name => {
    const fits = fitting($(`${name}_kernel`).value),
          wanted = $(`${name}_precision`).value || precision(),
          on = $(`${name}_device`).value || device();
    const best = new Map();
    for (const row of data.rows) {
      if (row.precision !== wanted || row.device !== on || !(row[column] > 0) || !fits(row) ||
          !passes(row))
        continue;
      if (!best.has(row.matrix) || row[column] < best.get(row.matrix)[column])
        best.set(row.matrix, row);
    }
    const parts =
        [$(`${name}_kernel`).value, $(`${name}_precision`).value, $(`${name}_device`).value];
    return [best, parts.filter(part => part).join(", ")];
  };
  const [across, a] = side("a"), [up, b] = side("b");
  const points = [...across].filter(([matrix]) => up.has(matrix)).map(([matrix, row]) => {
    const other = up.get(matrix);
    return {
      matrix,
      kind: row.kind,
      source: row.source,
      x: gflops(row, state()),
      y: gflops(other, state()),
      ratio: gflops(other, state()) / gflops(row, state()),
      tip: `${tipOf(other)}\n\n${tipOf(row)}`,
      a: row,
      b: other
    };
  });
  points.sort((p, q) => q.ratio - p.ratio);
  if (a === b || !points.length) {
    const without = [[across, "a"], [up, "b"]]
                        .filter(([found]) => !found.size)
                        .map(([, name]) => $(`${name}_device`).value || device());
    $("compared").textContent = a === b ?
        `Both sides are ${a}: choose another kernel, precision or device for one.` :
        without.length ? `No records (${state()}) of what is asked for on ${
                                 [...new Set(without)].join(" and ")}, with these filters.` :
                         `No matrix was measured with both (${state()}), with these filters.`;
    $("scatter").replaceChildren();
    fill($("pairs"), [], []);
    return;
  }
  const at = end => `${state()}_${end}_ms`;
  const reach = (row, beside) => {  // as is_tie() of records.py
    const of = (row.processes || 1) < (beside.processes || 1) ? beside : row;
    return ["lower", "upper"].map(end => of[at(end)] * row[column] / of[column]);
  };
  const ties = points.filter(
      ({a, b}) => reach(a, b)[0] <= reach(b, a)[1] && reach(b, a)[0] <= reach(a, b)[1]);
  const ahead = points.filter(point => point.ratio > 1 && !ties.includes(point)).length;
  const mean =
      Math.exp(points.reduce((sum, point) => sum + Math.log(point.ratio), 0) / points.length);
  $("compared")
      .replaceChildren(
          element("strong", {textContent: b}), ` is faster than `,
          element("strong", {textContent: a}),
          ` on ${ahead} of ${points.length} matrices${
              ties.length ? `, ${ties.length} are ties (the spreads overlap)` :
                            ""}; ${digits(mean)} times as fast (geometric mean).`);
  drawScatter(
      $("scatter"), points, [`GFLOP/s: ${a}`, `GFLOP/s: ${b}`], $("m").value, data.kinds,
      point => select(point.matrix));
  fill(
      $("pairs"), ["matrix", "kind", "across", "up", "up / across"],
      points.map(
          point =>
              [link(point.matrix), point.kind, ...[point.x, point.y, point.ratio].map(digits)]),
      2);
}

// --- The page of a matrix ------------------------------------------------------------

function drawMatrix() {
  const name = $("m").value;
  $("matrix").hidden = !name;
  if (!name) return;
  const every = data.rows.filter(row => row.matrix === name), one = every[0],
        looks = data.matrices[name] ?? {};
  const count = value => value === undefined ? null : whole(value);
  const code = text => element("code", {textContent: text});
  const mean = looks.mean_row ?? one.nnz / Math.max(one.rows, 1);
  const lengths = looks.max_row === undefined ?
      null :
      `${whole(looks.min_row)} to ${whole(looks.max_row)}, mean ${digits(mean)}, `;
  const again = `MATRICES='${asArgument(one)}' PRECISIONS=${precision()} ARGS=--fresh`;
  const facts = [
    ["kind", `${one.kind}; ${one.source === "file" ? "real file" : one.source}`],
    ["rows", whole(one.rows)], ["columns", whole(one.cols)], ["nonzeros", whole(one.nnz)],
    ["row lengths", lengths && `${lengths}deviation ${digits(looks.stddev_row)}`],
    ["mean row", lengths ? null : digits(mean)], ["empty rows", count(looks.empty_rows)],
    ["diagonals", count(looks.diagonals)], ["bandwidth", count(looks.bandwidth)],
    [one.source === "file" ? "file" : "made by", code(looks.detail || name)],
    ["measure again", code(`make bench SET=catalogue ${again}`)]
  ];
  $("facts").replaceChildren(
      ...facts.filter(([, value]) => value !== null)
          .flatMap(
              ([what, value]) => [element("dt", {textContent: what}), element("dd", {}, value)]));
  for (const id of ["sketch", "histogram"])
    $(id).replaceChildren(note(
        "Not known of this matrix: make bench SET=shapes looks at those that can be made or are in data/."));
  if (looks.sketch) drawSketch($("sketch"), looks.sketch, name);
  if (looks.row_lengths) drawHistogram($("histogram"), looks.row_lengths);

  const fits = filter(["kernel", "step"]), column = `${state()}_ms`, moved = looks.moved;
  const rows = every
                   .filter(
                       row => row.precision === precision() && row.device === device() &&
                           row[column] > 0 && fits(row))
                   .sort((a, b) => a[column] - b[column]);
  const where = `${precision()}, ${state()}, ${device()}`;
  if (!rows.length) {
    $("times").replaceChildren(
        note(`Nothing is measured: ${where}, and the filters for kernel and step.`));
    $("times-caption").textContent = "";
    return;
  }
  const baseline = rows[0][`baseline_${state()}_ms`];
  $("times-caption").textContent = `Microseconds per product, median and spread; ${where}.` +
      (baseline ? " Baseline: streams values and column indices and gathers x, without row logic." :
                  "") +
      " Copy: bytes that a copy moves in the time, per byte needed." +
      (moved ?
           " Moved: bytes in the sectors that warps request, per byte needed, before any cache, f64, counted on the CPU backend." :
           "");
  const inCopy = row => 1e6 * row.copy_gb_per_s * row[column] / row.compulsory_bytes;
  drawTimes(
      $("times"),
      rows.map(
          row => ({
            kernel: row.kernel,
            lower: row[`${state()}_lower_ms`],
            ms: row[column],
            upper: row[`${state()}_upper_ms`],
            ours: row.step > 0,
            tip: tipOf(row),
            extras: [digits(inCopy(row)), ...(moved ? [moved[row.kernel]?.toFixed(2) ?? "—"] : [])]
          })),
      baseline, moved ? ["copy", "moved"] : ["copy"]);
}

// --- All measurements ----------------------------------------------------------------

const HEIGHT = 26;  // of a row, as in page.css
// What follows from fields; those that a record has, and its table names, stand around them.
const DERIVED = [
  ["kind", row => row.kind], ["source", row => row.source], ["nonzeros", row => row.nnz, whole],
  ["setup ms", row => setup(row)], ["us", (row, at) => 1e3 * row[`${at}_ms`]],
  ["lower", (row, at) => 1e3 * row[`${at}_lower_ms`]],
  ["upper", (row, at) => 1e3 * row[`${at}_upper_ms`]], ["GFLOP/s", (row, at) => gflops(row, at)],
  ["% of copy", (row, at) => 1e-4 * row.compulsory_bytes / row[`${at}_ms`] / row.copy_gb_per_s],
  ["device", row => row.device]
];
let columns = DERIVED, words = ["kind", "source", "device"];
function readColumns() {
  const own = isWord => Object.entries(data.heads)
                            .filter(([name]) => data.words.includes(name) === isWord)
                            .map(([name, head]) => [head, row => row[name]]);
  columns = [...own(true), ...DERIVED, ...own(false)];
  words = [...words, ...own(true).map(([head]) => head)];
}

function drawMeasurements() {
  const passes = filter(FILTERS), column = `${state()}_ms`;
  shown = data.rows.filter(row => row[column] > 0 && passes(row));
  const name = sort.replace(/^-/, ""), by = columns.find(([head]) => head === name);
  if (by) {
    const down = sort.startsWith("-") ? -1 : 1, at = state(),
          keys = new Map(shown.map(row => [row, by[1](row, at)]));
    shown.sort(
        words.includes(name) ? (a, b) => down *
                (keys.get(a) < keys.get(b)     ? -1 :
                     keys.get(a) > keys.get(b) ? 1 :
                                                 0) :
                               (a, b) => down * ((keys.get(a) || 0) - (keys.get(b) || 0)));
  }
  $("count").textContent =
      `${whole(shown.length)} of ${whole(data.rows.length)} measurements, ${state()} times`;
  for (const head of $("heads").cells)
    head.setAttribute(
        "aria-sort",
        head.dataset.column !== name ? "none" :
            sort.startsWith("-")     ? "descending" :
                                       "ascending");
  $("all").setAttribute("aria-rowcount", shown.length + 1);
  active = 0;
  $("window").scrollTop = 0;
  drawRows();
}
// Only rows that can be seen are in the document.
function drawRows(focus = $("rows").contains(document.activeElement)) {
  const frame = $("window"), first = Math.max(0, Math.floor(frame.scrollTop / HEIGHT) - 5);
  const last = Math.min(shown.length, first + Math.ceil(frame.clientHeight / HEIGHT) + 10);
  const gap = size => element(
      "tr", {ariaHidden: "true"},
      element("td", {colSpan: columns.length, className: "gap", style: `height: ${size}px`}));
  const selected = $("m").value;
  const lines = shown.slice(first, last).map((row, at) => {
    const line = element(
        "tr", {className: row.matrix === selected ? "selected" : ""},
        ...columns.map(([head, value, text], place) => {
          const cell = element("td", {className: words.includes(head) ? "" : "number"});
          if (place)
            cell.textContent = (text ?? digits)(value(row, state()));
          else {
            const button = link(row.matrix);
            button.addEventListener("focus", () => {
              active = first + at;
            });
            button.tabIndex = first + at === active ? 0 : -1;
            hasTip(button, () => tipOf(row));
            cell.append(button);
          }
          return cell;
        }));
    line.setAttribute("aria-rowindex", first + at + 2);
    hasTip(line, () => tipOf(row));
    return line;
  });
  $("rows").replaceChildren(gap(first * HEIGHT), ...lines, gap((shown.length - last) * HEIGHT));
  if (focus) (lines[active - first]?.querySelector("button") ?? frame).focus({preventScroll: true});
}
function move(event) {
  const page = Math.max(1, Math.floor($("window").clientHeight / HEIGHT) - 2);
  const by = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: page,
    PageUp: -page,
    Home: -Infinity,
    End: Infinity
  }[event.key];
  if (by === undefined || !shown.length) return;
  event.preventDefault();
  active = Math.min(Math.max(active + by, 0), shown.length - 1);
  const top = active * HEIGHT, frame = $("window"), room = frame.clientHeight - 2 * HEIGHT;
  if (top < frame.scrollTop)
    frame.scrollTop = top;
  else if (top > frame.scrollTop + room)
    frame.scrollTop = top - room;
  drawRows(true);
}

function fieldsOf(row) {
  const {run, ...rest} = row;
  const {driver, cuda, cusparse, compiler, command: made_by, time} = data.runs[run] ?? {};
  return {...rest, driver, cuda, cusparse, compiler, time, made_by};
}
function csv() {
  const quoted = value =>
      /[",\n]/.test(value) ? `"${String(value).replace(/"/g, '""')}"` : value ?? "";
  const lines = shown.map(fieldsOf), names = [...new Set(lines.flatMap(Object.keys))];
  return [names, ...lines.map(line => names.map(name => quoted(line[name])))]
             .map(line => line.join(","))
             .join("\n") +
      "\n";
}
function save(name, type, text) {
  const link = element("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A chart as a file of its own: with the styles that it has here, as values, and a background.
const STYLES = [
  "color", "fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray",
  "stop-color", "font-family", "font-size"
];
function svgOf(id) {
  const svg = $(id).querySelector("svg"), copy = svg.cloneNode(true);
  const copies = copy.querySelectorAll("*");
  svg.querySelectorAll("*").forEach((node, at) => {
    const style = getComputedStyle(node);
    for (const name of STYLES) copies[at].style.setProperty(name, style.getPropertyValue(name));
  });
  copy.style.fill = getComputedStyle(svg).fill;
  copy.prepend(shape("rect", {
    width: "100%",
    height: "100%",
    style: `fill: ${getComputedStyle(document.body).backgroundColor}`
  }));
  return new XMLSerializer().serializeToString(copy);
}

// --- Start ---------------------------------------------------------------------------

function options(id, words, all) {
  const select = $(id), kept = select.value;
  select.replaceChildren(
      ...(all === undefined ? [] : [new Option(all, "")]),
      ...words.map(word => Array.isArray(word) ? new Option(word[1], word[0]) : new Option(word)));
  select.value = kept;
  if (select.selectedIndex < 0) select.selectedIndex = 0;
}
// What can be chosen, of the rows that there are.
function offer() {
  const of = name => [...new Set(data.rows.map(row => row[name]))];
  const inOrder = names => names.sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
  const steps = of("step").sort((a, b) => a - b), devices = of("device");
  data.first =
      devices.find(name => data.rows.some(row => row.device === name && !row.host)) ?? devices[0];
  options("device", devices, "all");
  options("kind", data.kinds, "all");
  options("step", steps.map(step => [String(step), data.steps[step] ?? String(step)]), "all");
  options("m", inOrder(of("matrix")));
  const kernels = [
    OF_CUSPARSE, OF_OURS, OF_CSR, ...steps.filter(step => step).map(step => OF_STEP + step),
    ...inOrder(of("kernel"))
  ];
  for (const side of ["a", "b"]) {
    options(`${side}_kernel`, kernels);
    options(`${side}_precision`, ["f64", "f32"], "as filtered");
    options(`${side}_device`, devices, "as filtered");
  }
}
function changed() {
  drawCharts();
  drawMeasurements();
}
// Another matrix or another comparison: the table below keeps its place.
function chosen(inTable) {
  drawCharts();
  drawRows(inTable);
}
function drawCharts() {
  remember();
  hideTip();
  drawCompared();
  drawMatrix();
}
function heads() {
  $("heads").append(...columns.map(([name]) => {
    const turn = element("button", {type: "button", textContent: name});
    turn.addEventListener("click", () => {
      sort = sort === name ? `-${name}` : name;
      remember();
      drawMeasurements();
    });
    const head =
        element("th", {scope: "col", className: words.includes(name) ? "" : "number"}, turn);
    head.dataset.column = name;
    return head;
  }));
}
function start() {
  readColumns();
  offer();
  if (data.matrices.G3_circuit) $("m").value = "G3_circuit";
  const kernels = [...$("b_kernel").options].map(option => option.value);
  if (kernels.includes("pcsr_one_pass")) $("b_kernel").value = "pcsr_one_pass";
  heads();
  for (const name of FIELDS) {
    $(name).dataset.first = $(name).value;
    $(name).addEventListener("input", name === "m" || /_/.test(name) ? () => chosen() : changed);
  }
  $("reset").addEventListener("click", () => {
    for (const name of FILTERS) $(name).value = $(name).dataset.first;
    changed();
  });
  addEventListener("keydown", event => {
    if (event.key === "Escape") hideTip();
  });
  for (const form of document.forms)
    form.addEventListener("submit", event => event.preventDefault());
  $("window").addEventListener("scroll", () => drawRows());
  $("window").addEventListener("keydown", move);
  $("csv").addEventListener("click", () => save("measurements.csv", "text/csv", csv()));
  for (const button of document.querySelectorAll("button[data-charts]")) {
    button.addEventListener(
        "click",
        () => button.dataset.charts.split(" ")
                  .filter(id => $(id).querySelector("svg"))
                  .forEach(id => save(`${id}.svg`, "image/svg+xml", svgOf(id))));
  }
  addEventListener("hashchange", () => {
    if (location.hash.includes("=")) {
      restore();
      changed();
    }
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) {
      width = innerWidth;
      drawCompared();
      drawMatrix();
    }
  });
  restore();
  if (data.rows.length)
    changed();
  else
    $("compared").textContent = "Nothing is measured yet: make bench measures.";
  document.body.dataset.ready = "yes";
}

// A section's name in the address scrolls to it, and what is asked stays there.
for (const anchor of document.querySelectorAll("a[href^='#']")) {
  anchor.addEventListener("click", event => {
    const target = $(anchor.getAttribute("href").slice(1));
    if (!target) return;
    event.preventDefault();
    target.scrollIntoView();
    target.tabIndex = -1;
    target.focus({preventScroll: true});
  });
}

unpacked($("data").textContent).then(found => {
  data = found;
  start();
});
