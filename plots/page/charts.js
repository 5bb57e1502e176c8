// Charts, as SVG.

function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// An SVG of the holder's width, and that width. `label` is what a screen reader says of it.
function canvas(holder, height, label, role = "img") {
  const width = Math.max(280, holder.clientWidth);
  const svg =
      shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role, "aria-label": label});
  holder.replaceChildren(svg);
  return [svg, width];
}

// Where a value is between `begin` and `end`, which stand for the ends of `domain`.
function logScale(domain, [begin, end]) {
  const [low, high] = domain.map(Math.log);
  return Object.assign(
      value => begin + (Math.log(value) - low) / (high - low) * (end - begin), {domain});
}

function logTicks({domain: [low, high]}, most) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; ++power) {
    for (const digit of [1, 2, 5]) ticks.push(digit * 10 ** power);
  }
  const inside = ticks.filter(tick => tick >= low * 0.999 && tick <= high * 1.001);
  const tens = inside.filter(tick => Math.abs(Math.log10(tick) % 1) < 1e-9);
  return inside.length <= most || tens.length < 2 ? inside :
      tens.length <= most                         ? tens :
                                                    tens.filter((_, at) => at % 2 === 0);
}

// What a screen reader need not say: the label of the whole has it.
const caption = (x, y, anchor, text) =>
    shape("text", {class: "name", "aria-hidden": "true", x, y, "text-anchor": anchor}, text);

// Lines across the box at the ticks of a scale, with their values: below the box, or to its left.
function axis(scale, box, isBelow, format) {
  const ticks =
      logTicks(scale, isBelow ? (box.right - box.left) / 45 : (box.bottom - box.top) / 28);
  return shape("g", {class: "axis", "aria-hidden": "true"}, ...ticks.flatMap(tick => {
    const at = scale(tick);
    return isBelow ?
        [
          shape("line", {x1: at, x2: at, y1: box.top, y2: box.bottom}),
          shape("text", {x: at, y: box.bottom + 15, "text-anchor": "middle"}, format(tick))
        ] :
        [
          shape("line", {x1: box.left, x2: box.right, y1: at, y2: at}),
          shape("text", {x: box.left - 6, y: at, dy: "0.32em", "text-anchor": "end"}, format(tick))
        ];
  }));
}

// Marks, one for each of `every`, that one reaches with Tab, moves among with the arrow keys and
// selects with Enter or a click.
function reachable(marks, every, select) {
  const start = Math.max(0, marks.findIndex(mark => mark.classList.contains("selected")));
  const move = (mark, at) => {
    const next = marks[Math.min(Math.max(at, 0), marks.length - 1)];
    mark.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  };
  marks.forEach((mark, at) => {
    const of = every[at];
    mark.setAttribute("tabindex", at === start ? 0 : -1);
    mark.setAttribute("role", "button");
    mark.setAttribute("aria-label", of.tip.split("\n").slice(0, 2).join(", "));
    hasTip(mark, () => of.tip);
    mark.addEventListener("click", () => select(of));
    mark.addEventListener("keydown", event => {
      const to = {
        ArrowRight: at + 1,
        ArrowDown: at + 1,
        ArrowLeft: at - 1,
        ArrowUp: at - 1,
        Home: 0,
        End: marks.length - 1
      }[event.key];
      if (to !== undefined)
        move(mark, to);
      else if (event.key === "Enter" || event.key === " ")
        select(of);
      else
        return;
      event.preventDefault();
    });
  });
}

// A mark for each kind, of about the same area: circle, cross, diamond, square, star, and two
// triangles.
const SYMBOLS = [
  "M4.2 0A4.2 4.2 0 1 1 -4.2 0A4.2 4.2 0 1 1 4.2 0Z",
  "M-5 -1.7H-1.7V-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5Z", "M0 -6.9L4 0L0 6.9L-4 0Z",
  "M-3.7 -3.7H3.7V3.7H-3.7Z",
  "M0 -7L1.6 -2.2H6.7L2.5 0.8L4.1 5.7L0 2.7L-4.1 5.7L-2.5 0.8L-6.7 -2.2H-1.6Z",
  "M0 -6.5L5.6 3.3H-5.6Z", "M0 6.5L5.6 -3.3H-5.6Z"
];
// Full for a real file, half for a generated matrix, hollow for a stand-in. Only the SVG of a
// scatter has the halves.
const fillOf = (kind, source) => source === "file" ? "currentColor" :
    source === "stand-in"                          ? "var(--card)" :
                                                     `url(#half-${kind})`;
