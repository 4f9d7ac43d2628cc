"""Which way to spend a budget answers questions best: predicted errors of every strategy.

`workload` is the questions and the policy that a plan is made for, `predicted` the sizes of errors,
`forecasts` what each strategy makes of a budget, `comparison` which is best, `report` how it reads.
"""
