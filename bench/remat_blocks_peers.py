"""The blocks of bench_remat_blocks solved by MOCCASIN's model, a CSV row for each block and number of intervals.

    bench_remat_blocks --write FOLDER [--seeds N] [--first N]
    bench_remat_blocks ... > results/remat_blocks.csv
    python remat_blocks_peers.py --ours results/remat_blocks.csv [--seconds 5] [--intervals 2,3] [--cpu NAME] FILE...
                                 > results/remat_blocks_peers.csv

The model (Bartan et al., "Moccasin: Efficient Tensor Rematerialization for Neural Networks", ICML 2023) is solved by CP-SAT
of PyPI's ortools with one worker: each value has a few intervals in which it is in memory; it is computed where one begins;
whoever reads it begins within one; a cumulative constraint holds them under the limit. Ops run for the first time in their
order, and again in any later stage, each stage in that order: the sequences that neap searches, too, but for the number of
intervals. time: of all runs, with its proved bound; ratio: neap's default solver's time (in its budget) over it.
"""
import argparse, csv, datetime, json, os, sys, time

from ortools.sat.python import cp_model


def solve(block, intervals, seconds):
    ops, sizes, limit = block["ops"], block["bytes"], block["limit"]
    n = len(ops)
    model = cp_model.CpModel()
    horizon = n * n
    runs, held, demands = [], [], []  # of each op: (active, start, end) of its intervals
    for v, op in enumerate(ops):
        mine = []
        for c in range(intervals):
            active = model.NewConstant(1) if c == 0 else model.NewBoolVar(f"a{v}_{c}")
            stage = model.NewConstant(v) if c == 0 else model.NewIntVar(v, n - 1, f"g{v}_{c}")
            end = model.NewIntVar(v * n + v, horizon, f"e{v}_{c}")
            start = n * stage + v
            size = model.NewIntVar(1, horizon + 1, f"l{v}_{c}")
            held.append(model.NewOptionalIntervalVar(start, size, end + 1, active, f"i{v}_{c}"))
            demands.append(sizes[v])
            if c > 0:
                before = mine[-1]
                model.AddImplication(active, before[0])
                model.Add(start > before[2]).OnlyEnforceIf(active)
            mine.append((active, start, end))
        runs.append(mine)
    model.AddCumulative(held, demands, limit)
    for v, op in enumerate(ops):
        for u in op["inputs"]:
            for i, (active, start, _) in enumerate(runs[v]):
                covers = []
                for j, (there, begin, end) in enumerate(runs[u]):
                    c = model.NewBoolVar(f"c{u}_{j}_{v}_{i}")
                    model.AddImplication(c, there)
                    model.Add(begin < start).OnlyEnforceIf(c)
                    model.Add(end >= start).OnlyEnforceIf(c)
                    covers.append(c)
                model.AddBoolOr(covers + [active.Not()])
    model.Minimize(sum(op["time"] * active for op, mine in zip(ops, runs) for active, _, _ in mine))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    begin = time.process_time()
    status = solver.Solve(model)
    spent = time.process_time() - begin
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return solver.StatusName(status).lower(), None, None, spent
    return solver.StatusName(status).lower(), solver.ObjectiveValue(), solver.BestObjectiveBound(), spent


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--ours")
    arguments.add_argument("--seconds", type=float, default=5)
    arguments.add_argument("--intervals", default="2,3")
    arguments.add_argument("--cpu", default="")
    arguments.add_argument("files", nargs="+")
    a = arguments.parse_args()
    ours = {r["case"]: r for r in csv.DictReader(open(a.ours))} if a.ours else {}
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["date", "cpu", "case", "ops", "limit_bytes", "intervals", "status", "time", "bound", "cpu_s",
                  "neap_status", "neap_time", "neap_bound", "neap_cpu_s", "ratio"])
    for path in a.files:
        name = os.path.splitext(os.path.basename(path))[0]
        block = json.load(open(path))
        neap = ours.get(name)
        for intervals in map(int, a.intervals.split(",")):
            status, found, bound, spent = solve(block, intervals, a.seconds)
            beside = [neap[f"default_{k}"] for k in ("status", "time", "bound", "cpu_seconds")] if neap else [""] * 4
            both = found and neap and neap["default_status"] in ("optimal", "feasible")
            out.writerow([datetime.date.today().isoformat(), a.cpu, name, len(block["ops"]), block["limit"], intervals,
                          status, found or "", bound or "", f"{spent:.3f}", *beside,
                          f"{float(neap['default_time']) / found:.4f}" if both else ""])
            sys.stdout.flush()


main()
