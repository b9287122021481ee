"""bench_rotor beside Rockmate's own solver, in turn in one run, a CSV row for each.

    bench_rotor --generate FOLDER
    python rotor_peers.py --ours bench_rotor --solver solver.c [--largest 3000] [--rounds 2] [--cpu NAME] FILE...
                          > results/rotor.csv

solver.c is rockmate/src/rockmate/solvers/rk_rotor/solver.c of a checkout of Rockmate, compiled here with gcc -O3 for the
Python that runs this script and called as its RkTable(chain, budget).get_opt(budget). It is not run where its table of 12
bytes a (budget, first block, last block) would take more than --largest MB. Files are of Rockmate's chains, gzip or not.
cpu_s is processor time of solving alone, the least of the rounds; ratios compare times of this run under the peer's
limits, where both must reach one optimum, and under those that keep the budget. peak_kb is of a process for each file and
limits.
"""
import argparse, csv, datetime, gzip, importlib.util, json, os, subprocess, sys, sysconfig, tempfile, time, types

STAND_IN = "class _Op:\n    def __init__(self, *args): pass\n" + "".join(
    f"class {n}(_Op): pass\n" for n in ("SeqLoss", "SeqBlockFe", "SeqBlockFn", "SeqBlockFc", "SeqBlockBwd"))
FIELDS = ("ln", "nb_sol", "fw", "bw", "cw", "cbw", "fwd_tmp", "bwd_tmp", "ff_fwd_tmp", "ff_fw")


def compiled(source, folder):
    """Rockmate's solver as a module; what it imports for sequences, which are not asked for, is made up."""
    for name in ("rockmate", "rockmate.solvers", "rockmate.solvers.rk_rotor", "rockmate.solvers.rk_rotor.csequence"):
        sys.modules[name] = types.ModuleType(name)
    exec(STAND_IN, sys.modules["rockmate.solvers.rk_rotor.csequence"].__dict__)
    library = os.path.join(folder, "csolver.so")
    subprocess.run(["gcc", "-O3", "-shared", "-fPIC", "-w", "-include", "assert.h", "-include", "math.h",
                    "-I" + sysconfig.get_paths()["include"], source, "-o", library], check=True)
    spec = importlib.util.spec_from_file_location("csolver", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path) as f:
        return json.load(f)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--solver", required=True)
    parser.add_argument("--largest", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cpu", default="")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    head = "date,cpu,chain,blocks,options,budget,solver,limits,time,over_budget,cpu_s,peak_kb,ratio"
    out = csv.DictWriter(sys.stdout, head.split(","), lineterminator="\n")
    out.writeheader()
    with tempfile.TemporaryDirectory() as folder:
        peer = compiled(arguments.solver, folder)
        for path in arguments.files:
            given = read(path)
            chain = types.SimpleNamespace(**{k: given[k] for k in FIELDS})
            ours, theirs = {}, {}
            for _ in range(arguments.rounds):
                for limits in ("exact", "peer"):
                    text = subprocess.run([arguments.ours, "--limits", limits, path], stdout=subprocess.PIPE, text=True,
                                          check=True).stdout
                    for row in csv.DictReader(text.splitlines()):
                        key = int(row["budget"]), limits
                        if key not in ours or float(row["cpu_s"]) < float(ours[key]["cpu_s"]):
                            ours[key] = row
                for budget in {b for b, _ in ours}:
                    if 12 * (budget + 1) * (given["ln"] + 1) ** 2 > arguments.largest * 1e6:
                        continue
                    begin = time.process_time()
                    optimum = peer.RkTable(chain, budget).get_opt(budget)
                    spent = time.process_time() - begin
                    theirs[budget] = optimum, min(spent, theirs.get(budget, (0, spent))[1])
            for (budget, limits), row in sorted(ours.items()):
                common = {"date": datetime.date.today().isoformat(), "cpu": arguments.cpu, "chain": given["name"],
                          "blocks": given["ln"], "options": max(given["nb_sol"]), "budget": budget}
                optimum, spent = theirs.get(budget, (None, None))
                if limits == "peer" and spent is not None:
                    assert abs(optimum - float(row["time"])) <= 1e-9 * optimum, (path, budget)
                out.writerow(common | {"solver": "neap", "limits": limits, "time": row["time"],
                                       "over_budget": row["over_budget"], "cpu_s": row["cpu_s"], "peak_kb": row["peak_kb"],
                                       "ratio": f"{spent / float(row['cpu_s']):.0f}" if spent is not None else ""})
                if limits == "peer" and spent is not None:
                    out.writerow(common | {"solver": "Rockmate", "limits": "peer", "time": f"{optimum:.6f}",
                                           "over_budget": row["over_budget"], "cpu_s": f"{spent:.6f}"})
            sys.stdout.flush()


main()
