"""The protocols: the rule of each and its design; `modes` lists them once.

`windows` are deterministic, with widths by load; `sampled` reports items by chance, with the exact
failure probability of `boundary`; `mixed` has both, by the plans of `load_plans`. `robust` is
source document 001 as it is written, with the proof in `robust_theorem`, and `tuned` makes it cheap
with the lengths of `phases`. `doubling` has the two that an adversary breaks.
"""
