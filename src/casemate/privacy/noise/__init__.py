"""Exact noise: the only place where randomness becomes privacy, and tapes to test it along."""

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
        law_of,
        noise_bound,
        round_up,
        variance,
    )
    from casemate.privacy.noise.noise import (
        Bits,
        Noise,
        discrete_gaussian,
        discrete_laplace,
        draw,
        seeded_bits,
    )
    from casemate.privacy.noise.widths import half_width
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
