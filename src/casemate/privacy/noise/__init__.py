"""Exact noise: the only place where randomness becomes privacy, and tapes to test it along.

`noise` draws, `law` is noise as a value (its scale, what it costs, a draw), `widths` proves how far
weighted sums of it can be off, `linear` the same where weights are many and not whole, and
`tape` is the bits it is drawn from.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.privacy.noise.law import (
        EXACT,
        ROOT_BITS,
        GaussianLaw,
        LaplaceLaw,
        Law,
        Sources,
        geometric_bound,
        law_of,
        noise_bound,
        round_up,
        variance,
    )
    from casemate.privacy.noise.linear import NoiseWeights, linear_width
    from casemate.privacy.noise.noise import (
        Noise,
        discrete_gaussian,
        discrete_laplace,
        draw,
        silence,
    )
    from casemate.privacy.noise.tape import Bits, seeded_bits
    from casemate.privacy.noise.widths import half_width
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
