# Ratios from the record of 06_pcsr/one_pass/example/beside_cusparse.cu:
#   awk -f plots/measure/beside_cusparse.awk plots/results/NVIDIA_H100_80GB_HBM3/beside_cusparse.txt
BEGIN {
  FS = "[ ,()]+"
  print "                          v vectors / one   cuSPARSE / ours   transposed: cuSPARSE / ours   A^T pays off"
  print "matrix               v =   2    4    8       2    4    8      atomics    A^T   against cuSPARSE's"
}
NF == 1 { matrix = $1 }
$2 == "rows" { precision = $5 }
$2 ~ /^[248]$/ {  # vectors, one by one, several, cuSPARSE
  ++column
  ratio[column] = $2 * $4 / $3
  ratio[column + 3] = $5 / $4
}
$1 == "transposed:" {
  ratio[7] = $12 / $3
  ratio[8] = $12 / $7
  printf "%-19s %s  ", matrix, precision
  for (i = 1; i <= 8; ++i) {
    printf layout(i), ratio[i]
    logs[precision, i] += log(ratio[i])
  }
  printf "%21.0f\n", $10 / ($12 - $7)
  ++count[precision]
  column = 0
}
END {
  split("f64 f32", precisions, " ")
  for (p = 1; p <= 2; ++p) {
    precision = precisions[p]
    printf "geometric mean      %s  ", precision
    for (i = 1; i <= 8; ++i) printf layout(i), exp(logs[precision, i] / count[precision])
    print ""
  }
}
function layout(i) { return i <= 3 ? "%5.1f" : i == 4 ? "%8.2f" : i <= 6 ? "%5.2f" : i == 7 ? "%13.2f" : "%7.2f" }
