"""How exact an answer is wanted, and the least noise that makes it so.

Guarantee  Widths of counts and sums follow from the noise alone, so what was asked for is held.
           Those of quotients, and shares of a value, are predicted from what has left already, and
           checked after. Noise is drawn after its scale was chosen, so every proof holds; where a
           width is known only from noised numbers, tables and the measurement that is made where
           they are too wide have half of the chance of a failure each.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property

from casemate.answer.construction import OnlineConstruction
from casemate.answer.direct_measurement import Aim, DirectMeasurement
from casemate.doors import Answered, Edition, EntryKind, Measured
from casemate.errors import Misconfigured, Refused, TooExact, Unsupported
from casemate.grid import Compiled, Direct, Noised, Outcome, ShownTable
from casemate.privacy.noise import GaussianLaw, LaplaceLaw, Law

Wanted = int | float | Decimal | Fraction
"""A number in the unit of what is asked; a Fraction is a share of the value."""

MOST_STEPS = 80
"""Doublings of a scale that are tried."""

BISECTIONS = 12
"""A scale is found to so many binary digits."""

ROUNDING = 1e-9
"""Relative: what floats lose between a width and the ends that are shown."""

TIGHTER = Fraction(19, 20)
"""What is proposed where an answer is wider than was predicted, of what was asked for."""

SCALE_DIGITS = 22
"""Binary digits of a scale."""


@dataclass(frozen=True)
class Within:
    """How far, either way, a number may be off: in its own unit, or as a share of its value."""

    amount: Fraction
    is_share: bool = False

    @classmethod
    def of(cls, wanted: Wanted) -> "Within":
        """From a number, or from a Fraction as a share."""
        if isinstance(wanted, bool) or not math.isfinite(wanted) or wanted <= 0:
            raise Misconfigured(f"within {wanted} is no width; give a number above 0")
        return cls(Fraction(wanted), isinstance(wanted, Fraction))

    @classmethod
    def parse(cls, text: str) -> "Within":
        """From the command line.

        >>> Within.parse("2.5%").words, Within.parse("1e2").words
        ('2.5%', '100')
        """
        number = text.strip().removesuffix("%")
        try:
            found = Decimal(number)
        except InvalidOperation:
            found = Decimal(0)
        if not found.is_finite() or found <= 0:
            raise Misconfigured(
                f"--within {text} is no width; give a number above 0, or a percentage such as 2%"
            )
        is_share = number != text.strip()
        return cls(Fraction(found) / (100 if is_share else 1), is_share)

    @property
    def words(self) -> str:
        """As it is written on the command line."""
        number = f"{float(self.amount * (100 if self.is_share else 1)):.12g}"
        return f"{number}%" if self.is_share else number

    def room(self, cell: Noised) -> float | None:
        """How far a number may be off; None where there is no number."""
        if isinstance(cell.value, bool) or not isinstance(cell.value, int | float | Decimal):
            return None
        return float(self.amount) * (abs(float(cell.value)) if self.is_share else 1.0)


def _numbers(shown: ShownTable) -> list[Noised]:
    return [cell for row in shown.rows for cell in row if isinstance(cell, Noised)]


def half_of(cell: Noised) -> float:
    """Half of the width that is proven of a number."""
    band = cell.band(session=False)
    return math.inf if band is None else (band[1] - band[0]) / 2


def wider_side(cell: Noised) -> float:
    """How far the farther end is from a number, whether or not the nearer one was cut."""
    band = cell.band(session=False)
    if band is None or not isinstance(cell.value, int | float | Decimal):
        return math.inf
    return max(float(cell.value) - band[0], band[1] - float(cell.value))


HalfWidth = Callable[[Noised], float]


def _worst(
    cells: Sequence[Noised], rooms: Sequence[float | None], half: HalfWidth = half_of
) -> float:
    """The largest width, as a multiple of the room that it may take."""
    ratios = [0.0]
    for cell, room in zip(cells, rooms, strict=True):
        if room is not None:
            width = half(cell)
            ratios.append(0.0 if not width else width / room if room else math.inf)
    return max(ratios)


@dataclass(frozen=True)
class Found:
    """An outcome, and what makes rows of it."""

    outcome: Outcome
    reader: Compiled | Direct
    key: str | None = None  # under which it is to be kept, if it is new


@dataclass(frozen=True, eq=False)
class ExactAnswer:
    """One statement that is wanted as exact as somebody says."""

    question: Compiled
    base: DirectMeasurement
    within: Within

    def __post_init__(self) -> None:
        if any(layout.ranks for layout in self.base.direct.layouts):
            raise Refused(
                "what is proven of a quantile, MIN or MAX is a rank and no width of its value; ask "
                "for it without --within"
            )

    @property
    def reader(self) -> Direct:
        """What makes rows of a measurement."""
        return self.base.direct

    # What is known ----------------------------------------------------------------------------

    def known(self) -> Found | None:
        """An answer as exact that is there already, or follows from the first tables: free.

        One that was measured for this width is taken whatever it led to, and after it one that was
        measured for a smaller one.
        """
        earlier, direct = self._earlier(), self.base.direct
        smaller = [each for each in earlier if each < self.within.amount]
        found = (
            self._stored(earlier.get(self.within.amount), direct)
            or self._usual()
            or self._stored(earlier.get(max(smaller, default=Fraction(0))), direct)
        )
        return found or self._proven_by_tables()

    def _stored(self, key: str | None, reader: Compiled | Direct) -> Found | None:
        outcome = None if key is None else self._construction.stored_outcome(key)
        return None if outcome is None else Found(outcome, reader)

    def _usual(self) -> Found | None:
        """What was answered from tables for this width; the usual answer or a measurement that is
        narrow enough where widths are no matter of values.

        A bound that was cut at zero is seen from noise: whoever took what looks narrow for it would
        take what is wrong. So a measurement is taken by its law, and any other by its wider side.
        """
        usual = self._stored(self._tables_key, self.question)
        if self._is_predicted:
            return usual
        if usual is not None and self._is_met(usual, half=wider_side):
            return usual
        if self._ratio(self.base.laws()) > 1 + ROUNDING:
            return None
        return self._stored(self.base.key, self.base.direct)

    @property
    def _tables_key(self) -> str:
        """Under which what tables prove is kept: that of the usual answer, if it is the same."""
        text = self.question.asked.text
        return f"tables {text} {self._aim(()).words}" if self._is_predicted else text

    def _proven_by_tables(self) -> Found | None:
        """What the first tables prove, not kept yet.

        A bound that is cut at zero makes no count narrow enough, since it is seen from noise.
        """
        outcome = self._of_tables(self._share)
        if outcome is None:
            return None
        if not self._is_predicted:
            public = self._construction.widths_by_tables(self.question.asked)
            if not self._is_met(Found(public, self.question)):
                return None
        found = Found(outcome, self.question, self._tables_key)
        return found if self._is_met(found) else None

    def _earlier(self) -> dict[Fraction, str]:
        """The keys of answers to this statement that were wanted exact in this way, by width."""
        doors, start = self.base.dataset.doors, self._aim(()).prefix(self.base.key)
        found = {}
        for entry in doors.transcript.of_kinds((EntryKind.ANSWERED,)):
            content = entry.content
            assert isinstance(content, Answered), "the kind of an answer"
            if content.question.startswith(start) and _is_current(content, doors.edition):
                found[Fraction(content.question.removeprefix(start))] = content.question
        return found

    def _of_tables(self, share: float) -> Outcome | None:
        try:
            return self._construction.proven_by_tables(self.question.asked, share)
        except Unsupported:  # too much work for the grid; it may be measured all the same
            return None

    def _is_met(self, found: Found, half: HalfWidth = half_of) -> bool:
        return self._excess(found, half) <= 1 + ROUNDING

    def _excess(self, found: Found, half: HalfWidth = half_of) -> float:
        """How many times too wide the widest number of an answer is."""
        cells = _numbers(_all_rows(found.reader, found.outcome))
        return _worst(cells, [self.within.room(cell) for cell in cells], half)

    # What it takes ----------------------------------------------------------------------------

    @cached_property
    def measurement(self) -> DirectMeasurement:
        """The measurement with the noise that is predicted to do."""
        if self.base.needs_start and self._construction.start_due:
            raise Refused(
                "this strategy measures its tables first, for all of the budget; ask once without "
                "--within"
            )
        begun = self._begun()
        laws = begun or self._laws()
        if laws is None:
            raise Refused(
                f"no noise is predicted to prove every number within {self.within.words}: some are "
                f"of nobody, or of no bounds; ask for fewer groups, or without --within"
            )
        return replace(self.base, aim=self._aim(tuple(laws)))

    @property
    def price(self) -> Fraction:
        """What the measurement costs, those of its parts that were paid for left out."""
        return self.measurement.due

    def require_affordable(self, principal: str) -> None:
        """Refuse what the ledger cannot pay for, and say what it can."""
        left = self.base.dataset.doors.ledger.remaining(principal)
        if self.price > left:
            plan = self._construction.plan
            raise TooExact(self.within.words, self.price, left, plan.currency, self._best(left))

    def answer(self, principal: str) -> Found:
        """What is known, or else a measurement, if it can be paid for."""
        known = self.known()
        if known is not None and known.key is not None:
            return replace(known, outcome=self._construction.keep(known.key, known.outcome))
        if known is not None:
            return known
        self.require_affordable(principal)
        return Found(self.measurement.answer(principal), self.base.direct)

    def notes(self, found: Found) -> tuple[str, ...]:
        """What to do where numbers are wider than was predicted, or nothing is left for tables."""
        left = self.start_note(self.base.dataset.doors.ledger.remaining())
        if not self._is_predicted or self._is_met(found):
            return left
        tighter = replace(self, within=replace(self.within, amount=self.within.amount * TIGHTER))
        laws = tighter._laws()
        widest = f"wider than {self.within.words}, by a factor of {self._excess(found):.3g} at most"
        if laws is None:
            return (f"some numbers are {widest}: what was known beforehand was too far off", *left)
        rho = float(sum(map(self._construction.plan.price_of, laws)))
        return (
            f"some numbers are {widest}: what was known beforehand was too far off; --within "
            f"{tighter.within.words} costs another {rho:.3g} of {self._construction.plan.currency}",
            *left,
        )

    def start_note(self, left: Fraction) -> tuple[str, ...]:
        """What it means where so little is left that the first tables cannot be paid."""
        due = self._construction.start_due
        if self.base.needs_start or self._construction.plan.answer is not None or due <= left:
            return ()
        return (
            "what is left after this does not pay for the tables that other questions are answered "
            "from, so those will be refused; they can be measured too, or ask without --within",
        )

    def _best(self, left: Fraction) -> str | None:
        """A width, rounded up, that what is left pays for; None where there is none."""
        laws, plan = self.measurement.laws(), self._construction.plan
        whole = sum(map(plan.price_of, laws))
        if not left or not whole:
            return None
        wider = self.within
        for _ in range(MOST_STEPS):
            again = replace(self, within=wider)._laws()
            spent = None if again is None else sum(map(plan.price_of, again))
            if spent is not None and spent <= left:
                return wider.words
            by = 1.02 if spent is None else max(1.02, float(spent / left) ** 0.5)
            wider = replace(wider, amount=_rounded_up(wider.amount * Fraction(by)))
        return None

    # The search -------------------------------------------------------------------------------

    @property
    def _construction(self) -> OnlineConstruction:
        return self.base.dataset.construction

    @cached_property
    def _is_predicted(self) -> bool:
        """Whether widths depend on the values, and not on noise alone."""
        return self.within.is_share or not all(each.is_plain for each in self.base.direct.layouts)

    @property
    def _share(self) -> float:
        """Of the chance of a failure, for the measurement."""
        return 0.5 if self._is_predicted else 1.0

    def _aim(self, laws: tuple[Law, ...]) -> Aim:
        return Aim(str(self.within.amount), self.within.is_share, laws, self._share)

    @cached_property
    def _values(self) -> list[list[int]]:
        """What is expected in each cell of each part, from what has left already."""
        direct = self.base.direct
        if not self._is_predicted:
            return [[0] * size for size in direct.sizes]
        stored = [self._construction.stored_outcome(key) for key in self._stored_keys()]
        known = [each for each in stored if each is not None]
        if known:
            return [[round(cell.value) for cell in part] for part in known[0].parts]
        guesses = self._construction.guesses(self.question.asked)
        if guesses is None:
            raise Refused(
                "the noise for a share of a value, or for a mean, is chosen from what is known of "
                "it, and nothing has been measured yet; ask once without --within"
            )
        found = self.question.as_measured(guesses, direct)
        return [[round(value) for value in part] for part in found]

    def _stored_keys(self) -> list[str]:
        """Measurements of this statement, the most exact ones first."""
        earlier = self._earlier()
        return [*(earlier[each] for each in sorted(earlier)), self.base.key]

    @cached_property
    def _rooms(self) -> list[float | None]:
        """How far each shown number may be off, by what is expected of it."""
        laws = self._made([1.0] * len(self.base.direct.parts))
        return [self.within.room(cell) for cell in self._shown(laws, self._values)]

    def _shown(self, laws: Sequence[Law], values: Sequence[Sequence[int]]) -> list[Noised]:
        outcome = self.base.direct.outcome(values, self.base.noise(laws, self._share))
        return _numbers(_all_rows(self.base.direct, outcome, one=not self._is_predicted))

    def _ratio(self, laws: Sequence[Law]) -> float:
        """How many times too wide the widest number is predicted to be.

        Counts are taken to be so large that no bound is cut at zero.
        """
        noise, values = self.base.noise(laws, self._share), []
        for place, (part, cells) in enumerate(
            zip(self.base.direct.parts, self._values, strict=True)
        ):
            least = -math.inf if part.summand is not None else noise(place, 1).width or 0
            values.append([cell if cell > least else math.ceil(least) for cell in cells])
        return _worst(self._shown(laws, values), self._rooms)

    def _made(self, scales: Sequence[float]) -> list[Law]:
        gaussian, found = self.base.is_gaussian, list[Law]()
        for scale, moved in zip(scales, self.base.direct.sensitivities, strict=True):
            exact = _rounded_down(scale)
            found.append(
                GaussianLaw(exact, moved.squared) if gaussian else LaplaceLaw(exact, moved.in_all)
            )
        return found

    def _laws(self) -> list[Law] | None:
        """The noise of each part that together is cheapest and does; None where none does."""
        gaussian = self.base.is_gaussian
        moves = [
            float(each.squared) ** 0.5 if gaussian else float(each.in_all)
            for each in self.base.direct.sensitivities
        ]
        scales = self._largest(moves)
        if scales is None or len(scales) == 1:
            return None if scales is None else self._made(scales)
        other = self._balanced(scales, moves)
        several = [each for each in (scales, other) if each is not None]
        grown = [self._made(self._grown(each)) for each in several]
        price_of = self._construction.plan.price_of
        return min(grown, key=lambda laws: sum(map(price_of, laws)))

    def _largest(self, direction: Sequence[float]) -> list[float] | None:
        """The largest multiple of some scales that does."""

        def scaled(power: float) -> list[float]:
            return [each * 2.0**power for each in direction]

        power = _last(lambda at: self._ratio(self._made(scaled(at))) <= 1)
        return None if power is None else scaled(power)

    def _balanced(self, scales: Sequence[float], moves: Sequence[float]) -> list[float] | None:
        """Scales in the proportion at which no exchange between parts is cheaper, to first order.

        The price is the sum of (move/scale)^p, and the width grows by so much for each scale.
        """
        here, slopes, p = self._ratio(self._made(scales)), list[float](), 1 + self.base.is_gaussian
        for place, scale in enumerate(scales):
            moved = [each * (1.25 if i == place else 1) for i, each in enumerate(scales)]
            slopes.append((self._ratio(self._made(moved)) - here) / (0.25 * scale))
        if not all(0 < each < math.inf for each in slopes):
            return None
        pairs = zip(moves, slopes, strict=True)
        return self._largest([(move**p / slope) ** (1 / (p + 1)) for move, slope in pairs])

    def _grown(self, scales: Sequence[float]) -> list[float]:
        """Each scale in turn as large as the others leave room for."""
        found = list(scales)
        for place, scale in enumerate(scales):

            def fits(power: float, place: int = place, scale: float = scale) -> bool:
                tried = [*found[:place], scale * 2.0**power, *found[place + 1 :]]
                return self._ratio(self._made(tried)) <= 1

            power = _last(fits)
            found[place] = scale * 2.0 ** max(0.0, power or 0.0)
        return found

    def _begun(self) -> list[Law] | None:
        """The noise that was chosen when this was begun and cut off."""
        doors, aim = self.base.dataset.doors, self._aim(())
        for entry in doors.transcript.of_kinds((EntryKind.MEASURED,)):
            content = entry.content
            assert isinstance(content, Measured), "the kind of a measurement"
            if self.base.name not in content.question or not _is_current(content, doors.edition):
                continue
            plain = json.loads(content.question)
            if plain.get("within") == aim.words:
                return self._made([float(Fraction(each)) for each in plain["scales"]])
        return None


def _is_current(content: Answered | Measured, edition: Edition) -> bool:
    return Edition(content.policy, content.data) == edition


def _all_rows(reader: Compiled | Direct, outcome: Outcome, *, one: bool = False) -> ShownTable:
    """Every row whatever HAVING and LIMIT leave, or one of each select where all are alike."""
    layouts = tuple(each.unfiltered(1 if one else None) for each in reader.layouts)
    return replace(reader, layouts=layouts, limit=None).rows(outcome, all_groups=False)


def _last(fits: Callable[[float], bool]) -> float | None:
    """The largest power that fits, where all below one do; None where none does."""
    step = 1.0 if fits(0.0) else -1.0
    at = 0.0
    for _ in range(MOST_STEPS):
        if fits(at + step) is (step < 0):
            break
        at += step
    else:
        return None if step < 0 else at
    low, high = (at, at + 1) if step > 0 else (at - 1, at)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _rounded_down(scale: float) -> Fraction:
    """A scale of short integers that is no larger."""
    unit = 2 ** max(0, SCALE_DIGITS - math.frexp(scale)[1])
    return Fraction(max(1, math.floor(Fraction(scale) * unit)), unit)


def _rounded_up(amount: Fraction) -> Fraction:
    """Three digits that are no less."""
    unit = Fraction(10) ** (math.floor(math.log10(amount)) - 2)
    return math.ceil(amount / unit) * unit
