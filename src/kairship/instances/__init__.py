"""The one place that knows how to reach, run and change a Karmada instance.

``drivers`` bring instances into being; ``membership`` joins clusters to them; ``pool`` has a client for each of them.
"""
