"""What kind of problem a matrix comes from, for filters and for the choice of a kernel."""

KINDS = ["grid", "mesh", "circuit", "graph", "Markov chain", "optimisation", "other"]

# The collection's word for each matrix of a file or a stand-in, as one of KINDS.
NAMED = {
    "grid": ["ecology2", "mc2depi"],
    "mesh": ["2cubes_sphere", "af_shell9", "bcsstk29", "bcsstk33", "cant", "consph", "cop20k_A", "ecl32", "epb1", "epb2", "F1",
             "FEM_3D_thermal2", "gyro_m", "MIT8", "pwtk", "rma10", "shipsec1", "thermal2", "torso2", "wang4"],
    "circuit": ["ASIC_680ks", "Freescale1", "G3_circuit", "Hamrle3", "memchip", "memplus", "rajat24", "scircuit"],
    "graph": ["cit-HepPh", "cnr-2000", "dblp-2010", "email-Enron", "eu-2005", "in-2004", "indochina-2004", "kron_g500-logn21",
              "language", "soc-Slashdot0902", "uk-2002", "webbase-1M"],
    "optimisation": ["cont-300", "finan512", "g7jac200sc", "kkt_power", "lp_fit2d", "lp_maros_r7", "nw04", "rail4284"],
}
# Of what a generator makes.
GENERATED = {
    "stencil2d": "grid", "stencil3d": "grid", "banded": "grid", "diagonal": "grid", "triangle": "grid", "fem": "mesh", "mesh": "mesh",
    "powerlaw": "graph", "rmat": "graph", "kkt": "optimisation", "wlan": "Markov chain",
}


def kind_of(record):
    """One of KINDS."""
    for kind, names in NAMED.items():
        if record["matrix"] in names:
            return kind
    return GENERATED.get(str(record.get("detail", "")).split(":")[0], "other")
