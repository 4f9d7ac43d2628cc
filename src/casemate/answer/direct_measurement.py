"""A statement measured by itself: fresh noise on its own cells, at the price of one surprise.

Guarantee  Each part leaves through the measurement door with noise for its own sensitivity; the
           parts share the price equally. Counts of whole cells are learnt by the stand-in too.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from casemate.answer.construction import Progress
from casemate.answer.dataset import Dataset
from casemate.grid import Direct, Outcome, Spread
from casemate.privacy import Currency
from casemate.privacy.noise import GaussianLaw, LaplaceLaw, Law, half_width, variance
from casemate.table import Strategy

MAX_LEARNT_CELLS = 256
"""A part of more cells is answered and not learnt from."""


@dataclass(frozen=True)
class DirectMeasurement:
    """One statement to be measured for a dataset."""

    direct: Direct
    dataset: Dataset

    @property
    def name(self) -> str:
        """The statement, the same however it is written, and not snapped."""
        return hashlib.sha256(repr((self.direct.parts, self.direct.relation)).encode()).hexdigest()

    @property
    def key(self) -> str:
        """Under which its answer is kept."""
        return f"measured {self.name}"

    @property
    def is_public(self) -> bool:
        """Whether everybody knows the answer, because only private values are protected."""
        places = self.dataset.universe.places
        reads = self.direct.reads
        if not reads <= places.keys():  # a column without cells is in no list of public ones
            return False
        return self.dataset.construction.is_public([places[name] for name in reads])

    def answer(self, principal: str, progress: Progress | None = None) -> Outcome:
        """The answer, paid for once: with noise, or as everybody knows it."""
        construction = self.dataset.construction
        known = construction.stored_outcome(self.key)
        if known is not None:
            return known
        if self.is_public:
            return construction.keep(self.key, self._exact_outcome())
        if construction.plan.answer is None and construction.plan.gate is None:
            construction.start(principal, progress)  # which needs all of the budget
        return construction.keep(self.key, self._measure(principal))

    def _exact_outcome(self) -> Outcome:
        cells = self.direct.cells(self.dataset.table.source, self.dataset.doors.key)
        return self.direct.outcome(cells, lambda _place, _added: Spread(0.0, 0.0, 0.0))

    def _measure(self, principal: str) -> Outcome:
        laws, texts = self.laws(), self.texts()
        cells = cache(lambda: self.direct.cells(self.dataset.table.source, self.dataset.doors.key))
        noised = [
            self.dataset.doors.measurement.measure(
                text,
                lambda place=place: cells()[place],  # type: ignore[misc]  # bound now
                cells=size,
                law=law,
                principal=principal,
            ).values
            for place, (text, law, size) in enumerate(
                zip(texts, laws, self.direct.sizes, strict=True)
            )
        ]
        self.dataset.construction.stand_in.catch_up(self.dataset.doors.transcript)
        return self.direct.outcome(noised, self._noise(laws, texts))

    def laws(self) -> list[Law]:
        """The noise of each part, all of them together at the price of one measurement."""
        plan = self.dataset.construction.plan
        share = self.dataset.construction.measuring_price / len(self.direct.parts)
        gaussian = plan.currency is Currency.RHO and plan.strategy is not Strategy.LAPLACE
        found: list[Law] = []
        for sensitivity in self.direct.sensitivities:
            if gaussian:
                found.append(GaussianLaw.within(share, sensitivity.squared))
            else:
                epsilon = plan.epsilon_of(share)
                found.append(LaplaceLaw.within(epsilon, sensitivity.in_all))
        return found

    def texts(self) -> list[str]:
        """How the transcript names each part."""
        return [
            json.dumps(
                {"statement": self.name, "part": place, "learn": self._learnable_cells(place)},
                sort_keys=True,
                separators=(",", ":"),
            )
            for place in range(len(self.direct.parts))
        ]

    def _learnable_cells(self, place: int) -> list[dict[str, object]]:
        """The cells of a part as products, where it counts whole cells of the grid."""
        products = self.direct.on_grid[place]
        if products is None or len(products) > MAX_LEARNT_CELLS:
            return []
        written = (product.to_dict() for product in products)
        return [{"masks": each["masks"], "weights": each["weights"]} for each in written]

    def _noise(self, laws: Sequence[Law], texts: Sequence[str]) -> Callable[[int, int], Spread]:
        chance = 1 - self.dataset.construction.options.confidence
        cells = sum(self.direct.sizes)

        def spread(place: int, added: int) -> Spread:
            law, ordinal = laws[place], self.dataset.construction.stand_in.fresh[texts[place]]
            ones = [1] * added
            return Spread(
                (added * variance(law)) ** 0.5,
                half_width(law, ones, 1 - chance / self.direct.together),
                half_width(law, ones, 1 - chance / 2 / (2 * ordinal**2) / cells),
            )

        return spread
