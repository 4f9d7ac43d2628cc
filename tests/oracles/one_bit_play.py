"""The protocol of a one-bit stream, one query after the other."""

from casemate.attack.one_bit import OneBitLearner, ThresholdOracle
from casemate.attack.one_bit.oracle import AnswerTrail, Floats


def play(learner: OneBitLearner, oracle: ThresholdOracle, queries: Floats) -> AnswerTrail:
    """Put a learner before an oracle, one query after the other: the slow, obvious form."""
    trail = AnswerTrail.empty(len(queries))
    for place, q in enumerate(queries):
        trail.answers[place] = learner.answer(q)
        trail.thresholds[place] = learner.threshold(q)
        trail.above[place] = oracle.above(q, trail.thresholds[place])
        learner.learn(q, float(trail.thresholds[place]), bool(trail.above[place]))
    return trail
