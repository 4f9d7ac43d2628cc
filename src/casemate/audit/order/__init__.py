"""Extremes, medians and comparisons beside sums: what they give away together.

`audit` poses the questions of a case, `case` is one of them in integers, `decide` judges it with
`extremes` (clauses, propagation, moves) and the `solver`, and `online` decides before answering.
"""
