"""Benchmark ``field``: questions on photographs of fields, leaves, fruit and pests; the photographs are downloaded."""
