#include "sparse/catalogue.hpp"

#include "sparse/stand_in.hpp"

namespace spmv {
namespace {

constexpr unsigned kMarkovAndLight = kMarkov | kLightSpmv;
constexpr const char* kLowerTriangle = "the Markov paper counts one triangle";
constexpr const char* kOwnChain =
    "the paper's model and sizes; it prints neither its rates nor its order of states";

std::vector<CatalogueEntry> with_recipes(std::vector<CatalogueEntry> entries) {
  for (CatalogueEntry& entry : entries) {
    if (*entry.stand_in == '\0') continue;
    entry.source = stand_in_for({entry.rows, entry.cols, entry.nnz, entry.stand_in, entry.unknowns,
                                 entry.max_row, entry.row_stddev});
  }
  return entries;
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = with_recipes({
      // He and Gao, table 2.
      {"epb2", "Averous", "", 25228, 25228, 175027, 0, kPcsr, -1, -1, "thermal problem", "mesh", 1,
       "", false, ""},
      {"ecl32", "Sanghavi", "", 51993, 51993, 380415, 0, kPcsr, -1, -1, "semiconductor device",
       "mesh", 1, "", false, ""},
      {"bayer01", "Grund", "", 57735, 57735, 277774, 2680, kPcsr, -1, 40, "chemical process",
       "process", 1, "", false, ""},
      {"g7jac200sc", "Hollinger", "", 59310, 59310, 837936, 120316, kPcsr, -1, 150,
       "economic model", "process", 1, "", false, ""},
      {"finan512", "Mulvey", "", 74752, 74752, 596992, 0, kPcsr, -1, 55, "portfolio optimisation",
       "process", 1, "", false, "the PCSR paper prints 335,872: one triangle"},
      {"2cubes_sphere", "Um", "", 101492, 101492, 1647264, 0, kPcsr, -1, 31,
       "electromagnetics, FEM", "mesh", 1, "", false, ""},
      {"torso2", "Norris", "", 115967, 115967, 1033473, 0, kPcsr, -1, -1, "finite differences, 2-D",
       "plane mesh", 1, "", false, ""},
      {"FEM_3D_thermal2", "Botonakis", "", 147900, 147900, 3489300, 0, kPcsr, -1, 27,
       "thermal problem, FEM", "mesh", 1, "", false, ""},
      {"scircuit", "Hamm", "", 170998, 170998, 958936, 0, kPcsr, -1, 350, "circuit", "circuit", 1,
       "", false, ""},
      {"cont-300", "GHS_indef", "", 180895, 180895, 988195, 0, kPcsr, -1, -1, "KKT", "", 1,
       "kkt:90597x90298,nnz=988195,reach=900", false, ""},
      {"Ga41As41H72", "PARSEC", "", 268096, 268096, 18488476, 0, kPcsr, -1, 700,
       "quantum chemistry", "mesh", 1, "", false, ""},
      {"F1", "Koutsovasilis", "", 343791, 343791, 26837113, 0, kPcsr, -1, -1, "structural FEM",
       "mesh", 3, "", false, ""},
      {"rajat24", "Rajat", "", 358172, 358172, 1948235, 1256, kPcsr, -1, 100000, "circuit",
       "circuit", 1, "", false, ""},
      {"language", "Tromble", "", 399130, 399130, 1216334, 0, kPcsr, -1, 11000, "directed graph",
       "unordered graph", 1, "", false, ""},
      {"af_shell9", "Schenk_AFE", "", 504855, 504855, 17588875, 30, kPcsr, -1, 40,
       "structural FEM, shell", "mesh", 5, "", false,
       "the PCSR paper prints 17,588,845: without stored zeros"},
      {"ASIC_680ks", "Sandia", "", 682712, 682712, 2329176, 635409, kPcsr, -1, 200, "circuit",
       "circuit", 1, "", false, ""},
      {"ecology2", "McRae", "", 999999, 999999, 4995991, 0, kPcsr, -1, 5, "5-point stencil", "", 1,
       "stencil2d:999x1001", false, ""},
      {"Hamrle3", "Hamrle", "", 1447360, 1447360, 5514242, 0, kPcsr, -1, 18, "circuit", "circuit",
       1, "", false, ""},
      {"thermal2", "Schmid", "", 1228045, 1228045, 8580313, 0, kPcsr, -1, 11,
       "thermal problem, FEM", "mesh", 1, "", false, ""},
      {"cage14", "vanHeukelum", "", 1505785, 1505785, 27130349, 0, kPcsr, -1, 41,
       "DNA electrophoresis", "mesh", 1, "", false, ""},
      {"Transport", "Janna", "", 1602111, 1602111, 23500731, 13450, kPcsr, -1, 15,
       "flow and transport, FEM", "mesh", 1, "", false, ""},
      {"G3_circuit", "AMD", "", 1585478, 1585478, 7660826, 0, kPcsr, -1, 6, "circuit", "mesh", 1,
       "", false, ""},
      {"kkt_power", "Zaoui", "", 2063494, 2063494, 14612663, 1841302, kPcsr, -1, -1, "KKT", "", 1,
       "kkt:1263494x800000,nnz=14612663,hessian=3,width=12,reach=4000", false,
       "the PCSR paper prints 12,771,361: without stored zeros"},
      {"CurlCurl_4", "Bodendiek", "", 2380515, 2380515, 26515867, 0, kPcsr, -1, 13,
       "electromagnetics, FEM", "mesh", 1, "", false, ""},
      {"memchip", "Freescale", "", 2707524, 2707524, 14810202, 1466254, kPcsr, -1, 27, "circuit",
       "circuit", 1, "", false, ""},
      {"Freescale1", "Freescale", "", 3428755, 3428755, 18920347, 1867721, kPcsr, -1, 27, "circuit",
       "circuit", 1, "", false, ""},

      // Bylina, Bylina and Karwacki, table 2.
      {"cant", "Williams", "", 62451, 62451, 4007383, 0, kMarkov, -1, 78, "structural FEM", "mesh",
       3, "", false, kLowerTriangle},
      {"consph", "Williams", "", 83334, 83334, 6010480, 0, kMarkov, -1, 81, "structural FEM",
       "mesh", 3, "", false, kLowerTriangle},
      {"dense2", "", "", 2000, 2000, 4000000, 0, kMarkov, 0, 2000, "dense", "", 1,
       "dense:2000x2000", true, ""},
      {"mc2depi", "Williams", "", 525825, 525825, 2100225, 0, kMarkov, -1, 4,
       "Markov chain of an epidemic", "", 1, "triangle:1025", false, ""},
      {"pdb1HYS", "Williams", "", 36417, 36417, 4344765, 0, kMarkov, -1, 204, "protein", "mesh", 3,
       "", false, kLowerTriangle},
      {"qcd5_4", "QCD", "conf5_4-8x8-05", 49152, 49152, 1916928, 0, kMarkovAndLight, 0, 39,
       "lattice QCD", "", 1, "lattice:8x8x8x8", false, "the collection's values are complex"},
      {"rma10", "Bova", "", 46835, 46835, 2374001, 44909, kMarkovAndLight, 28, 145,
       "fluid dynamics, FEM", "mesh", 5, "", false, ""},
      {"shipsec1", "DNVS", "", 140874, 140874, 7813404, 4245228, kMarkovAndLight, 11, 102,
       "structural FEM", "mesh", 6, "", false, kLowerTriangle},
      // Table 3: wireless nodes that share a channel. Its longest columns are rows of the rates,
      // not
      // of their transpose.
      {"m_2.1K", "", "", 2160, 2160, 11232, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=1,m=1,W=1,nodes=4,states=all", true, kOwnChain},
      {"m_2.3K", "", "", 2337, 2337, 11143, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=8,m=1,W=1,nodes=2,states=all", true, kOwnChain},
      {"m_3K", "", "", 3016, 3016, 13194, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=3,m=2,W=2,nodes=2,states=all", true, kOwnChain},
      {"m_14K", "", "", 14256, 14256, 89856, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=1,m=1,W=1,nodes=5,states=all", true, kOwnChain},
      {"m_40K", "", "", 40385, 40385, 182743, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=4,m=3,W=3,nodes=2,states=all", true, kOwnChain},
      {"m_50K", "", "", 50225, 50225, 283430, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=2,m=2,W=2,nodes=3,states=all", true, kOwnChain},
      {"m_68K", "", "", 68117, 68117, 273159, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=2,m=4,W=4,nodes=2,states=all", true, kOwnChain},
      {"m_130K", "", "", 129921, 129921, 644727, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=20,m=2,W=2,nodes=2,states=all", true, kOwnChain},
      {"m_650K", "", "", 649611, 649611, 2994421, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=5,m=4,W=5,nodes=2,states=all", true, kOwnChain},
      {"m_1M", "", "", 1034273, 1034273, 4660479, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=4,m=4,W=8,nodes=2,states=all", true, kOwnChain},
      {"m_2.6M", "", "", 2595296, 2595296, 11951234, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=5,m=5,W=5,nodes=2,states=all", true, kOwnChain},
      {"m_3.7M", "", "", 3690141, 3690141, 17745419, 0, kMarkov, -1, -1, "Markov chain", "", 1,
       "wlan:C=10,m=4,W=6,nodes=2,states=all", true, kOwnChain},

      // Liu, Gonzalez-Dominguez and Schmidt, poster.
      {"webbase-1M", "Williams", "", 1000005, 1000005, 3105536, 0, kLightSpmv, 25, 4700,
       "web graph", "web graph", 1, "", false, ""},
      {"dblp-2010", "LAW", "", 326186, 326186, 1615400, 0, kLightSpmv, 8, 238, "co-author graph",
       "collaboration graph", 1, "", false, ""},
      {"in-2004", "LAW", "", 1382908, 1382908, 16917053, 0, kLightSpmv, 37, 7700, "web graph",
       "web graph", 1, "", false, ""},
      {"uk-2002", "LAW", "", 18520486, 18520486, 298113762, 0, kLightSpmv, 28, 2400, "web graph",
       "web graph", 1, "", false, ""},
      {"cop20k_A", "Williams", "", 121192, 121192, 2624331, 0, kLightSpmv, 14, 81,
       "accelerator cavity, FEM", "mesh", 1, "", false, ""},
      {"eu-2005", "LAW", "", 862664, 862664, 19235140, 0, kLightSpmv, 29, 6900, "web graph",
       "web graph", 1, "", false, ""},
      {"indochina-2004", "LAW", "", 7414866, 7414866, 194109311, 0, kLightSpmv, 216, 6900,
       "web graph", "web graph", 1, "", false, ""},
      {"nlpkkt120", "Schenk", "", 3542400, 3542400, 96845792, 1728000, kLightSpmv, 3, -1, "KKT", "",
       1, "kkt:1814400x1728000,nnz=96845792,width=34,reach=28000", false, ""},
      {"pwtk", "Boeing", "", 217918, 217918, 11634424, 109992, kLightSpmv, 5, -1, "structural FEM",
       "mesh", 6, "", false, ""},
      {"kron_g500-logn21", "DIMACS10", "", 2097152, 2097152, 182082942, 0, kLightSpmv, 756, -1,
       "R-MAT graph", "", 1, "rmat:scale=21,edge_factor=48,symmetric=1", false, ""},
      {"rail4284", "Mittelmann", "", 4284, 1096894, 11284032, 0, kLightSpmv, 4210, 56000,
       "LP constraints", "linear program", 1, "", false,
       "the poster's copy lacks the 4284 slack columns: 1,092,610 columns, 11,279,748 nonzeros"},
  });
  return entries;
}

const CatalogueEntry* find_in_catalogue(std::string_view name) {
  for (const CatalogueEntry& entry : catalogue()) {
    if (name == entry.name || (*entry.collection_name && name == entry.collection_name))
      return &entry;
  }
  return nullptr;
}

void print_catalogue(std::ostream& out) {
  for (const CatalogueEntry& entry : catalogue()) {
    if (*entry.group == '\0') continue;
    out << entry.name << '\t' << entry.group << '\t' << entry.file_stem() << '\t' << entry.rows
        << '\t' << entry.cols << '\t' << entry.nnz << '\n';
  }
}

}  // namespace spmv
