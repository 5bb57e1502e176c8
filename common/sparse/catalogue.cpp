#include "sparse/catalogue.hpp"

namespace spmv {
namespace {

constexpr unsigned kMarkovAndLight = kMarkov | kLightSpmv;
constexpr const char* kLowerTriangle = "the Markov paper counts one triangle";
constexpr const char* kOwnChain =
    "the paper's model and sizes; it prints neither its rates nor its order of states";

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries{
      // He and Gao, table 2.
      {"epb2", "Averous", "", 25228, 25228, 175027, 0, kPcsr, -1, -1, "thermal problem",
       "fem:25228,block=1,nnz=175027,max_row=9", false, ""},
      {"ecl32", "Sanghavi", "", 51993, 51993, 380415, 0, kPcsr, -1, -1, "semiconductor device",
       "powerlaw:51993x51993,nnz=380415,min_row=2,max_row=60,empty=0,local=90,bandwidth=1500,"
       "diagonal=1",
       false, ""},
      {"bayer01", "Grund", "", 57735, 57735, 277774, 2680, kPcsr, -1, -1, "chemical process",
       "powerlaw:57735x57735,nnz=277774,max_row=40,empty=0,local=80,bandwidth=500", false, ""},
      {"g7jac200sc", "Hollinger", "", 59310, 59310, 837936, 120316, kPcsr, -1, -1, "economic model",
       "powerlaw:59310x59310,nnz=837936,max_row=150,empty=0,local=60,bandwidth=600", false, ""},
      {"finan512", "Mulvey", "", 74752, 74752, 596992, 0, kPcsr, -1, 55, "portfolio optimisation",
       "powerlaw:74752x74752,nnz=596992,min_row=3,max_row=55,stddev=6,empty=0,local=85,bandwidth="
       "28000,diagonal=1",
       false, "the PCSR paper prints 335,872: one triangle"},
      {"2cubes_sphere", "Um", "", 101492, 101492, 1647264, 0, kPcsr, -1, -1,
       "electromagnetics, FEM", "fem:101492,block=1,nnz=1647264,max_row=31", false, ""},
      {"torso2", "Norris", "", 115967, 115967, 1033473, 0, kPcsr, -1, -1, "finite differences, 2-D",
       "fem:115967,block=1,nnz=1033473,max_row=11,spread=10", false, ""},
      {"FEM_3D_thermal2", "Botonakis", "", 147900, 147900, 3489300, 0, kPcsr, -1, -1,
       "thermal problem, FEM", "fem:147900,block=1,nnz=3489300,max_row=27,spread=10", false, ""},
      {"scircuit", "Hamm", "", 170998, 170998, 958936, 0, kPcsr, -1, -1, "circuit",
       "powerlaw:170998x170998,nnz=958936,max_row=350,empty=0,local=85,bandwidth=300,diagonal=1",
       false, ""},
      {"cont-300", "GHS_indef", "", 180895, 180895, 988195, 0, kPcsr, -1, -1, "KKT",
       "kkt:90597x90298,nnz=988195,reach=900", false, ""},
      {"Ga41As41H72", "PARSEC", "", 268096, 268096, 18488476, 0, kPcsr, -1, -1, "quantum chemistry",
       "fem:268096,block=1,nnz=18488476,max_row=700,spread=70,reach=60000", false, ""},
      {"F1", "Koutsovasilis", "", 343791, 343791, 26837113, 0, kPcsr, -1, -1, "structural FEM",
       "fem:114597,block=3,nnz=26837113,max_row=300,spread=40", false, ""},
      {"rajat24", "Rajat", "", 358172, 358172, 1948235, 1256, kPcsr, -1, -1, "circuit",
       "powerlaw:358172x358172,nnz=1948235,min_row=3,max_row=100000,empty=0,local=85,bandwidth=600,"
       "diagonal=1",
       false, ""},
      {"language", "Tromble", "", 399130, 399130, 1216334, 0, kPcsr, -1, -1, "directed graph",
       "powerlaw:399130x399130,nnz=1216334,max_row=11000,empty=0,local=50,bandwidth=1000", false,
       ""},
      {"af_shell9", "Schenk_AFE", "", 504855, 504855, 17588875, 30, kPcsr, -1, -1,
       "structural FEM, shell", "fem:100971,block=5,nnz=17576000,max_row=35,spread=0,reach=1500",
       false, "the PCSR paper prints 17,588,845: without stored zeros"},
      {"ASIC_680ks", "Sandia", "", 682712, 682712, 2329176, 635409, kPcsr, -1, -1, "circuit",
       "powerlaw:682712x682712,nnz=2329176,max_row=200,empty=0,local=80,bandwidth=1000,diagonal=1",
       false, ""},
      {"ecology2", "McRae", "", 999999, 999999, 4995991, 0, kPcsr, -1, 5, "5-point stencil",
       "stencil2d:999x1001", false, ""},
      {"Hamrle3", "Hamrle", "", 1447360, 1447360, 5514242, 0, kPcsr, -1, -1, "circuit",
       "powerlaw:1447360x1447360,nnz=5514242,min_row=2,max_row=18,empty=0,local=90,bandwidth=2000,"
       "diagonal=1",
       false, ""},
      {"thermal2", "Schmid", "", 1228045, 1228045, 8580313, 0, kPcsr, -1, -1,
       "thermal problem, FEM", "fem:1228045,block=1,nnz=8580313,max_row=11", false, ""},
      {"cage14", "vanHeukelum", "", 1505785, 1505785, 27130349, 0, kPcsr, -1, -1,
       "DNA electrophoresis", "fem:1505785,block=1,nnz=27130349,max_row=41,reach=200000", false,
       ""},
      {"Transport", "Janna", "", 1602111, 1602111, 23500731, 13450, kPcsr, -1, -1,
       "flow and transport, FEM", "fem:1602111,block=1,nnz=23500731,max_row=15,spread=2", false,
       ""},
      {"G3_circuit", "AMD", "", 1585478, 1585478, 7660826, 0, kPcsr, -1, 6, "circuit",
       "fem:1585478,block=1,nnz=7660826,max_row=5,spread=0,reach=75000", false, ""},
      {"kkt_power", "Zaoui", "", 2063494, 2063494, 14612663, 1841302, kPcsr, -1, -1, "KKT",
       "kkt:1263494x800000,nnz=14612663,hessian=3,width=12,reach=4000", false,
       "the PCSR paper prints 12,771,361: without stored zeros"},
      {"CurlCurl_4", "Bodendiek", "", 2380515, 2380515, 26515867, 0, kPcsr, -1, -1,
       "electromagnetics, FEM", "fem:2380515,block=1,nnz=26515867,max_row=13,spread=10", false, ""},
      {"memchip", "Freescale", "", 2707524, 2707524, 14810202, 1466254, kPcsr, -1, -1, "circuit",
       "powerlaw:2707524x2707524,nnz=14810202,min_row=2,max_row=27,empty=0,local=85,bandwidth=2000,"
       "diagonal=1",
       false, ""},
      {"Freescale1", "Freescale", "", 3428755, 3428755, 18920347, 1867721, kPcsr, -1, -1, "circuit",
       "powerlaw:3428755x3428755,nnz=18920347,min_row=1,max_row=27,empty=0,local=85,bandwidth=3000,"
       "diagonal=1",
       false, ""},

      // Bylina, Bylina and Karwacki, table 2.
      {"cant", "Williams", "", 62451, 62451, 4007383, 0, kMarkov, -1, -1, "structural FEM",
       "fem:20817,block=3,nnz=4007383,max_row=78,spread=10,reach=136", false, kLowerTriangle},
      {"consph", "Williams", "", 83334, 83334, 6010480, 0, kMarkov, -1, -1, "structural FEM",
       "fem:27778,block=3,nnz=6010480,max_row=93,spread=10,reach=1600", false, kLowerTriangle},
      {"dense2", "", "", 2000, 2000, 4000000, 0, kMarkov, 0, 2000, "dense", "dense:2000x2000", true,
       ""},
      {"mc2depi", "Williams", "", 525825, 525825, 2100225, 0, kMarkov, -1, 4,
       "Markov chain of an epidemic", "triangle:1025", false, ""},
      {"pdb1HYS", "Williams", "", 36417, 36417, 4344765, 0, kMarkov, -1, -1, "protein",
       "fem:12139,block=3,nnz=4344765,max_row=207,spread=40,reach=760", false, kLowerTriangle},
      {"qcd5_4", "QCD", "conf5_4-8x8-05", 49152, 49152, 1916928, 0, kMarkovAndLight, 0, 39,
       "lattice QCD", "lattice:8x8x8x8", false, "the collection's values are complex"},
      {"rma10", "Bova", "", 46835, 46835, 2374001, 44909, kMarkovAndLight, 28, 145,
       "fluid dynamics, FEM", "fem:9367,block=5,nnz=2374001,max_row=145,spread=90,reach=3000",
       false, ""},
      {"shipsec1", "DNVS", "", 140874, 140874, 7813404, 4245228, kMarkovAndLight, 11, -1,
       "structural FEM", "fem:23479,block=6,nnz=7813404,max_row=102,spread=5,reach=800", false,
       kLowerTriangle},
      // Table 3: wireless nodes that share a channel. Its longest columns are rows of the rates,
      // not
      // of their transpose.
      {"m_2.1K", "", "", 2160, 2160, 11232, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=1,m=1,W=1,nodes=4,states=all", true, kOwnChain},
      {"m_2.3K", "", "", 2337, 2337, 11143, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=8,m=1,W=1,nodes=2,states=all", true, kOwnChain},
      {"m_3K", "", "", 3016, 3016, 13194, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=3,m=2,W=2,nodes=2,states=all", true, kOwnChain},
      {"m_14K", "", "", 14256, 14256, 89856, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=1,m=1,W=1,nodes=5,states=all", true, kOwnChain},
      {"m_40K", "", "", 40385, 40385, 182743, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=4,m=3,W=3,nodes=2,states=all", true, kOwnChain},
      {"m_50K", "", "", 50225, 50225, 283430, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=2,m=2,W=2,nodes=3,states=all", true, kOwnChain},
      {"m_68K", "", "", 68117, 68117, 273159, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=2,m=4,W=4,nodes=2,states=all", true, kOwnChain},
      {"m_130K", "", "", 129921, 129921, 644727, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=20,m=2,W=2,nodes=2,states=all", true, kOwnChain},
      {"m_650K", "", "", 649611, 649611, 2994421, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=5,m=4,W=5,nodes=2,states=all", true, kOwnChain},
      {"m_1M", "", "", 1034273, 1034273, 4660479, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=4,m=4,W=8,nodes=2,states=all", true, kOwnChain},
      {"m_2.6M", "", "", 2595296, 2595296, 11951234, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=5,m=5,W=5,nodes=2,states=all", true, kOwnChain},
      {"m_3.7M", "", "", 3690141, 3690141, 17745419, 0, kMarkov, -1, -1, "Markov chain",
       "wlan:C=10,m=4,W=6,nodes=2,states=all", true, kOwnChain},

      // Liu, Gonzalez-Dominguez and Schmidt, poster.
      {"webbase-1M", "Williams", "", 1000005, 1000005, 3105536, 0, kLightSpmv, 25, -1, "web graph",
       "powerlaw:1000005x1000005,nnz=3105536,max_row=4700,stddev=25,empty=0,local=80,bandwidth=200",
       false, ""},
      {"dblp-2010", "LAW", "", 326186, 326186, 1615400, 0, kLightSpmv, 8, 238, "co-author graph",
       "powerlaw:326186x326186,nnz=1615400,max_row=238,stddev=8,empty=7,local=90,bandwidth=12000",
       false, ""},
      {"in-2004", "LAW", "", 1382908, 1382908, 16917053, 0, kLightSpmv, 37, -1, "web graph",
       "powerlaw:1382908x1382908,nnz=16917053,max_row=7700,stddev=37,empty=5,local=95,bandwidth="
       "1000",
       false, ""},
      {"uk-2002", "LAW", "", 18520486, 18520486, 298113762, 0, kLightSpmv, 28, -1, "web graph",
       "powerlaw:18520486x18520486,nnz=298113762,max_row=2400,stddev=28,empty=10,local=95,"
       "bandwidth=2000",
       false, ""},
      {"cop20k_A", "Williams", "", 121192, 121192, 2624331, 0, kLightSpmv, 14, -1,
       "accelerator cavity, FEM",
       "powerlaw:121192x121192,nnz=2624331,min_row=8,max_row=81,stddev=14,empty=17,local=100,"
       "bandwidth=20000,diagonal=1",
       false, ""},
      {"eu-2005", "LAW", "", 862664, 862664, 19235140, 0, kLightSpmv, 29, -1, "web graph",
       "powerlaw:862664x862664,nnz=19235140,max_row=6900,stddev=29,empty=5,local=80,bandwidth=1000",
       false, ""},
      {"indochina-2004", "LAW", "", 7414866, 7414866, 194109311, 0, kLightSpmv, 216, -1,
       "web graph",
       "powerlaw:7414866x7414866,nnz=194109311,max_row=6900,stddev=216,empty=15,local=95,bandwidth="
       "1000",
       false, ""},
      {"nlpkkt120", "Schenk", "", 3542400, 3542400, 96845792, 1728000, kLightSpmv, 3, -1, "KKT",
       "kkt:1814400x1728000,nnz=96845792,width=34,reach=28000", false, ""},
      {"pwtk", "Boeing", "", 217918, 217918, 11634424, 109992, kLightSpmv, 5, -1, "structural FEM",
       "fem:108959,block=2,nnz=11634424,max_row=60,spread=5,reach=3000", false, ""},
      {"kron_g500-logn21", "DIMACS10", "", 2097152, 2097152, 182082942, 0, kLightSpmv, 756, -1,
       "R-MAT graph", "rmat:scale=21,edge_factor=48,symmetric=1", false, ""},
      {"rail4284", "Mittelmann", "", 4284, 1096894, 11284032, 0, kLightSpmv, 4210, -1,
       "LP constraints",
       "powerlaw:4284x1096894,nnz=11284032,max_row=56000,stddev=4210,empty=0,column_skew=1", false,
       "the poster's copy lacks the 4284 slack columns: 1,092,610 columns, 11,279,748 nonzeros"},
  };
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
