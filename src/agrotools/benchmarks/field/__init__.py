"""Benchmark ``field``: questions on photographs of fields, leaves, trees, fruit and pests; the photographs are downloaded."""
