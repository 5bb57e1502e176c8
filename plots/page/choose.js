// Which kernel for a matrix: of the set, or of properties that a reader types.

const BASE = "cusparse_csr_alg1";  // CSR as it is, with no setup

// Milliseconds. cuSPARSE's first product in a process opens the library, which takes longer than
// any conversion to CSR or COO and is not the kernel's setup.
const OPENING = 50;
const opens = row => /^cusparse_(csr|coo)/.test(row.kernel) && row.setup_ms > OPENING;
const setup = row =>
    row.kernel === BASE ? 0 : (opens(row) ? 0 : row.least.setup_ms) + row.least.preprocess_ms;

// {key: rows}, in their order.
function grouped(rows, keyOf) {
  const of = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    if (!of.has(key)) of.set(key, []);
    of.get(key).push(row);
  }
  return of;
}

// Gives each row the setup and preprocess to count with: `least`. Both were measured while other
// processes prepared matrices (but where `alone`), which can only lengthen them, at times a
// hundredfold. As the work of one kernel grows with the matrix, what it took on one with no fewer
// rows, nonzeros and bytes is an upper bound.
function boundSetups(rows) {
  for (const alike of grouped(rows, row => `${row.kernel} ${row.device}`).values())
    for (const row of alike) {
      const larger = row.alone ?
          [row] :
          alike.filter(
              one => ["rows", "nnz", "compulsory_bytes"].every(name => one[name] >= row[name]));
      row.least = Object.fromEntries(["setup_ms", "preprocess_ms"].map(
          name => [name, Math.min(...larger.map(one => one[name]), row[name])]));
    }
}

// From which number of products on `row` is ahead of `other` in all; Infinity: never. Both
// have {ms, setup}.
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
    const best = candidates.reduce(
        (a, b) => total(b) < total(a) || (total(b) === total(a) && b.ms < a.ms) ? b : a);
    let next = Infinity;
    for (const each of candidates) {
      if (each.ms < best.ms) next = Math.min(next, Math.max(products + 1, breakEven(each, best)));
    }
    if (found.at(-1)?.candidate === best)
      found.at(-1).to = next - 1;
    else
      found.push({from: products, to: next - 1, candidate: best});
    if (next === Infinity) return found;
    products = next;
  }
  return found;
}

// Of rows of one matrix, device and precision.
function candidatesOf(rows, state) {
  return rows.filter(row => row[`${state}_ms`] > 0).map(row => ({
                                                          kernel: row.kernel,
                                                          format: row.format,
                                                          step: row.step,
                                                          ms: row[`${state}_ms`],
                                                          lower: row[`${state}_lower_ms`],
                                                          upper: row[`${state}_upper_ms`],
                                                          setup: setup(row),
                                                          bytes: row.compulsory_bytes / row.nnz,
                                                          copy: row.copy_gb_per_s,
                                                          share: 1e-6 * row.compulsory_bytes /
                                                              row[`${state}_ms`] / row.copy_gb_per_s
                                                        }));
}

// How far a matrix is from the one that is asked for: differences of logarithms, and 1 for another
// kind. The weights, and how many neighbours, are of those few in 300 tried that did best in
// leaveOneOut() on an H200 and an H100. (Chosen by half of the matrices, the 95th percentile on the
// other half was 18 and 23%.)
const WEIGHTS = {
  nnz: 4,
  mean: 4,
  skew: 4,
  diagonals: 1
},
      NEIGHBOURS = 7, OF_A_FILE = 2;
function distance(asked, known) {
  let sum = 0;
  for (const [name, weight] of Object.entries(WEIGHTS)) {
    if (!(asked[name] > 0)) continue;
    sum += weight * (known[name] > 0 ? Math.log2(asked[name] / known[name]) ** 2 / 9 : 1);
  }
  return Math.sqrt(sum) + (asked.kind && asked.kind !== known.kind ? 1 : 0);
}

