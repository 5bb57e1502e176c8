// Charts. All but the sketch need d3; without it they say so.

const haveCharts = typeof d3 !== "undefined";

function noChart(holder) {
  holder.replaceChildren(element("p", {className: "note", textContent:
    "No chart: d3 was not at hand when this page was made. apt-get install node-d3, or pip, and make report again."}));
}

// An SVG of the holder's width. `label` is what a screen reader says of it.
function canvas(holder, height, label, role = "img") {
  const width = Math.max(280, holder.clientWidth);
  const svg = d3.create("svg").attr("width", width).attr("height", height).attr("viewBox", `0 0 ${width} ${height}`)
    .attr("role", role).attr("aria-label", label);
  holder.replaceChildren(svg.node());
  return [svg, width];
}

function logTicks(scale, most) {
  const [low, high] = scale.domain(), ticks = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; ++power) {
    for (const digit of [1, 2, 5]) ticks.push(digit * 10 ** power);
  }
  const inside = ticks.filter(tick => tick >= low * 0.999 && tick <= high * 1.001);
  const tens = inside.filter(tick => Math.abs(Math.log10(tick) % 1) < 1e-9);
  return inside.length <= most || tens.length < 2 ? inside : tens.length <= most ? tens : tens.filter((_, at) => at % 2 === 0);
}

function axes(svg, x, y, box, names) {
  const short = value => value >= 1e6 ? `${value / 1e6} M` : value >= 1e4 ? `${value / 1e3} k` : `${+value.toPrecision(3)}`;
  svg.append("g").attr("class", "axis").attr("aria-hidden", "true").attr("transform", `translate(0 ${box.bottom})`)
    .call(d3.axisBottom(x).tickValues(logTicks(x, (box.right - box.left) / 45)).tickFormat(short).tickSize(box.top - box.bottom).tickPadding(6));
  svg.append("g").attr("class", "axis").attr("aria-hidden", "true").attr("transform", `translate(${box.left} 0)`)
    .call(d3.axisLeft(y).tickValues(logTicks(y, (box.bottom - box.top) / 28)).tickFormat(short).tickSize(box.left - box.right).tickPadding(6));
  const text = (at, x, y, anchor) => svg.append("text").attr("class", "name").attr("aria-hidden", "true").attr("x", x).attr("y", y).attr("text-anchor", anchor).text(at);
  text(names[0], box.right, box.bottom + 32, "end");
  text(names[1], 0, box.top - 8, "start");
}

// Marks that one reaches with Tab, moves among with the arrow keys and selects with Enter or a click.
function reachable(marks, select) {
  const nodes = marks.nodes(), start = Math.max(0, nodes.findIndex(node => node.classList.contains("selected")));
  const move = (node, at) => {
    const next = nodes[Math.min(Math.max(at, 0), nodes.length - 1)];
    node.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  };
  marks.attr("tabindex", (_, at) => at === start ? 0 : -1).attr("role", "button").each(function (of, at) {
    const node = this;
    node.setAttribute("aria-label", of.tip.split("\n").slice(0, 2).join(", "));
    hasTip(node, () => of.tip);
    node.addEventListener("click", () => select(of));
    node.addEventListener("keydown", event => {
      const to = {ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: nodes.length - 1}[event.key];
      if (to !== undefined) move(node, to); else if (event.key === "Enter" || event.key === " ") select(of); else return;
      event.preventDefault();
    });
  });
}

const logScale = (domain, range) => d3.scaleLog().domain(domain).range(range);
const symbol = kind => d3.symbol().size(55).type(d3.symbols[Math.max(kind, 0) % d3.symbols.length])();
function padded(values, factor = 1.15) {
  return [Math.min(...values) / factor, Math.max(...values) * factor];
}

// A point per matrix: `points` of {matrix, kind, x, y, tip}.
function drawScatter(holder, points, names, selected, kinds, select) {
  if (!haveCharts) return noChart(holder);
  const [svg, width] = canvas(holder, Math.min(400, Math.max(300, holder.clientWidth * 0.85)), `${points.length} matrices: ${names[1]} over ${names[0]}. The table below says the same.`, "group");
  const box = {left: 44, right: width - 8, top: 24, bottom: svg.attr("height") - 40};
  const domain = padded(points.flatMap(point => [point.x, point.y]), 1.3);
  const x = logScale(domain, [box.left, box.right]), y = logScale(domain, [box.bottom, box.top]);
  axes(svg, x, y, box, names);
  svg.append("path").attr("class", "equal").attr("d", `M${box.left} ${box.bottom}L${box.right} ${box.top}`);
  const order = points.slice().sort((a, b) => a.x - b.x);
  const marks = svg.append("g").selectAll("path").data(order).enter().append("path").attr("d", of => symbol(kinds.indexOf(of.kind)))
    .attr("class", of => `mark kind-${kinds.indexOf(of.kind)}${of.matrix === selected ? " selected" : ""}`)
    .attr("transform", of => `translate(${x(of.x)} ${y(of.y)})`);
  reachable(marks, select);
  marks.filter(".selected").raise();
  const shown = kinds.filter(kind => points.some(point => point.kind === kind));
  holder.append(element("p", {className: "legend"}, ...shown.map(kind => {
    const item = element("span", {});
    item.append(d3.create("svg").attr("width", 14).attr("height", 14).attr("viewBox", "-7 -7 14 14").attr("aria-hidden", "true")
      .call(svg => svg.append("path").attr("class", `mark kind-${kinds.indexOf(kind)}`).attr("d", symbol(kinds.indexOf(kind)))).node(), kind);
    return item;
  })));
}

