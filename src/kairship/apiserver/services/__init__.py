"""The services of the API: one object for each service of the protos."""
