// Which kernel for a matrix: of the set, or of properties that a reader types.

const BASE = "cusparse_csr_alg1";  // CSR as it is, with no setup

// Milliseconds. cuSPARSE's first product in a process opens the library, which takes longer than any conversion to CSR or
// COO and is not the kernel's setup.
const OPENING = 50;
const opens = row => /^cusparse_(csr|coo)/.test(row.kernel) && row.setup_ms > OPENING;
const setup = row => (opens(row) || row.kernel === BASE ? 0 : row.setup_ms) + (row.kernel === BASE ? 0 : row.preprocess_ms);

// From which number of products on `row` is ahead of `other` in all; Infinity: never. Both have {ms, setup}.
function breakEven(row, other) {
  const gain = other.ms - row.ms, cost = row.setup - other.setup;
  if (gain <= 0) return cost < 0 ? 1 : Infinity;
  return Math.max(1, Math.floor(cost / gain) + 1);
}

// [{from, to, candidate}]: which candidate is the fastest in all for which numbers of products.
function stretches(candidates) {
  const found = [];
  let products = 1;
  while (candidates.length) {
    const total = each => each.setup + products * each.ms;
    const best = candidates.reduce((a, b) => total(b) < total(a) || (total(b) === total(a) && b.ms < a.ms) ? b : a);
    let next = Infinity;
    for (const each of candidates) {
      if (each.ms < best.ms) next = Math.min(next, Math.max(products + 1, breakEven(each, best)));
    }
    if (found.at(-1)?.candidate === best) found.at(-1).to = next - 1; else found.push({from: products, to: next - 1, candidate: best});
    if (next === Infinity) return found;
    products = next;
  }
  return found;
}

// Of rows of one matrix, device and precision.
function candidatesOf(rows, state) {
  return rows.filter(row => row[`${state}_ms`] > 0).map(row => ({kernel: row.kernel, format: row.format, step: row.step, ms: row[`${state}_ms`],
    lower: row[`${state}_lower_ms`], upper: row[`${state}_upper_ms`], setup: setup(row), bytes: row.compulsory_bytes / row.nnz,
    copy: row.copy_gb_per_s, share: 1e-6 * row.compulsory_bytes / row[`${state}_ms`] / row.copy_gb_per_s, measured: 1}));
}

// How far a matrix is from the one that is asked for: differences of logarithms, and 1 for another kind.
function distance(asked, known) {
  let sum = 0;
  for (const [name, weight] of [["nnz", 3], ["rows", 0.5], ["mean", 2], ["skew", 1.5], ["diagonals", 0.25]]) {
    if (!(asked[name] > 0)) continue;
    if (!(known[name] > 0)) { sum += weight; continue; }
    sum += weight * Math.log2(asked[name] / known[name]) ** 2 / 9;
  }
  return Math.sqrt(sum) + (asked.kind && asked.kind !== known.kind ? 1 : 0);
}

// What is typed, with what follows from it: {nnz, rows, mean, skew, diagonals, kind}, or a text that says what is wrong.
function askedFor(typed) {
  const {nnz, longest, diagonals, kind} = typed;
  let {rows, mean} = typed;
  if (!(nnz > 0)) return "Type at least the number of nonzeros.";
  if (rows > 0 && !(mean > 0)) mean = nnz / rows;
  if (mean > 0 && !(rows > 0)) rows = nnz / mean;
  if (rows > 0 && Math.abs(Math.log2(nnz / rows / mean)) > 0.1) return `${rows} rows of ${mean} nonzeros on average are not ${nnz} nonzeros; leave one of the three out.`;
  if (longest > 0 && mean > 0 && longest < mean) return `The longest row (${longest}) is shorter than the mean (${digits(mean)}).`;
  return {nnz, rows, mean, skew: longest > 0 && mean > 0 ? longest / mean : NaN, diagonals, kind};
}

// The value at which half of the weight is reached; `of` is [[value, weight]].
function weightedMedian(of) {
  const order = of.slice().sort((a, b) => a[0] - b[0]), half = order.reduce((sum, [, weight]) => sum + weight, 0) / 2;
  let sum = 0;
  return order.find(([, weight]) => (sum += weight) >= half)[0];
}

