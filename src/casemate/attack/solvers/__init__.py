"""Methods that solve equations in secrets: each takes equations and answers and gives a point.

`iteration` is the loop they share. Least squares: `least_squares`, within a box (`box_squares`),
with convex knowledge (`convex`). One equation or a few at a time: `kaczmarz`, `sgd`. Answers that
are wrong or bounded, and whole values: `decoding` by linear and integer programs
(`watched_program` runs them), `whole_decoding` by search and `posterior` by sampling, both with
the losses of `answer_loss`.
"""
