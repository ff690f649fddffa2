"""How a database comes to the present tables, step by step."""