const markOf = (kind, source) => ({
  d: SYMBOLS[Math.max(kind, 0) % SYMBOLS.length],
  class: `mark kind-${kind}`,
  style: `fill: ${fillOf(kind, source)}`
});
const halfOf = kind => shape(
    "linearGradient", {id: `half-${kind}`, class: `kind-${kind}`},
    shape("stop", {offset: 0.5, "stop-color": "currentColor"}),
    shape("stop", {offset: 0.5, style: "stop-color: var(--card)"}));

function padded(values, factor = 1.15) {
  return [Math.min(...values) / factor, Math.max(...values) * factor];
}

// Below `top`, what symbols mean: `parts` of [[name, symbol]], each on lines of its own. The chart
// grows by them.
function drawLegend(svg, left, top, parts) {
  const width = svg.viewBox.baseVal.width;
  let x = left, y = top;
  for (const entries of parts) {
    for (const [name, symbol] of entries) {
      const text = shape("text", {x: 12, dy: "0.33em"}, name),
            both = shape("g", {class: "legend", "aria-hidden": "true"}, symbol, text);
      svg.append(both);
      const room = text.getComputedTextLength() + 32;
      if (x > left && x + room > width) [x, y] = [left, y + 18];
      both.setAttribute("transform", `translate(${x + 7} ${y})`);
      x += room;
    }
    [x, y] = [left, y + 18];
  }
  svg.setAttribute("height", y);
  svg.setAttribute("viewBox", `0 0 ${width} ${y}`);
}

// A point per matrix: `points` of {matrix, kind, source, x, y, tip}.
function drawScatter(holder, points, names, selected, kinds, select) {
  const height = Math.min(400, Math.max(300, holder.clientWidth * 0.85));
  const [svg, width] = canvas(
      holder, height,
      `${points.length} matrices: ${names[1]} over ${names[0]}. The table below says the same.`,
      "group");
  const box = {left: 44, right: width - 14, top: 24, bottom: height - 40};
  const domain = padded(points.flatMap(point => [point.x, point.y]), 1.3);
  const x = logScale(domain, [box.left, box.right]), y = logScale(domain, [box.bottom, box.top]);
  const short = value => value >= 1e6 ? `${value / 1e6} M` :
      value >= 1e4 ? `${value / 1e3} k` :
                     `${+ value.toPrecision(3)}`;
  const order = points.slice().sort((a, b) => a.x - b.x);
  const marks = order.map(of => shape("path", {
                            ...markOf(kinds.indexOf(of.kind), of.source),
                            transform: `translate(${x(of.x)} ${y(of.y)})`
                          }));
  order.forEach((of, at) => marks[at].classList.toggle("selected", of.matrix === selected));
  reachable(marks, order, select);
  svg.append(
      shape("defs", {}, ...[-1, ...kinds.keys()].map(halfOf)), axis(x, box, true, short),
      axis(y, box, false, short), caption(box.right, box.bottom + 32, "end", names[0]),
      caption(0, box.top - 8, "start", names[1]),
      shape("path", {class: "equal", d: `M${box.left} ${box.bottom}L${box.right} ${box.top}`}),
      shape(
          "g", {},
          ...marks.slice().sort(
              (a, b) => a.classList.contains("selected") - b.classList.contains("selected"))));
  const shown = kinds.filter(kind => points.some(point => point.kind === kind));
  const entry = (name, kind, source) => [name, shape("path", markOf(kind, source))];
  drawLegend(svg, box.left, height + 8, [
    shown.map(kind => entry(kind, kinds.indexOf(kind), "file")),
    [["real file", "file"], ["generated", "generated"], ["stand-in", "stand-in"]].map(
        ([name, source]) => entry(name, -1, source))
  ]);
}

