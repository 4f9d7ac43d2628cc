"""The ways to be exposed, one module each, and what is said of whoever is not.

`contradiction` leaves out answers that cannot all be true; `rank` is what exact numbers determine,
`ranges` what types and bounds add, `totals` what all rows of a person come to; `together` looks for
small groups and for `insiders`, both made of `secret_parts`; `approximate` is who is nearly known,
`sensitive_cells` the rules for single sums; `assemble_exposed` puts the exposed people together
from what was found, and `reservations` say why nobody may be called safe.
"""
