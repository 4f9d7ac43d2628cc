"""Decide by classes: people whom no statement tells apart are interchangeable.

`facts` are what was published about one private number, unit by unit; `partition` puts units that
occur in the same facts in the same way into classes; `patterns` are the ranges of a class while it
is fixed who attains extremes and who is below medians; `search` looks for second tables and for
proofs over classes instead of people; `certificate` is such a proof, with a verifier that knows
nothing of the search, and `derivation` puts it into words.
"""
