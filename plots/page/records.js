"use strict";
// The measurements: unpacked from the page, or read from a file of records that a reader drops onto it.

// Adds the fields that follow from others. A row is a measurement; its fields are the columns of plots/README.md.
function completed(row, of) {
  const kernel = of.kernels[row.kernel] ?? {}, matrix = of.matrices[row.matrix] ?? {};
  row.step = kernel.step ?? 0;
  row.format = kernel.format ?? "";
  row.kind = matrix.kind ?? "other";
  if (row.source === "generated" && matrix.papers) row.source = "paper's own";  // the papers generated it, too
  row.host = row.cold_ms == null;  // only GPUs have cold times
  row.commit = of.runs[row.run]?.commit ?? "";
  return row;
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const payload = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  const columns = payload.columns, count = (columns[0].at ?? columns[0].values).length;
  payload.rows = Array.from({length: count}, () => ({}));
  for (const {name, words, at, values} of columns) {
    for (let row = 0; row < count; ++row) payload.rows[row][name] = words ? words[at[row]] : values[row];
  }
  delete payload.columns;
  for (const row of payload.rows) completed(row, payload);
  return payload;
}

// What `spmv --json FILE` wrote, as rows. Adds its runs, kernels and matrices to `of`. Returns the rows and what was
// left out; throws an Error with file, line and remedy. The format: plots/measure/record_format.py.
function readRecords(text, file, of) {
  const described = {run: new Map(), matrix: new Map(), kernel: new Map()}, found = [], baselines = new Map();
  const left = {"of another program or of several GPUs": 0, "refused or failed": 0, "of the CPU backend, which counts and does not time": 0,
                "of stand-ins that are made in another way now": 0};
  const remedy = "A file of records is what `spmv --json FILE` writes, a JSON object per line.";
  text.split("\n").forEach((line, at) => {
    const place = `${file}, line ${at + 1}: `;
    if (!line.trim()) return;
    let record;
    try { record = JSON.parse(line); } catch (error) { throw new Error(`${place}not JSON. ${remedy}`); }
    if (record === null || typeof record !== "object" || Array.isArray(record)) throw new Error(`${place}not an object. ${remedy}`);
    const kind = Object.keys(record).length === 1 ? Object.keys(record)[0] : "";
    if (kind in described && record[kind] !== null && typeof record[kind] === "object") {
      const it = record[kind];
      described[kind].set(kind === "run" ? it.id : `${it.run} ${it.name}`, it);
    } else if ("refused" in record || "failed" in record) {
      ++left["refused or failed"];
    } else if (record.verified !== true || !record.run || !record.matrix || !record.kernel) {
      throw new Error(`${place}not a verified measurement. ${remedy}`);
    } else if (record.kernel === "baseline") {
      baselines.set(`${record.run} ${record.matrix} ${record.precision}`, record);
    } else {
      found.push([record, place]);
    }
  });
  if (!found.length) throw new Error(`${file}: no measurements. ${remedy}`);
  const rows = [];
  for (const [record, place] of found) {
    const need = (kind, name) => {
      if (!described[kind].has(name)) throw new Error(`${place}the file does not describe its ${kind} (${name}); was a part of it cut off?`);
      return described[kind].get(name);
    };
    const run = need("run", record.run), matrix = need("matrix", `${record.run} ${record.matrix}`);
    const kernel = need("kernel", `${record.run} ${record.kernel}`);
    if (record.program || (record.alpha ?? 1) !== 1 || (record.beta ?? 0) !== 0) { ++left["of another program or of several GPUs"]; continue; }
    if (!record.warm_ms) { ++left["of the CPU backend, which counts and does not time"]; continue; }
    if (matrix.source === "stand-in" && of.stand_ins[record.matrix] !== matrix.detail) { ++left["of stand-ins that are made in another way now"]; continue; }
    const quartiles = {};
    for (const state of ["warm", "cold", "overlapped"]) {
      const times = record[`${state}_ms`];
      if (times === undefined) continue;
      if (!Array.isArray(times) || times.length < 3 || times.slice(0, 3).some(time => !(time > 0))) {
        throw new Error(`${place}${state}_ms is not [lower quartile, median, upper quartile, samples] in milliseconds. ${remedy}`);
      }
      [quartiles[`${state}_lower_ms`], quartiles[`${state}_ms`], quartiles[`${state}_upper_ms`]] = times;
    }
    const device = `${kernel.host ? run.processor ?? run.device : run.device} (${file})`;
    const baseline = baselines.get(`${record.run} ${record.matrix} ${record.precision}`), key = record.run + device;
    of.runs[key] = {...run, device};
    of.kernels[record.kernel] ??= {step: kernel.step, format: kernel.format};
    of.matrices[record.matrix] ??= {kind: "other", detail: matrix.detail ?? ""};
    rows.push(completed({...quartiles, device, source: matrix.source, matrix: record.matrix, precision: record.precision,
      kernel: record.kernel, choice: record.choice ?? "", run: key, rows: matrix.rows, cols: matrix.cols, nnz: matrix.nnz,
      setup_ms: record.setup_ms ?? 0, preprocess_ms: record.preprocess_ms ?? 0, compulsory_bytes: record.compulsory_bytes,
      baseline_warm_ms: baseline?.warm_ms?.[1], baseline_cold_ms: baseline?.cold_ms?.[1], copy_gb_per_s: baseline?.copy_gb_per_s}, of));
  }
  const without = Object.entries(left).filter(([, count]) => count).map(([what, count]) => `${count} ${what}`);
  if (!rows.length) throw new Error(`${file}: nothing to show here: ${without.join(", ")}. The page shows times of single products: make run BACKEND=cuda ARGS="--json FILE".`);
  const newest = new Map();  // of two measurements of one thing the newer run's counts
  for (const row of rows) {
    const thing = `${row.device} ${row.matrix} ${row.precision} ${row.kernel}`, other = newest.get(thing);
    if (!other || other.run <= row.run) newest.set(thing, row);
  }
  return {rows: [...newest.values()], without};
}