// What is typed, with what follows from it: {nnz, rows, mean, skew, diagonals, kind}, or a text
// that says what is wrong.
function askedFor(typed) {
  const {nnz, longest, diagonals, kind} = typed;
  let {rows, mean} = typed;
  if (!(nnz > 0)) return "Type at least the number of nonzeros.";
  if (rows > 0 && !(mean > 0)) mean = nnz / rows;
  if (mean > 0 && !(rows > 0)) rows = nnz / mean;
  if (rows > 0 && Math.abs(Math.log2(nnz / rows / mean)) > 0.1)
    return `${rows} rows of ${mean} nonzeros on average are not ${
        nnz} nonzeros; leave one of the three out.`;
  if (longest > 0 && mean > 0 && longest < mean)
    return `The longest row (${longest}) is shorter than the mean (${digits(mean)}).`;
  return {nnz, rows, mean, skew: longest > 0 && mean > 0 ? longest / mean : NaN, diagonals, kind};
}

// The value at which half of the weight is reached; `of` is [[value, weight]].
function weightedMedian(of) {
  const order = of.slice().sort((a, b) => a[0] - b[0]),
        half = order.reduce((sum, [, weight]) => sum + weight, 0) / 2;
  let sum = 0;
  return order.find(([, weight]) => (sum += weight) >= half)[0];
}

// The matrices of `rows` (one device and precision) with their properties and {kernel: candidate}.
// Of kernels those that are measured on all matrices: the versions that the lessons compare are
// not, and would be the best here and unknown there. Matrices that have been measured with fewer
// than three quarters of them are left out.
function knownMatrices(rows, matrices, state) {
  const of = grouped(
      rows.filter(row => row[`${state}_ms`] > 0 && !row.host && row.charted), row => row.matrix);
  const enough = 0.75 * Math.max(0, ...[...of.values()].map(each => each.length));
  return [...of].filter(([, each]) => each.length >= enough).map(([name, each]) => {
    const {nnz, rows: lines, source} = each[0], looks = matrices[name] ?? {},
                             mean = nnz / Math.max(lines, 1);
    return {
      name,
      nnz,
      source,
      rows: lines,
      mean,
      skew: looks.max_row / mean,
      diagonals: looks.diagonals,
      kind: looks.kind,
      refused: looks.refused ?? [],
      candidates: new Map(candidatesOf(each, state).map(one => [one.kernel, one]))
    };
  });
}

// The nearest of the known matrices. Real files weigh more than generated ones.
function nearestOf(asked, known) {
  return known.map(each => ({...each, distance: distance(asked, each)}))
      .sort((a, b) => a.distance - b.distance)
      .slice(0, NEIGHBOURS)
      .map(each => ({
             ...each,
             weight: (each.source === "file" ? OF_A_FILE : 1) / (0.1 + each.distance) ** 2
           }));
}

// What each kernel would cost, the least expected regret first. The regret on a matrix is how much
// longer a kernel takes for so many products, its setup included, than the kernel that is the
// fastest there; expected: the mean over the neighbours by their weights; worst: the greatest. A
// kernel that refused one of them, or was not measured there, is none to choose. Times per nonzero
// are weighted medians, for the nonzeros that are asked for.
function advice(asked, near, products) {
  const total = one => one.setup + products * one.ms;
  const best = near.map(each => Math.min(...[...each.candidates.values()].map(total)));
  const found = [], weights = near.reduce((sum, each) => sum + each.weight, 0);
  for (const kernel of near[0]?.candidates.keys() ?? []) {
    const on = near.map(each => each.candidates.get(kernel));
    if (!on.every(one => one)) continue;
    const regrets = on.map((one, at) => total(one) / best[at] - 1), worst = Math.max(...regrets);
    const median = value =>
        weightedMedian(on.map((one, at) => [value(one, near[at].nnz), near[at].weight]));
    found.push({
      ...on[0],
      expected: regrets.reduce((sum, regret, at) => sum + near[at].weight * regret, 0) / weights,
      worst,
      worst_on: near[regrets.indexOf(worst)].name,
      ms: median((one, nnz) => one.ms / nnz) * asked.nnz,
      setup: median((one, nnz) => one.setup / nnz) * asked.nnz,
      lower: Math.min(...on.map((one, at) => one.lower / near[at].nnz)) * asked.nnz,
      upper: Math.max(...on.map((one, at) => one.upper / near[at].nnz)) * asked.nnz,
      bytes: median(one => one.bytes),
      share: median(one => one.share)
    });
  }
  return found.sort((a, b) => a.expected - b.expected || a.ms - b.ms);
}

