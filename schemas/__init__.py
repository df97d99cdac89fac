"""The contracts: one Avro schema a record, and the typed records made of them."""
