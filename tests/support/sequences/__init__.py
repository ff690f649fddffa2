"""Random sequences of actions of people and of faults on a whole plane, each compared with a model.

A `Lane` is the model of one instance with its clusters and its people, and carries out each action on the plane and on
the model. Several lanes share a plane, and a kill affects all of them. `truth` compares a lane with the plane,
`orphans` finds what has lost its owner, `kills` kills processes, `playing` plays the sequence of a seed, `running`
plays many, `report` writes the report.

    python -m support.sequences --seed 7            plays one again
    python -m support.sequences --count 200 --report docs/soak.md
"""
