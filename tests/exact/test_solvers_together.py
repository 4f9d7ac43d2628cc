"""HiGHS and CP-SAT ship a library of the same name; both must work in one process."""

import subprocess
import sys
from itertools import permutations

import pytest

HIGHS = """
import highspy
solver = highspy.Highs()
solver.setOptionValue("output_flag", False)
solver.addVar(1, 2)
assert solver.run() == highspy.HighsStatus.kOk
"""
CP_SAT = """
from ortools.sat.python import cp_model
model = cp_model.CpModel()
model.new_bool_var("x")
assert cp_model.CpSolver().solve(model) == cp_model.OPTIMAL
"""


@pytest.mark.parametrize(
    "order", list(permutations([HIGHS, CP_SAT])), ids=["highspy first", "ortools first"]
)
def test_both_solvers_run_in_one_process_whichever_is_imported_first(
    order: tuple[str, ...],
) -> None:
    program = "".join(order)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