// A line per kernel: median and quartiles. `rows` of {kernel, lower, ms, upper, ours, tip, extras}: numbers beside it, of the
// columns `heads`.
function drawTimes(holder, rows, baseline, heads) {
  if (!haveCharts) return noChart(holder);
  const each = 17, [svg, width] = canvas(holder, 44 + each * rows.length, `Times of ${rows.length} kernels in microseconds, the fastest first`, "group");
  const box = {left: 166, right: width - 56 - 50 * heads.length, top: 24, bottom: 24 + each * rows.length};
  const x = logScale(padded([...rows.flatMap(row => [row.lower, row.upper]), ...(baseline ? [baseline] : [])].map(ms => 1e3 * ms)), [box.left, box.right]);
  svg.append("g").attr("class", "axis").attr("aria-hidden", "true").attr("transform", `translate(0 ${box.bottom})`)
    .call(d3.axisBottom(x).tickValues(logTicks(x, (box.right - box.left) / 45)).tickFormat(value => `${+value.toPrecision(3)}`).tickSize(box.top - box.bottom).tickPadding(5));
  const head = (at, text) => svg.append("text").attr("class", "name").attr("aria-hidden", "true").attr("x", at).attr("y", 12).attr("text-anchor", "end").text(text);
  head(box.right + 54, "us");
  heads.forEach((name, column) => head(box.right + 54 + 50 * (column + 1), name));
  if (baseline) {
    svg.append("path").attr("class", "equal").attr("d", `M${x(1e3 * baseline)} ${box.top}V${box.bottom}`);
    svg.append("text").attr("class", "name").attr("x", x(1e3 * baseline)).attr("y", 12).attr("text-anchor", "start").text("baseline");
  }
  const lines = svg.append("g").selectAll("g").data(rows).enter().append("g").attr("class", row => `line ${row.ours ? "ours" : "peer"}`)
    .attr("transform", (_, at) => `translate(0 ${box.top + each * (at + 0.5)})`);
  lines.append("rect").attr("class", "hit").attr("x", 0).attr("y", -each / 2).attr("width", width).attr("height", each);
  lines.append("text").attr("x", box.left - 8).attr("dy", "0.33em").attr("text-anchor", "end").text(row => row.kernel);
  lines.append("path").attr("class", "spread").attr("d", row => `M${x(1e3 * row.lower)} 0H${x(1e3 * row.upper)}`);
  lines.append("circle").attr("r", 4).attr("cx", row => x(1e3 * row.ms));
  lines.append("text").attr("x", box.right + 54).attr("dy", "0.33em").attr("text-anchor", "end").text(row => digits(1e3 * row.ms));
  heads.forEach((_, column) => lines.append("text").attr("class", "extra").attr("x", box.right + 54 + 50 * (column + 1)).attr("dy", "0.33em").attr("text-anchor", "end")
    .text(row => row.extras[column]));
  reachable(lines, () => {});
}

function drawHistogram(holder, bins) {
  if (!haveCharts) return noChart(holder);
  const name = ([low, high]) => low === high ? `${low}` : `${low}–${high}`;
  const [svg, width] = canvas(holder, 22 * bins.length + 8, `Rows by their number of nonzeros: ${bins.map(bin => `${name(bin)}: ${whole(bin[2])} rows`).join("; ")}`);
  const most = Math.max(...bins.map(bin => bin[2])), x = d3.scaleLinear().domain([0, most]).range([0, width - 84 - 76]);
  const line = svg.selectAll("g").data(bins).enter().append("g").attr("class", "bar").attr("transform", (_, at) => `translate(0 ${22 * at + 4})`);
  line.append("text").attr("x", 78).attr("y", 13).attr("text-anchor", "end").text(name);
  line.append("rect").attr("x", 84).attr("height", 17).attr("width", bin => Math.max(1, x(bin[2])));
  line.append("text").attr("x", bin => 90 + Math.max(1, x(bin[2]))).attr("y", 13).text(bin => whole(bin[2]));
}

// Where the nonzeros are: a path per shade.
function drawSketch(holder, lines, name) {
  const ns = "http://www.w3.org/2000/svg", height = lines.length, width = lines[0].length;
  const svg = document.createElementNS(ns, "svg");
  const set = (node, values) => Object.entries(values).forEach(([key, value]) => node.setAttribute(key, value));
  set(svg, {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", class: "sketch", "shape-rendering": "crispEdges",
            "aria-label": `Where the nonzeros of ${name} are, on ${height} by ${width} cells`});
  for (let shade = 1; shade <= 9; ++shade) {
    const path = document.createElementNS(ns, "path");
    const cells = lines.flatMap((line, row) => [...line].map((digit, at) => +digit === shade ? `M${at} ${row}h1v1h-1z` : "")).join("");
    if (!cells) continue;
    set(path, {d: cells, "fill-opacity": 0.25 + 0.75 * shade / 9});
    svg.append(path);
  }
  holder.replaceChildren(svg);
}