// A line per kernel: median and spread. `rows` of {kernel, lower, ms, upper, ours, tip, extras}:
// numbers beside it, of the columns `heads`.
function drawTimes(holder, rows, baseline, heads) {
  const each = 17,
        [svg, width] = canvas(
            holder, 44 + each * rows.length,
            `Times of ${rows.length} kernels in microseconds, the fastest first`, "group");
  const box =
      {left: 166, right: width - 56 - 50 * heads.length, top: 24, bottom: 24 + each * rows.length};
  const us = logScale(
      padded([...rows.flatMap(row => [row.lower, row.upper]), ...(baseline ? [baseline] : [])].map(
          ms => 1e3 * ms)),
      [box.left, box.right]);
  const x = ms => us(1e3 * ms), column = number => box.right + 54 + 50 * number;
  svg.append(
      axis(us, box, true, value => `${+ value.toPrecision(3)}`),
      ...["us", ...heads].map((name, number) => caption(column(number), 12, "end", name)));
  if (baseline)
    svg.append(
        shape("path", {class: "equal", d: `M${x(baseline)} ${box.top}V${box.bottom}`}),
        caption(x(baseline), 12, "start", "baseline"));
  const text = (at, words, more = {}) =>
      shape("text", {x: at, dy: "0.33em", "text-anchor": "end", ...more}, words);
  const lines = rows.map(
      (row, at) => shape(
          "g", {
            class: `line ${row.ours ? "ours" : "peer"}`,
            transform: `translate(0 ${box.top + each * (at + 0.5)})`
          },
          shape("rect", {class: "hit", x: 0, y: -each / 2, width, height: each}),
          text(box.left - 8, row.kernel),
          shape("path", {class: "spread", d: `M${x(row.lower)} 0H${x(row.upper)}`}),
          shape("circle", {r: 4, cx: x(row.ms)}), text(column(0), digits(1e3 * row.ms)),
          ...row.extras.map((words, number) => text(column(number + 1), words, {class: "extra"}))));
  reachable(lines, rows, () => {});
  svg.append(shape("g", {}, ...lines));
  const dot = whose => shape("g", {class: `line ${whose}`}, shape("circle", {r: 4}));
  drawLegend(
      svg, box.left, box.bottom + 34,
      [[["ours", dot("ours")], ["cuSPARSE and others", dot("peer")]]]);
}

function drawHistogram(holder, bins) {
  const name = ([low, high]) => low === high ? `${low}` : `${low}–${high}`;
  const [svg, width] = canvas(
      holder, 22 * bins.length + 8,
      `Rows by their number of nonzeros: ${
          bins.map(bin => `${name(bin)}: ${whole(bin[2])} rows`).join("; ")}`);
  const most = Math.max(...bins.map(bin => bin[2])), room = width - 84 - 76;
  svg.append(...bins.map((bin, at) => {
    const long = Math.max(1, bin[2] / most * room);
    return shape(
        "g", {class: "bar", transform: `translate(0 ${22 * at + 4})`},
        shape("text", {x: 78, y: 13, "text-anchor": "end"}, name(bin)),
        shape("rect", {x: 84, height: 17, width: long}),
        shape("text", {x: 90 + long, y: 13}, whole(bin[2])));
  }));
}

// Where the nonzeros are: a path per shade.
function drawSketch(holder, lines, name) {
  const height = lines.length, width = lines[0].length;
  const svg = shape("svg", {
    viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: "none",
    role: "img",
    class: "sketch",
    "shape-rendering": "crispEdges",
    "aria-label": `Where the nonzeros of ${name} are, on ${height} by ${width} cells`
  });
  for (let shade = 1; shade <= 9; ++shade) {
    const cells = lines
                      .flatMap(
                          (line, row) => [...line].map(
                              (digit, at) => +digit === shade ? `M${at} ${row}h1v1h-1z` : ""))
                      .join("");
    if (cells) svg.append(shape("path", {d: cells, "fill-opacity": 0.25 + 0.75 * shade / 9}));
  }
  holder.replaceChildren(svg);
}
