"""A statement measured by itself: fresh noise on its own cells, at the price of one surprise.

Guarantee  Each part leaves through the measurement door with noise for its own sensitivity; the
           parts share the price equally, or have the noise of an `Aim`. Counts of whole cells are
           learnt by the stand-in too.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from casemate.answer.construction import Progress
from casemate.answer.dataset import Dataset
from casemate.answer.intervals import SESSION_MEASURED
from casemate.doors import Measured
from casemate.grid import Direct, Outcome, Spread
from casemate.privacy import Currency
from casemate.privacy.noise import GaussianLaw, LaplaceLaw, Law, half_width, variance
from casemate.table import Strategy

MAX_LEARNT_CELLS = 256
"""A part of more cells is answered and not learnt from."""


@dataclass(frozen=True)
class Aim:
    """How exact a measurement is to be, the noise for it, and its share of the chance to fail."""

    amount: str
    is_share: bool
    laws: tuple[Law, ...]
    share: float

    @property
    def words(self) -> str:
        """As names say it."""
        return f"{self._kind}{self.amount}"

    @property
    def _kind(self) -> str:
        return "share within " if self.is_share else "within "

    def prefix(self, key: str) -> str:
        """How the keys begin of all measurements of a statement that are aimed in this way."""
        return f"{key} {self._kind}"


@dataclass(frozen=True)
class DirectMeasurement:
    """One statement to be measured for a dataset."""

    direct: Direct
    dataset: Dataset
    aim: Aim | None = None

    @property
    def name(self) -> str:
        """The statement, the same however it is written, and not snapped."""
        return hashlib.sha256(repr((self.direct.parts, self.direct.relation)).encode()).hexdigest()

    @property
    def key(self) -> str:
        """Under which its answer is kept."""
        aim = "" if self.aim is None else f" {self.aim.words}"
        return f"measured {self.name}{aim}"

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
        if self.aim is None and self.needs_start:
            construction.start(principal, progress)  # which needs all of the budget
        return construction.keep(self.key, self._measure(principal))

    @property
    def needs_start(self) -> bool:
        """Whether the first tables need all of the budget."""
        plan = self.dataset.construction.plan
        return plan.answer is None and plan.gate is None

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
        share = 1.0 if self.aim is None else self.aim.share
        return self.direct.outcome(noised, self.noise(laws, share, texts))

    @property
    def due(self) -> Fraction:
        """What is still to be charged for it."""
        doors, plan = self.dataset.doors, self.dataset.construction.plan
        due = Fraction(0)
        for text, law in zip(self.texts(), self.laws(), strict=True):
            edition = doors.edition
            key = Measured(text, edition.policy, edition.data, law.name, law.scale, ()).key
            due += 0 if doors.transcript.find(key) is not None else plan.price_of(law)
        return due

    @property
    def is_gaussian(self) -> bool:
        """Whether its noise is Gaussian, else it is Laplace's."""
        plan = self.dataset.construction.plan
        return plan.currency is Currency.RHO and plan.strategy is not Strategy.LAPLACE

    def laws(self) -> list[Law]:
        """The noise of each part, as it was aimed or all at the price of one measurement."""
        if self.aim is not None:
            return list(self.aim.laws)
        plan = self.dataset.construction.plan
        share = self.dataset.construction.measuring_price / len(self.direct.parts)
        found: list[Law] = []
        for sensitivity in self.direct.sensitivities:
            if self.is_gaussian:
                found.append(GaussianLaw.within(share, sensitivity.squared))
            else:
                epsilon = plan.epsilon_of(share)
                found.append(LaplaceLaw.within(epsilon, sensitivity.in_all))
        return found

    def texts(self) -> list[str]:
        """How the transcript names each part, with all scales: whoever goes on needs them."""
        aimed: dict[str, object] = {}
        if self.aim is not None:
            aimed = {"within": self.aim.words, "scales": [str(each.scale) for each in self.laws()]}
        return [
            json.dumps(
                {
                    "statement": self.name,
                    "part": place,
                    "learn": self._learnable_cells(place),
                    **aimed,
                },
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

    def noise(
        self, laws: Sequence[Law], share: float = 1.0, texts: Sequence[str] = ()
    ) -> Callable[[int, int], Spread]:
        """What is known of the noise, with a share of the chance to fail.

        Of all answers at once, too, where `texts` say which measurements these are.
        """
        chance = (1 - self.dataset.construction.options.confidence) * share
        cells = sum(self.direct.sizes)

        def spread(place: int, added: int) -> Spread:
            law, ones = laws[place], [1] * added
            session = None
            if texts:
                ordinal = self.dataset.construction.stand_in.fresh[texts[place]]
                rarity = chance * SESSION_MEASURED / (2 * ordinal**2) / cells
                session = half_width(law, ones, 1 - rarity)
            width = half_width(law, ones, 1 - chance / self.direct.together)
            return Spread((added * variance(law)) ** 0.5, width, session)

        return spread
