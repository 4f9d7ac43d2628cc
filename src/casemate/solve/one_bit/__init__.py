"""Learning a secret vector through yes/no answers: learners, noise laws, and the limit of all."""
