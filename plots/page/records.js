"use strict";
// The measurements, unpacked from the page: report.py has read them.

// Adds the fields that follow from others. A row is a measurement; its fields are the columns of
// plots/README.md.
function completed(row, of) {
  const kernel = of.kernels[row.kernel] ?? {}, matrix = of.matrices[row.matrix] ?? {};
  row.step = kernel.step ?? 0;
  row.format = kernel.format ?? "";
  row.kind = matrix.kind ?? "other";
  if (row.source === "generated" && matrix.papers)
    row.source = "paper's own";    // the papers generated it, too
  row.host = row.cold_ms == null;  // only GPUs have cold times
  row.commit = of.runs[row.run]?.commit ?? "";
  return row;
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const payload =
      await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")))
          .json();
  payload.rows = payload.columns.run.map(() => ({}));
  for (const [name, values] of Object.entries(payload.columns))
    values.forEach((value, at) => payload.rows[at][name] = value);
  delete payload.columns;
  for (const row of payload.rows) completed(row, payload);
  return payload;
}
