"""Exact noise: the only place where randomness becomes privacy, and tapes to test it along."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.privacy.noise.noise import (
        Bits,
        Noise,
        discrete_gaussian,
        discrete_laplace,
        draw,
        seeded_bits,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