// How good it is with any number of products and both precisions, on rows of one device: numbers of
// matrices, kernels, answers and refused answers, and the median and the 95th percentile of the
// regret, which are null without records.
const COUNTS = [1, 10, 100, 1000, 10000], PRECISIONS = ["f64", "f32"];
function quality(rows, matrices, state) {
  const known = PRECISIONS.map(
      each => knownMatrices(rows.filter(row => row.precision === each), matrices, state));
  const of = known.map(each => leaveOneOut(each, COUNTS)),
        all = of.flatMap(each => Object.values(each).flat());
  const distinct = names => new Set(known.flat().flatMap(names)).size;
  return {
    of,
    answers: all.length,
    refused: all.filter(regret => regret === null).length,
    matrices: distinct(each => each.name),
    kernels: distinct(each => [...each.candidates.keys()]),
    median: quantile(all, 0.5),
    most: quantile(all, 0.95)
  };
}

// How good the advice is: for each known matrix what it would have been had that matrix not been
// measured, and the regret of following it there; of a kernel that refuses the matrix, null.
// Kernels of which it is not known are passed over. {products: [regrets]}
function leaveOneOut(known, counts) {
  const regrets = Object.fromEntries(counts.map(count => [count, []]));
  for (const left of known) {
    const near = nearestOf(left, known.filter(each => each !== left));
    for (const products of counts) {
      const answer =
          advice(left, near, products)
              .find(one => left.candidates.has(one.kernel) || left.refused.includes(one.kernel));
      const chosen = left.candidates.get(answer?.kernel),
            total = one => one.setup + products * one.ms;
      regrets[products].push(
          chosen ? total(chosen) / Math.min(...[...left.candidates.values()].map(total)) - 1 :
                   null);
    }
  }
  return regrets;
}
// The regret that a part of all does not exceed; a refusal is greater than any.
function quantile(regrets, part) {
  const order = regrets.map(regret => regret ?? Infinity).sort((a, b) => a - b);
  return order[Math.min(order.length - 1, Math.floor(part * order.length))] ?? null;
}

// Why the first of `order` is the answer, in sentences.
function reasonFor(order, products) {
  const best = order[0], fastest = order.reduce((a, b) => b.ms < a.ms ? b : a),
        csr = order.find(each => each.kernel === BASE);
  const sentences = [];
  if (fastest === best) {
    const part = best.setup / (best.setup + products * best.ms);
    sentences.push(
        part < 0.01 ? `No kernel is faster per product, and its setup hardly counts.` :
                      `No kernel is faster per product; its setup is ${
                          Math.round(100 * part)}% of the whole.`);
  } else {
    const even = breakEven(fastest, best);
    sentences.push(
        `${fastest.kernel} (${fastest.format}) takes ${
            Math.round(100 * (1 - fastest.ms / best.ms))}% less per product, but its setup of ${
            duration(fastest.setup)} ` +
        (even < Infinity ? `pays off only from ${whole(even)} products on.` : `does not pay off.`));
  }
  if (best.bytes > 0 && best.share > 0) {
    let bytes = `It must move ${best.bytes.toFixed(1)} bytes per nonzero`;
    if (csr && csr !== best && Math.abs(csr.bytes - best.bytes) > 0.05)
      bytes += ` (CSR: ${csr.bytes.toFixed(1)})`;
    sentences.push(
        `${bytes}, and does so at ${Math.round(100 * best.share)}% of the bandwidth of a copy${
            best.share > 1 ? ": the matrix fits in the cache" : ""}.`);
  }
  if (best.worst >= 0)
    sentences.push(`On the neighbours it takes ${
        percent(best.expected)} longer than the fastest kernel of each; at worst ${
        percent(best.worst)}, on ${best.worst_on}.`);
  return sentences.join(" ");
}
