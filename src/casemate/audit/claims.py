"""What follows for a few records together: claimed from null vectors, proved in integers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from casemate.audit.case import Case
from casemate.audit.determined import Determined, in_terms_of
from casemate.audit.parts import Parts
from casemate.solve.certificate import Certificate, certify_targets

Weights = Mapping[int, int]
"""Coefficients of parts: a combination that is claimed to be determined."""


@dataclass(frozen=True, eq=False)
class Proofs:
    """The combinations of parts that are determined, with certificates where they are readable."""

    case: Case
    combinations: Mapping[frozenset[tuple[int, int]], Certificate | None]

    def holds(self, weights: Weights) -> bool:
        """Whether a combination is proved to be determined."""
        return _key(weights) in self.combinations

    def value(self, weights: Weights) -> Fraction | None:
        """What it adds up to, but for constants; None if that cannot be read off."""
        found = self.combinations.get(_key(weights))
        return None if found is None else found.value(self.case.equations.low)


def proofs(case: Case, known: Determined, parts: Parts, claims: Sequence[Weights]) -> Proofs:
    """Prove as many of the claims as possible, all at once."""
    wanted = list({_key(each): each for each in claims}.values())
    targets = parts.targets(wanted)
    sound = [(k, each) for k, each in enumerate(targets) if each]
    place = {id(each): k for k, each in sound}
    found: dict[int, Certificate | None] = {}
    system, block = known.collapsed.system, known.found.block
    for certificate in certify_targets(system, block, [each for _, each in sound]):
        found[place[id(certificate.target)]] = in_terms_of(case.exact.rows, certificate)
    unread = [k for k, each in sound if k not in found and _is_determined(known, each)]
    if unread and known.proved_jointly():
        found |= dict.fromkeys(unread)
    return Proofs(case, {_key(wanted[k]): each for k, each in found.items()})


def _is_determined(known: Determined, target: Weights) -> bool:
    """Whether all groups of a target are determined, each by itself."""
    return all(known.found.determined[group] for group in target)


def whole(shares: Mapping[int, Fraction], part: int) -> Weights:
    """That a part is these shares of others, but for a constant, in whole numbers."""
    common = lcm(1, *(share.denominator for share in shares.values()))
    weights = {other: -int(share * common) for other, share in shares.items()}
    return {**weights, part: common}


def _key(weights: Weights) -> frozenset[tuple[int, int]]:
    return frozenset(weights.items())
