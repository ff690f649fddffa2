"""Random sequences of what people and faults do to a whole plane, each against a model.

A `Lane` is the model of one instance, its clusters and its people, and how each act is done to plane and model alike;
several lanes share a plane, and a kill hits them all. `truth` compares a lane with the plane, `orphans` finds what
belongs to nobody, `kills` ends processes, `playing` makes a sequence of a seed, `running` plays many, `report` tells.

    python -m support.sequences --seed 7            plays one again
    python -m support.sequences --count 200 --report docs/soak.md
"""