// The nearest matrices of `rows` (one device and precision) that have most kernels, and what each kernel would take: weighted
// medians of time and setup per nonzero, times the nonzeros asked for. On a matrix that it refuses, or on which it was not
// measured, a kernel counts as slower than any.
function fromNearest(asked, rows, matrices, state, most = 5) {
  const of = new Map();
  for (const row of rows) {
    if (!(row[`${state}_ms`] > 0)) continue;
    if (!of.has(row.matrix)) of.set(row.matrix, []);
    of.get(row.matrix).push(row);
  }
  const enough = Math.min(20, Math.max(0, ...[...of.values()].map(each => each.length)) / 2);
  const near = [...of].filter(([, each]) => each.length >= enough).map(([name, each]) => {
    const {nnz, rows: lines} = each[0], looks = matrices[name] ?? {}, mean = nnz / Math.max(lines, 1);
    const known = {nnz, rows: lines, mean, skew: looks.max_row / mean, diagonals: looks.diagonals, kind: looks.kind};
    const away = distance(asked, known);
    return {name, nnz, kind: looks.kind, distance: away, weight: 1 / (0.1 + away), candidates: new Map(candidatesOf(each, state).map(one => [one.kernel, one]))};
  }).sort((a, b) => a.distance - b.distance).slice(0, most);
  const candidates = [];
  for (const kernel of new Set(near.flatMap(each => [...each.candidates.keys()]))) {
    const on = near.filter(each => each.candidates.has(kernel)).map(each => ({...each.candidates.get(kernel), nnz: each.nnz}));
    const median = value => weightedMedian(near.map(each => [each.candidates.has(kernel) ? value(each.candidates.get(kernel), each.nnz) : Infinity, each.weight]));
    const ms = median((one, nnz) => one.ms / nnz) * asked.nnz;
    if (ms === Infinity) continue;
    candidates.push({kernel, format: on[0].format, step: on[0].step, ms, measured: on.length, copy: on[0].copy,
      lower: Math.min(...on.map(one => one.lower / one.nnz)) * asked.nnz, upper: Math.max(...on.map(one => one.upper / one.nnz)) * asked.nnz,
      setup: median((one, nnz) => one.setup / nnz) * asked.nnz, bytes: median(one => one.bytes), share: median(one => one.share)});
  }
  return {near, candidates};
}

// Why the first of `order` (by time in all) is the answer, in sentences.
function reasonFor(order, products, near = 1) {
  const best = order[0], fastest = order.reduce((a, b) => b.ms < a.ms ? b : a), csr = order.find(each => each.kernel === BASE);
  const sentences = [];
  if (fastest === best) {
    const part = best.setup / (best.setup + products * best.ms);
    sentences.push(part < 0.01 ? `No kernel is faster per product, and its setup hardly counts.`
      : `No kernel is faster per product; its setup is ${Math.round(100 * part)}% of the whole.`);
  } else {
    const even = breakEven(fastest, best);
    sentences.push(`${fastest.kernel} (${fastest.format}) takes ${Math.round(100 * (1 - fastest.ms / best.ms))}% less per product, but its setup of ${duration(fastest.setup)} `
      + (even < Infinity ? `pays off only from ${whole(even)} products on.` : `does not pay off.`));
  }
  if (best.bytes > 0 && best.share > 0) {
    let bytes = `It must move ${best.bytes.toFixed(1)} bytes per nonzero`;
    if (csr && csr !== best && Math.abs(csr.bytes - best.bytes) > 0.05) bytes += ` (CSR: ${csr.bytes.toFixed(1)})`;
    sentences.push(`${bytes}, and does so at ${Math.round(100 * best.share)}% of the bandwidth of a copy${best.share > 1 ? ": the matrix fits in the cache" : ""}.`);
  }
  if (best.measured < near) sentences.push(`It was measured on ${best.measured} of the ${near}; on the others it was refused or not measured.`);
  return sentences.join(" ");
}
