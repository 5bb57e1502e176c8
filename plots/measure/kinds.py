"""What kind of problem a matrix comes from, for filters and for the choice of a kernel."""

from sets import split_order

KINDS = ["grid", "mesh", "circuit", "graph", "Markov chain", "optimisation", "other"]

# The collection's word for each matrix of a file or a stand-in, as one of KINDS.
NAMED = {
    "grid": "ecology2 mc2depi".split(),
    "mesh": """
        2cubes_sphere af_shell9 bcsstk25 bcsstk29 bcsstk33 cant consph cop20k_A delaunay_n16 ecl32
        epb1 epb2 F1 fe_body fe_pwt FEM_3D_thermal2 gyro_m MIT8 pwtk rma10 shallow_water1 shipsec1
        thermal2 torso2 vibrobox wang4 wathen120 delaunay_2e20 tets1_random tets1_curve tets1_rcm
        tets3_random tets3_curve tets3_rcm""".split(),
    "circuit": """
        ASIC_680ks coupled Freescale1 G3_circuit Hamrle3 ispd98_ibm09 ispd98_ibm13 memchip memplus
        rajat24 scircuit titan23_neuron titan23_sparcT1_core""".split(),
    "graph": """
        amazon_book_test cit-HepPh cit-HepTh cnr-2000 dblp-2010 email-Enron eu-2005 in-2004
        indochina-2004 kron_g500-logn21 language nh2010 soc-Slashdot0902 uk-2002 rgg_2e20
        vsp_model1_crew1_cr42_south31 webbase-1M""".split(),
    "optimisation": """
        c-39 cont-300 finan512 g7jac200sc gridgena jan99jac040sc kkt_power lp_fit2d lp_maros_r7 nw04
        osqp_control osqp_lasso osqp_portfolio osqp_random transport_lp rail4284""".split(),
}
# What generators make.
GENERATED = {
    "grid": "stencil2d stencil3d banded diagonal triangle".split(),
    "mesh": "fem mesh".split(),
    "graph": "powerlaw rmat".split(),
    "optimisation": "kkt".split(),
    "Markov chain": "wlan".split(),
}


def kind_of(record):
    """One of KINDS."""
    matrix, _ = split_order(record["matrix"])
    generator = str(record.get("detail", "")).split(":")[0]
    for names_of, name in ((NAMED, matrix), (GENERATED, generator)):
        for kind, names in names_of.items():
            if name in names:
                return kind
    return "other"
