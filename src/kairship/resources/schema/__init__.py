"""How the structures of our custom resources are declared, and how they become CustomResourceDefinitions.

fields            the base classes of all structures and kinds
scalars           strings, numbers and small structures with their bounds
documented_enum   enumerations whose members have a documented meaning
rule              CEL validation rules
definition        how a kind is served: names, printer columns, selectable fields
documentation     reads the docstrings of fields from the source
structural        structures into structural OpenAPI v3 schemas
crd               definitions into CustomResourceDefinitions
"""
