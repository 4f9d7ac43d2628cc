"""The region of possible tables: `bounds` of its columns, `second` solutions, and what follows.

`propagation` tightens a box equation by equation, `collapse` makes one of columns that no equation
tells apart, `groups` are totals and combinations that are determined, and `coalition` is what a few
owners learn from what they know.
"""
